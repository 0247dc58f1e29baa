/* npy.c -- tensors as .npy files, versions 1 to 3, and scalar values on the command line.
 * Source: the format's description in NumPy's documentation (numpy.lib.format). */
#include "compiler/compiler.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 64 * 1024 };

static const struct {
    char kind;
    int size;
    EtcDtype dtype;
} descr_row[] = {
    {'f', 4, ETC_F32}, {'f', 8, ETC_F64}, {'f', 2, ETC_F16}, {'b', 1, ETC_BOOL},
    {'i', 1, ETC_I8},  {'i', 2, ETC_I16}, {'i', 4, ETC_I32}, {'i', 8, ETC_I64},
    {'u', 1, ETC_U8},  {'u', 2, ETC_U16}, {'u', 4, ETC_U32}, {'u', 8, ETC_U64},
};

enum { N_DESCR = sizeof descr_row / sizeof *descr_row };

/* -- reading ----------------------------------------------------------------------------- */

typedef struct Npy {
    const char *path;
    const uint8_t *data; /* the mapped file */
    size_t n;
    size_t start; /* of the elements */
    Diag *diag;
    EtcDtype dtype;
    int rank;
    int64_t dim[ETC_MAX_RANK];
} Npy;

static bool fail(const Npy *r, const char *what)
{
    return diag_error(r->diag, (Loc){.file = r->path}, "%s", what);
}

/* The text behind 'key': in the header's dict, or NULL. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at)
        return NULL;
    at += strlen(key);
    at += strspn(at, " ");
    return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool read_descr(Npy *r, const char *header)
{
    const char *s = value_of(header, "'descr'");
    if (!s || (*s != '\'' && *s != '"'))
        return fail(r, "header names no plain dtype; structured and object arrays are not read");
    s++;
    if (*s == '>')
        return fail(r, "big-endian data is not read");
    s += *s == '<' || *s == '|' || *s == '=';
    for (int i = 0; i < N_DESCR; i++)
        if (*s == descr_row[i].kind && s[1] == '0' + descr_row[i].size &&
            (s[2] == '\'' || s[2] == '"')) {
            r->dtype = descr_row[i].dtype;
            return true;
        }
    return fail(r, "dtype is none that a tensor may have");
}

static bool read_shape(Npy *r, const char *header)
{
    const char *s = value_of(header, "'shape'");
    if (!s || *s++ != '(')
        return fail(r, "header has no shape");
    int64_t bytes = (int64_t)etc_dtype_size((int)r->dtype);
    for (r->rank = 0; *(s += strspn(s, " ,")) != ')';) {
        char *end;
        errno = 0;
        long long n = strtoll(s, &end, 10);
        if (end == s || errno || n < 0 || n > INT32_MAX || r->rank == ETC_MAX_RANK)
            return fail(r, "shape has a size that no tensor can have");
        s = end + (*end == 'L');
        r->dim[r->rank++] = n;
        if (n && !mul_ok(bytes, n, &bytes))
            return fail(r, "shape overflows");
    }
    return true;
}

/* The header's text, in `a`; NULL: reported. */
static const char *header_text(Npy *r, Arena *a)
{
    const uint8_t *head = r->data;
    if (r->n < 12 || memcmp(head, "\x93NUMPY", 6) != 0)
        return fail(r, "is not a .npy file"), NULL;
    if (head[6] < 1 || head[6] > 3)
        return fail(r, "is not a .npy file of version 1, 2 or 3"), NULL;
    size_t len = (size_t)(head[8] | head[9] << 8), at = head[6] > 1 ? 12 : 10;
    if (head[6] > 1)
        len |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (len > MAX_HEADER)
        return fail(r, "has a header longer than 64 KiB"), NULL;
    if (len > r->n - at)
        return fail(r, "ends within its header"), NULL;
    r->start = at + len;
    return arena_str(a, (const char *)head + at, len);
}

