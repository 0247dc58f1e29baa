/* main_program.h -- the fixed part of the program that `emit-c --main` adds: .npy files, arguments
 * and calls.  Its text is printed before tables and functions that c_main.c makes for the model. */
#ifndef ETC_MAIN_PROGRAM_H
#define ETC_MAIN_PROGRAM_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct Port {
    const char *name, *is; /* "f32[1,3,224,224]" */
    const char *type;      /* of a .npy file, without the byte order: "f4" */
    int rank;
    const char *fixed; /* what an input always is; NULL where it is not */
} Port;

typedef struct Tensor {
    int64_t dim[16];
    int64_t n; /* elements */
    void *data;
} Tensor;

static void stop(const char *what, const char *which)
{
    (void)fprintf(stderr, "error: %s: %s\n", which, what);
    exit(1);
}

/* Allocates at least a byte, so the result is never NULL.  The memory is never freed. */
static void *grab(int64_t bytes)
{
    void *p = calloc((size_t)((bytes > 0) ? bytes : 1), 1U);
    if (p == NULL) {
        stop("no memory", "this program");
    }
    return p;
}

/* Allocates memory for the arena or the state: 64-byte aligned and not zeroed. */
static void *grab_aligned(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64U, (bytes > 0U) ? bytes : 64U) != 0) {
        stop("no memory", "this program");
    }
    return p;
}

static int64_t item_bytes(const Port *p)
{
    return p->type[1] - '0';
}

/* Returns the text behind 'key': in the header of a .npy file, or NULL. */
static const char *header_value(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (at == NULL) {
        return NULL;
    }
    at += strlen(key);
    at += strspn(at, ": ");
    return at;
}

static void read_shape(Tensor *t, const Port *p, const char *s, const char *path)
{
    int rank = 0;
    t->n = 1;
    while ((s != NULL) && (*s != ')') && (*s != '\0')) {
        char *end = NULL;
        s += strspn(s, "(, ");
        if (*s == ')') {
            break;
        }
        int64_t size = (int64_t)strtoll(s, &end, 10);
        if ((end == s) || (size < 0) || (rank >= 16) ||
            ((size > 0) && (t->n > (INT64_MAX / 16 / size)))) {
            stop("its shape is not a tuple of sizes", path);
        }
        t->dim[rank] = size;
        t->n *= size;
        rank++;
        s = end;
    }
    if (rank != p->rank) {
        stop("its number of dimensions differs from that of the input", path);
    }
}

static int same_type(const char *descr, const Port *p)
{
    return (descr != NULL) && (descr[0] == '\'') &&
           ((descr[1] == '<') || (descr[1] == '|') || (descr[1] == '=')) &&
           (descr[2] == p->type[0]) && (descr[3] == p->type[1]) && (descr[4] == '\'');
}

static Tensor read_npy(const Port *p, const char *path)
{
    Tensor t;
    uint8_t head[12];
    FILE *f = fopen(path, "rb");
    (void)memset(&t, 0, sizeof t);
    if (f == NULL) {
        stop(strerror(errno), path);
        return t;
    }
    if ((fread(head, 1U, 10U, f) != 10U) || (memcmp(head, "\x93NUMPY", 6U) != 0)) {
        stop("not a .npy file", path);
    }
    size_t n = (size_t)head[8] | ((size_t)head[9] << 8);
    if (head[6] > 1U) {
        if (fread(head + 10, 1U, 2U, f) != 2U) {
            stop("ends within its header", path);
        }
        n |= ((size_t)head[10] << 16) | ((size_t)head[11] << 24);
    }
    char *header = (char *)calloc(n + 1U, 1U);
    if ((n > 65536U) || (header == NULL) || (fread(header, 1U, n, f) != n)) {
        stop("ends within its header", path);
        return t;
    }
    const char *order = header_value(header, "'fortran_order'");
    if (!same_type(header_value(header, "'descr'"), p)) {
        stop("its dtype differs from that of the input", path);
    }
    if ((order == NULL) || ((p->rank > 1) && (strncmp(order, "False", 5U) != 0))) {
        stop("it is in Fortran order", path);
    }
    read_shape(&t, p, header_value(header, "'shape'"), path);
    free(header);
    t.data = grab(t.n * item_bytes(p));
    if (fread(t.data, (size_t)item_bytes(p), (size_t)t.n, f) != (size_t)t.n) {
        stop("ends within its data", path);
    }
    (void)fclose(f);
    return t;
}

