/* pack_texts.c -- part of build tools: packs texts by byte pair encoding. */
#include "ir/pack_texts.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

bool packing_add(Packing *p, const char *s)
{
    size_t n = strlen(s) + 1;
    if (n > sizeof p->byte - p->n)
        return false;
    memcpy(p->byte + p->n, s, n);
    p->n += n;
    return true;
}

/* Returns the pair that texts have most often, the first of equals; 0: none is worth a code. */
static unsigned best_pair(const Packing *p)
{
    static unsigned count[1 << 16];
    unsigned best = 0;
    memset(count, 0, sizeof count);
    for (size_t i = 1; i < p->n; i++)
        if (p->byte[i - 1] && p->byte[i] &&
            p->length[p->byte[i - 1]] + p->length[p->byte[i]] <= sizeof p->text[0])
            count[p->byte[i - 1] << 8 | p->byte[i]]++;
    for (unsigned i = 1; i < sizeof count / sizeof *count; i++)
        best = count[i] > count[best] ? i : best;
    return count[best] > 3 ? best : 0;
}

static void put_code(Packing *p, unsigned code, unsigned of)
{
    size_t n = 0;
    unsigned first = of >> 8, second = of & 255;
    memcpy(p->text[code], p->text[first], p->length[first]);
    memcpy(p->text[code] + p->length[first], p->text[second], p->length[second]);
    p->length[code] = p->length[first] + p->length[second];
    for (size_t i = 0; i < p->n; i++) {
        bool is_it = i + 1 < p->n && p->byte[i] == first && p->byte[i + 1] == second;
        p->byte[n++] = is_it ? (unsigned char)code : p->byte[i];
        i += is_it;
    }
    p->n = n;
}

void packing_run(Packing *p)
{
    bool is_used[256] = {true};
    for (unsigned code = 0; code < 256; code++) {
        p->text[code][0] = (unsigned char)code;
        p->length[code] = 1;
    }
    for (size_t i = 0; i < p->n; i++)
        is_used[p->byte[i]] = true;
    for (unsigned code = 1, of = 1; code < 256 && of; code++) {
        of = is_used[code] ? 1 : best_pair(p);
        if (!is_used[code] && of)
            put_code(p, code, of);
    }
}

static void write_bytes(FILE *f, const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%d,%s", s[i], i % 24 == 23 || i + 1 == n ? "\n" : "");
}

void packing_write(FILE *f, const Packing *p)
{
    fputs("static const unsigned char packed[] = {\n", f);
    write_bytes(f, p->byte, p->n);
    fputs("};\nstatic const unsigned char text_of_codes[] = {\n", f);
    for (unsigned code = 0; code < 256; code++)
        write_bytes(f, p->text[code], p->length[code]);
    fputs("};\nstatic const unsigned short place_of_code[] = {0,", f);
    for (unsigned code = 0, at = 0; code < 256; code++)
        fprintf(f, "%u,", at += p->length[code]);
    fputs("\n};\n", f);
}
