/* bank.c -- bytes of which equal ones are kept once. */
#include "ir/ir.h"
#include <string.h>

enum { SAMPLES = 64 };

/* Weights may be large and mostly differ, so at most 64 words of them decide the row. */
static uint64_t sample(const uint8_t *data, int64_t n)
{
    uint64_t h = (uint64_t)n, word = 0;
    int64_t last = n > 8 ? n - 8 : 0, words = (n + 7) / 8 < SAMPLES ? (n + 7) / 8 : SAMPLES;
    for (int64_t i = 0; i < words; i++) {
        int64_t at = words > 1 ? last / (words - 1) * i : 0;
        memcpy(&word, data + at, n < 8 ? (size_t)n : 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static bool holds(const BankItem *i, const uint8_t *data, int64_t n)
{
    return i->n == n && (i->data == data || !memcmp(i->data, data, (size_t)n));
}

static int *bank_row(const Bank *b, const uint8_t *data, int64_t n)
{
    uint64_t mask = (uint64_t)b->cap - 1, i = sample(data, n) & mask;
    while (b->row[i] && !holds(&b->item[b->row[i] - 1], data, n))
        i = (i + 1) & mask;
    return &b->row[i];
}

static void bank_enlarge(Bank *b, Arena *a)
{
    b->cap = b->cap ? 2 * b->cap : 64;
    b->row = NEW(a, int, b->cap);
    for (int i = 0; i < b->n; i++)
        *bank_row(b, b->item[i].data, b->item[i].n) = i + 1;
}

int bank_add(Bank *b, Arena *a, const uint8_t *data, int64_t n)
{
    if (2 * (b->n + 1) > b->cap)
        bank_enlarge(b, a);
    int *row = bank_row(b, data, n);
    if (!*row) {
        BankItem item = {data, n, round_up(b->size, b->align)};
        PUSH(a, b->item, b->n, item);
        b->size = item.offset + n;
        *row = b->n;
    }
    return *row - 1;
}
