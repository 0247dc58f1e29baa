/* npy.c -- makes and compares .npy files for the tests of emitted C.
 *
 *     npy random TYPE DIMS SEED FILE    TYPE of ETC_DTYPES; DIMS "2,3", "-" for none
 *     npy same A B                      dtype, sizes and bits agree; any NaN equals any
 *     npy close A B ATOL RTOL           of floats
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Npy {
    char type[3], shape[256];
    size_t n, size;
    unsigned char *data;
} Npy;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "npy: %s: %s\n", which, what);
    exit(2);
}

/* Copies to `out` what stands between `from` and `to` behind the key, without blanks and a last
 * comma. */
static void take(const char *header, const char *key, const char *from, char to, char *out,
                 size_t room)
{
    const char *at = strstr(header, key);
    at = at ? strstr(at, from) : NULL;
    if (!at)
        die("no such key", key);
    size_t n = 0;
    for (at += strlen(from); *at && *at != to && n + 1 < room; at++)
        if (*at != ' ')
            out[n++] = *at;
    n -= n && out[n - 1] == ',';
    out[n] = '\0';
}

static Npy load(const char *path)
{
    static char header[65536];
    unsigned char head[10];
    char descr[8];
    Npy a = {.n = 1};
    FILE *f = fopen(path, "rb");
    if (!f || fread(head, 1, 10, f) != 10 || memcmp(head, "\x93NUMPY", 6) != 0)
        die("no .npy file", path);
    size_t n = (size_t)head[8] | (size_t)head[9] << 8;
    if (fread(header, 1, n, f) != n)
        die("ends within its header", path);
    header[n] = '\0';
    take(header, "'descr'", ": '", '\'', descr, sizeof descr);
    take(header, "'shape'", "(", ')', a.shape, sizeof a.shape);
    memcpy(a.type, descr + 1, 2);
    a.size = (size_t)(a.type[1] - '0');
    for (const char *s = a.shape; *s; s += strcspn(s, ","), s += *s == ',')
        a.n *= strtoul(s, NULL, 10);
    a.data = malloc(a.n * a.size + 1);
    if (!a.data || fread(a.data, a.size, a.n, f) != a.n)
        die("ends within its data", path);
    fclose(f);
    return a;
}

static double number(const Npy *a, size_t i)
{
    float f;
    double d;
    if (a->type[0] == 'f' && a->size == 4) {
        memcpy(&f, a->data + 4 * i, 4);
        return (double)f;
    }
    if (a->type[0] == 'f' && a->size == 8) {
        memcpy(&d, a->data + 8 * i, 8);
        return d;
    }
    return 0;
}

static int same_element(const Npy *a, const Npy *b, size_t i)
{
    return !memcmp(a->data + i * a->size, b->data + i * a->size, a->size) ||
           (isnan(number(a, i)) && isnan(number(b, i)));
}

static int close_element(const Npy *a, const Npy *b, size_t i, double atol, double rtol)
{
    double x = number(a, i), y = number(b, i);
    return same_element(a, b, i) || fabs(x - y) <= atol + rtol * fabs(y);
}

static int compare(const char *pa, const char *pb, double atol, double rtol)
{
    Npy a = load(pa), b = load(pb);
    if (strcmp(a.type, b.type) != 0 || strcmp(a.shape, b.shape) != 0) {
        printf("%s is %s(%s), %s is %s(%s)\n", pa, a.type, a.shape, pb, b.type, b.shape);
        return 1;
    }
    for (size_t i = 0; i < a.n; i++)
        if (atol < 0 ? !same_element(&a, &b, i) : !close_element(&a, &b, i, atol, rtol)) {
            printf("%s element %zu of %zu is %.9g, expected %.9g\n", pa, i, a.n, number(&a, i),
                   number(&b, i));
            return 1;
        }
    return 0;
}

/* -- random ------------------------------------------------------------------------------------ */

static uint64_t next(uint64_t *s) /* splitmix64 */
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void put_element(FILE *f, const char *type, uint64_t r)
{
    double d = ((double)(r >> 11) / 9007199254740992.0 - 0.5) * 6;
    float s = (float)d;
    if (!strcmp(type, "f4")) {
        fwrite(&s, 4, 1, f);
    } else if (!strcmp(type, "f8")) {
        fwrite(&d, 8, 1, f);
    } else {
        r = type[0] == 'b' ? r & 1 : type[1] == '8' ? (uint64_t)((int64_t)r >> 40) : r;
        fwrite(&r, (size_t)(type[1] - '0'), 1, f);
    }
}

static int random_file(const char *dtype, const char *dims, const char *seed, const char *path)
{
    static const char *const name[][2] = {
        {"f32", "f4"}, {"f64", "f8"}, {"bool", "b1"}, {"i8", "i1"},  {"u8", "u1"},
        {"i16", "i2"}, {"i32", "i4"}, {"i64", "i8"},  {"u16", "u2"}, {"u32", "u4"}};
    const char *type = NULL;
    char header[256];
    uint64_t s = strtoul(seed, NULL, 10) + 1, n = 1;
    FILE *f = fopen(path, "wb");
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        type = strcmp(name[i][0], dtype) ? type : name[i][1];
    if (!type || !f)
        die("unknown dtype, or cannot be written", dtype);
    dims = strcmp(dims, "-") ? dims : "";
    for (const char *d = dims; *d; d += strcspn(d, ","), d += *d == ',')
        n *= strtoul(d, NULL, 10);
    int len = snprintf(header, sizeof header,
                       "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }",
                       type[1] == '1' ? '|' : '<', type, dims, *dims ? "," : "");
    int pad = 64 - (10 + len + 1) % 64;
    fprintf(f, "\x93NUMPY%c%c%c%c%s%*s\n", 1, 0, (len + pad + 1) & 255, (len + pad + 1) >> 8,
            header, pad, "");
    for (uint64_t i = 0; i < n; i++)
        put_element(f, type, next(&s));
    return fclose(f);
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "random"))
        return random_file(argv[2], argv[3], argv[4], argv[5]);
    if (argc == 4 && !strcmp(argv[1], "same"))
        return compare(argv[2], argv[3], -1, 0);
    if (argc == 6 && !strcmp(argv[1], "close"))
        return compare(argv[2], argv[3], strtod(argv[4], NULL), strtod(argv[5], NULL));
    die("random, same or close", "usage");
}