static bool read_header(Npy *r, Arena *a)
{
    const char *header = header_text(r, a);
    if (!header || !read_descr(r, header) || !read_shape(r, header))
        return false;
    const char *order = value_of(header, "'fortran_order'");
    bool is_c = order && !strncmp(order, "False", 5);
    return is_c || r->rank < 2 ||
           fail(r, "is in Fortran order, which is not read; save numpy.ascontiguousarray(x)");
}

static EtcTensor *read_tensor(Npy *r, Arena *a, int want)
{
    if (!read_header(r, a))
        return NULL;
    int64_t bytes = (int64_t)etc_dtype_size((int)r->dtype);
    for (int i = 0; i < r->rank; i++)
        bytes *= r->dim[i];
    if ((uint64_t)bytes > r->n - r->start) {
        fail(r, "ends within its data");
        return NULL;
    }
    for (int64_t i = 0; r->dtype == ETC_BOOL && i < bytes; i++)
        if (r->data[r->start + (size_t)i] > 1) {
            fail(r, "is bool, but a byte of it is neither 0 nor 1");
            return NULL;
        }
    bool is_bits = r->dtype == ETC_U16 || r->dtype == ETC_U8;
    if (want >= 0 && is_bits && etc_dtype_size(want) == etc_dtype_size((int)r->dtype))
        r->dtype = (EtcDtype)want;
    EtcTensor *t = tensor_new(a, r->dtype, r->rank, r->dim);
    if (bytes)
        memcpy(t->data, r->data + r->start, (size_t)bytes);
    return t;
}

EtcTensor *npy_read(Arena *a, const char *path, int want, Diag *d)
{
    Npy r = {.path = path, .diag = d};
    return map_file(path, &r.data, &r.n, d) ? read_tensor(&r, a, want) : NULL;
}

/* -- values ------------------------------------------------------------------------------ */

/* What value:JSON says: f always, i where it is a whole number. */
typedef struct Number {
    double f;
    int64_t i;
    bool is_whole;
} Number;

static Number number_of(const EtcValue *v)
{
    if (v->tag == ETC_INT)
        return (Number){(double)v->as.i, v->as.i, true};
    if (v->tag == ETC_IS_BOOL)
        return (Number){v->as.b, v->as.b, true};
    double f = v->as.d;
    bool is_whole = f >= -9007199254740992.0 && f <= 9007199254740992.0 && (double)(int64_t)f == f;
    return (Number){f, is_whole ? (int64_t)f : 0, is_whole};
}

/* Stores the lowest bytes, after checking that they hold the number. */
static bool store_int(EtcTensor *t, Number n)
{
    int bits = 8 * (int)etc_dtype_size((int)t->dtype);
    bool is_signed = t->dtype == ETC_I8 || t->dtype == ETC_I16 || t->dtype == ETC_I32 ||
                     t->dtype == ETC_I64;
    int64_t hi = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - is_signed)) - 1;
    int64_t lo = is_signed ? -hi - 1 : 0;
    if (t->dtype == ETC_BOOL)
        hi = 1;
    if (!n.is_whole || n.i < lo || n.i > hi)
        return false;
    memcpy(t->data, &n.i, (size_t)bits / 8); /* the host is little-endian, as the format is */
    return true;
}

static bool store(EtcTensor *t, Number n)
{
    float f = (float)n.f;
    switch (t->dtype) {
    case ETC_F32:
        memcpy(t->data, &f, sizeof f);
        return true;
    case ETC_F64:
        memcpy(t->data, &n.f, sizeof n.f);
        return true;
    default:
        return (t->dtype == ETC_BOOL || dtype_is_int(t->dtype)) && store_int(t, n);
    }
}

/* As Python's json writes numbers, so also NaN and Infinity. */
static bool parse_number(const char *s, EtcValue *out)
{
    char *end;
    bool is_word = !strcmp(s, "NaN") || !strcmp(s, "Infinity") || !strcmp(s, "-Infinity");
    if (!*s || (!is_word && s[strspn(s, "+-.eE0123456789")]) || *s == '+' || *s == '.')
        return false;
    errno = 0;
    out->tag = ETC_INT;
    out->as.i = strtoll(s, &end, 10);
    if (!*end && !errno)
        return true;
    out->tag = ETC_DOUBLE;
    out->as.d = strtod(s, &end);
    return !*end;
}

