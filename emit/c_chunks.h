/* c_chunks.h -- the text of the kernel headers, cut into pieces by emit/embed.c at build time. */
#ifndef ETC_EMIT_C_CHUNKS_H
#define ETC_EMIT_C_CHUNKS_H

typedef struct CIsa {      /* an instruction set; the first whose condition is true is chosen */
    const char *name;      /* "avx2" */
    const char *condition; /* the condition for #if; "" for the last set */
} CIsa;

typedef struct CHeader {
    const char *name;            /* "core.h" */
    int first, last;             /* the range in c_isa of the sets that the text is for */
    const unsigned char *packed; /* its chunks, each followed by a '\\0', deflated with the text of
                                  * the last header as dictionary */
    unsigned n_packed, n;        /* the bytes of `packed` and of the text */
} CHeader;

typedef struct CChunk {
    unsigned header : 7;      /* its index in c_header */
    unsigned is_optional : 1; /* only files that use a name of the chunk need it */
    unsigned at : 24;         /* the offset of its text in that of the header */
} CChunk;

typedef struct CName { /* a function or table and a chunk that defines it; sorted by name */
    unsigned short name; /* the offset of its text in c_names */
    unsigned short chunk;
} CName;

typedef struct CRow {               /* a row of pointwise.def */
    const char *name, *kind, *expr; /* "add", "BINARY", "a + (p * b)" */
} CRow;

extern const CIsa c_isa[];
extern const CHeader c_header[]; /* and one more, the dictionary, which is a text without chunks */
extern const CChunk c_chunk[]; /* in an order in which they can be written to a file */
extern const CName c_name[];
extern const char c_names[];
extern const CRow c_row[]; /* in the order of the file */
extern const int c_n_isas, c_n_headers, c_n_chunks, c_n_names, c_n_rows;

#endif
