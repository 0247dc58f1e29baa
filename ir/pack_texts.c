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
            p->pair[p->byte[i - 1]][2] + p->pair[p->byte[i]][2] < 256)
            count[p->byte[i - 1] << 8 | p->byte[i]]++;
    for (unsigned i = 1; i < sizeof count / sizeof *count; i++)
        best = count[i] > count[best] ? i : best;
    return count[best] > 3 ? best : 0;
}

static void put_code(Packing *p, unsigned code, unsigned of)
{
    size_t n = 0;
    p->pair[code][0] = (unsigned char)(of >> 8);
    p->pair[code][1] = (unsigned char)of;
    p->pair[code][2] = (unsigned char)(p->pair[of >> 8][2] + p->pair[of & 255][2]);
    for (size_t i = 0; i < p->n; i++) {
        bool is_it = i + 1 < p->n && p->byte[i] == p->pair[code][0] &&
                     p->byte[i + 1] == p->pair[code][1];
        p->byte[n++] = is_it ? (unsigned char)code : p->byte[i];
        i += is_it;
    }
    p->n = n;
}

void packing_run(Packing *p)
{
    bool is_used[256] = {true};
    for (unsigned code = 0; code < 256; code++)
        p->pair[code][2] = 1;
    for (size_t i = 0; i < p->n; i++)
        is_used[p->byte[i]] = true;
    for (unsigned code = 1, of = 1; code < 256 && of; code++) {
        of = is_used[code] ? 1 : best_pair(p);
        if (!is_used[code] && of)
            put_code(p, code, of);
    }
}

static void write_bytes(FILE *f, const char *name, const unsigned char *s, size_t n)
{
    fprintf(f, "static const unsigned char %s[] = {", name);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%d,", i % 24 ? "" : "\n", s[i]);
    fputs("\n};\n", f);
}

void packing_write(FILE *f, const Packing *p)
{
    write_bytes(f, "packed", p->byte, p->n);
    write_bytes(f, "pair", p->pair[0], sizeof p->pair);
}
