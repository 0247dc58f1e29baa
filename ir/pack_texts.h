/* pack_texts.h -- for build tools: texts that are packed by byte pair encoding.
 *
 * The most frequent pair of bytes becomes a byte that no text has, again and again.  So each text
 * is unpacked alone, which a stream of zlib's would not allow.  text_unpack() of ir/ops.h does it: it
 * copies what each byte stands for.
 * Source: P. Gage, "A New Algorithm for Data Compression", The C Users Journal, 1994. */
#ifndef ETC_IR_PACK_TEXTS_H
#define ETC_IR_PACK_TEXTS_H

#include <stdbool.h>
#include <stdio.h>

typedef struct Packing {
    unsigned char byte[1 << 20]; /* a zero ends each text */
    size_t n;
    unsigned char text[256][64]; /* what each byte stands for */
    unsigned length[256];
} Packing;

/* Adds a text; false: there is no room for it. */
bool packing_add(Packing *p, const char *s);
/* Packs all texts.  They stay in their order, and a zero still ends each. */
void packing_run(Packing *p);
/* Writes the arrays `packed`, `text_of_codes` and `place_of_code` in C. */
void packing_write(FILE *f, const Packing *p);

#endif