static bool parse_value(Arena *a, const char *s, EtcValue *out)
{
    size_t len = strlen(s);
    if (!strcmp(s, "null"))
        *out = (EtcValue){.tag = ETC_NONE};
    else if (!strcmp(s, "true") || !strcmp(s, "false"))
        *out = (EtcValue){.tag = ETC_IS_BOOL, .as.b = *s == 't'};
    else if (*s == '"' && len >= 2 && s[len - 1] == '"' && !memchr(s + 1, '\\', len - 2))
        *out = (EtcValue){.tag = ETC_STRING,
                          .as.str = {arena_str(a, s + 1, len - 2), (int32_t)len - 2}};
    else
        return parse_number(s, out);
    return true;
}

/* A number where a tensor is wanted is one of rank 0; a whole one serves where a float is. */
static bool adapt(Arena *a, const EtcValue *like, EtcValue *v)
{
    bool is_number = v->tag == ETC_INT || v->tag == ETC_DOUBLE || v->tag == ETC_IS_BOOL;
    if (like && like->tag == ETC_DOUBLE && v->tag == ETC_INT)
        *v = (EtcValue){.tag = ETC_DOUBLE, .as.d = (double)v->as.i};
    if (!like || like->tag != ETC_TENSOR || !is_number)
        return true;
    EtcTensor *t = tensor_new(a, like->as.tensor->dtype, 0, NULL);
    bool ok = store(t, number_of(v));
    *v = (EtcValue){.tag = ETC_TENSOR, .as.tensor = t};
    return ok;
}

bool input_read(Arena *a, const char *text, const EtcValue *like, EtcValue *out, Diag *d)
{
    *out = (EtcValue){.tag = ETC_NONE};
    if (!strncmp(text, "value:", 6)) {
        if (!parse_value(a, text + 6, out))
            return diag_error(d, (Loc){0},
                              "'%s' is no JSON number, true, false, null or string "
                              "without escapes",
                              text);
        return adapt(a, like, out) ||
               diag_error(d, (Loc){0}, "'%s' is no value of dtype %s; give it as a .npy file", text,
                          dtype_name(like->as.tensor->dtype));
    }
    out->tag = ETC_TENSOR;
    int want = like && like->tag == ETC_TENSOR ? (int)like->as.tensor->dtype : -1;
    out->as.tensor = npy_read(a, text, want, d);
    return out->as.tensor != NULL;
}

/* -- writing ----------------------------------------------------------------------------- */

static const char *descr(EtcDtype t, char text[4])
{
    char kind = 'u'; /* raw bits of what numpy lacks */
    for (int i = 0; i < N_DESCR; i++)
        if (descr_row[i].dtype == t)
            kind = descr_row[i].kind;
    snprintf(text, 4, "%c%d", kind, (int)etc_dtype_size((int)t));
    return text;
}

OutFile npy_file(Arena *a, const EtcTensor *t)
{
    char header[512], type[4];
    size_t size = etc_dtype_size((int)t->dtype);
    int n = snprintf(header, sizeof header, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                     size > 1 ? "<" : "|", descr(t->dtype, type));
    for (int i = 0; i < t->rank; i++)
        n += snprintf(header + n, sizeof header - (size_t)n, "%s%d%s", i ? ", " : "",
                      (int)t->dim[i], t->rank == 1 ? "," : "");
    n += snprintf(header + n, sizeof header - (size_t)n, "), }");
    int pad = 64 - (10 + n + 1) % 64;
    unsigned len = (unsigned)(n + pad + 1);
    OutPiece *piece = NEW(a, OutPiece, 2);
    char *head = NEW(a, char, len + 11);
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)(len & 255);
    head[9] = (char)(len >> 8);
    snprintf(head + 10, len + 1, "%s%*s\n", header, pad, "");
    piece[0] = (OutPiece){head, (int64_t)len + 10, 0};
    piece[1] = (OutPiece){t->data, etc_numel(t) * (int64_t)size, 0};
    return (OutFile){piece, 2};
}