/* Reads value:JSON, which is a number, true or false, for an input of rank 0. */
static Tensor read_value(const Port *p, const char *s)
{
    Tensor t;
    char *end = NULL;
    (void)memset(&t, 0, sizeof t);
    double d = strtod(s, &end);
    int64_t i = (int64_t)strtoll(s, NULL, 10);
    if (strcmp(s, "true") == 0) {
        d = 1.0;
        i = 1;
    } else if ((strcmp(s, "false") != 0) && ((end == s) || (*end != '\0'))) {
        stop("is not a number, true or false", s);
    }
    if (p->rank != 0) {
        stop("is a number, but the input has dimensions: give a .npy file", s);
    }
    t.n = 1;
    t.data = grab(8);
    if (strcmp(p->type, "f4") == 0) {
        float f = (float)d;
        (void)memcpy(t.data, &f, sizeof f);
    } else if (strcmp(p->type, "f8") == 0) {
        (void)memcpy(t.data, &d, sizeof d);
    } else { /* little-endian integers and bool */
        (void)memcpy(t.data, &i, (size_t)item_bytes(p));
    }
    return t;
}

/* Returns whether two texts are the same number, perhaps written differently. */
static int same_number(const char *a, const char *b)
{
    char *a_end = NULL, *b_end = NULL;
    double x = strtod(a, &a_end), y = strtod(b, &b_end);
    return (a_end != a) && (b_end != b) && (*a_end == '\0') && (*b_end == '\0') && (x == y);
}

static Tensor read_fixed(const Port *p, const char *text)
{
    Tensor t;
    const char *s = (strncmp(text, "value:", 6U) == 0) ? text + 6 : "";
    (void)memset(&t, 0, sizeof t);
    if ((strcmp(s, p->fixed) != 0) && (same_number(s, p->fixed) == 0)) {
        stop("the export fixed it to another value", p->name);
    }
    return t;
}

static Tensor read_input(const Port *p, const char *text)
{
    if (p->fixed != NULL) {
        return read_fixed(p, text);
    }
    return (strncmp(text, "value:", 6U) == 0) ? read_value(p, text + 6) : read_npy(p, text);
}

static void make_dir(const char *path)
{
    if ((mkdir(path, 0777) != 0) && (errno != EEXIST)) {
        stop(strerror(errno), path);
    }
}

static void write_npy(const Port *p, const Tensor *t, const char *path)
{
    char header[512];
    int n = snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                     (item_bytes(p) > 1) ? '<' : '|', p->type);
    for (int i = 0; i < p->rank; i++) {
        n += snprintf(header + n, sizeof header - (size_t)n, "%s%lld%s", (i > 0) ? ", " : "",
                      (long long)t->dim[i], (p->rank == 1) ? "," : "");
    }
    n += snprintf(header + n, sizeof header - (size_t)n, "), }");
    int pad = 64 - ((10 + n + 1) % 64);
    int len = n + pad + 1;
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        stop(strerror(errno), path);
        return;
    }
    (void)fprintf(f, "\x93NUMPY%c%c%c%c%s%*s\n", 1, 0, len & 255, len >> 8, header, pad, "");
    (void)fwrite(t->data, (size_t)item_bytes(p), (size_t)t->n, f);
    if ((ferror(f) != 0) || (fclose(f) != 0)) {
        stop("cannot be written", path);
    }
}

static void print_item(const Port *p, const unsigned char *at)
{
    const int64_t bytes = item_bytes(p);
    uint64_t bits = 0U;
    if (strcmp(p->type, "f4") == 0) {
        float f = 0.0F;
        (void)memcpy(&f, at, sizeof f);
        (void)printf(" %.9g", (double)f);
        return;
    }
    if (strcmp(p->type, "f8") == 0) {
        double g = 0.0;
        (void)memcpy(&g, at, sizeof g);
        (void)printf(" %.17g", g);
        return;
    }
    (void)memcpy(&bits, at, (size_t)bytes);
    if (p->type[0] == 'i') {
        const uint64_t sign = (uint64_t)1U << ((8 * bytes) - 1);
        (void)printf(" %lld", (long long)(int64_t)((bits ^ sign) - sign));
    } else if (bytes == 2) { /* a float16 or bfloat16 */
        (void)printf(" 0x%04llx", (unsigned long long)bits);
    } else {
        (void)printf(" %llu", (unsigned long long)bits);
    }
}

static void print_tensor(const Port *p, const Tensor *t)
{
    const int64_t bytes = item_bytes(p), shown = (t->n < 16) ? t->n : 16;
    if (p->type[0] == 'b') {
        (void)printf("bool[");
    } else {
        (void)printf("%c%lld[", p->type[0], (long long)(8 * bytes));
    }
    for (int i = 0; i < p->rank; i++) {
        (void)printf("%s%lld", (i > 0) ? "," : "", (long long)t->dim[i]);
    }
    (void)printf("]");
    for (int64_t i = 0; i < shown; i++) {
        print_item(p, (const unsigned char *)t->data + (i * bytes));
    }
    (void)printf("%s\n", (t->n > shown) ? " ..." : "");
}

#endif
