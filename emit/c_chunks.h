/* c_chunks.h -- the text of the kernel headers, cut into pieces by emit/embed.c at build time. */
#ifndef ETC_EMIT_C_CHUNKS_H
#define ETC_EMIT_C_CHUNKS_H

#include <stdbool.h>

typedef struct CIsa {      /* an instruction set, in the order in which they are chosen */
    const char *name;      /* "avx2" */
    const char *condition; /* of #if, where those before do not hold; "" is the last's */
} CIsa;

typedef struct CHeader {
    const char *name;            /* "core.h" */
    int first, last;             /* the sets whose text it is, in c_isa */
    const unsigned char *packed; /* its chunks one behind the other, each with a '\\0', as zlib */
    unsigned n_packed, n;        /* their bytes, and the text's */
} CHeader;

typedef struct CChunk {
    int header;       /* in c_header */
    bool is_optional; /* wanted only by those who use a name it defines */
    unsigned at;      /* where its text begins, in the header's */
} CChunk;

typedef struct CName { /* a function or table and a chunk that defines it; sorted by name */
    const char *name;
    int chunk;
} CName;

typedef struct CRow {               /* of pointwise.def */
    const char *name, *kind, *expr; /* "add", "BINARY", "a + (p * b)" */
} CRow;

extern const CIsa c_isa[];
extern const CHeader c_header[];
extern const CChunk c_chunk[]; /* in the order in which they may be pasted */
extern const CName c_name[];
extern const CRow c_row[]; /* in the order of the file */
extern const int c_n_isas, c_n_headers, c_n_chunks, c_n_names, c_n_rows;

#endif
