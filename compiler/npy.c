/* npy.c -- reads and writes tensors as .npy files, and reads values on the command line.
 * Source: the format's description in NumPy's documentation (numpy.lib.format). */
#include "compiler/compiler.h"
#include "compiler/import/internal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* -- headers ----------------------------------------------------------------------------- */

typedef struct Header { /* reads a header, which is a Python dict, without evaluating it */
    const char *name, *at;
    Diag *diag;
    NpyHeader *h;
} Header;

static bool fail(const Header *r, const char *what)
{
    return diag_error(r->diag, (Loc){.file = r->name}, "%s", what);
}

static void skip_blanks(Header *r)
{
    r->at += strspn(r->at, " ");
}

static bool accept(Header *r, char c)
{
    skip_blanks(r);
    bool is = *r->at == c;
    r->at += is;
    return is;
}

/* Reads the text between two equal quotes.  Returns its length, or 0 if there is no such text. */
static size_t quoted(Header *r, const char **text)
{
    skip_blanks(r);
    char quote = *r->at;
    *text = r->at + 1;
    size_t n = quote == '\'' || quote == '"' ? strcspn(*text, "'\"\\") : 0;
    if (!n || (*text)[n] != quote)
        return 0;
    r->at = *text + n + 1;
    return n;
}

static bool read_descr(Header *r)
{
    const char *s;
    size_t n = quoted(r, &s);
    if (!n)
        return fail(r, "header names no plain dtype; structured and object arrays are not read");
    if (*s == '>')
        return fail(r, "big-endian data is not read");
    size_t order = *s == '<' || *s == '|' || *s == '=';
    for (int i = 0; i < N_DESCR; i++)
        if (n == order + 2 && s[order] == descr_row[i].kind &&
            s[order + 1] == '0' + descr_row[i].size) {
            r->h->dtype = descr_row[i].dtype;
            return true;
        }
    return fail(r, s[order] == 'O' ? "object arrays are not read: they are Python's pickles"
                                   : "dtype is none that a tensor may have");
}

static bool read_shape(Header *r)
{
    NpyHeader *h = r->h;
    if (!accept(r, '('))
        return fail(r, "header has no shape");
    for (h->rank = 0; !accept(r, ')');) {
        char *end;
        skip_blanks(r);
        errno = 0;
        long long n = *r->at >= '0' && *r->at <= '9' ? strtoll(r->at, &end, 10) : -1;
        if (n < 0 || errno || n > INT32_MAX || h->rank == ETC_MAX_RANK)
            return fail(r, "shape has a size that no tensor can have");
        r->at = end + (*end == 'L');
        h->dim[h->rank++] = n;
        if (!accept(r, ',') && !strchr(" )", *r->at))
            return fail(r, "header has no shape");
    }
    return true;
}

static bool read_order(Header *r, bool *is_fortran)
{
    skip_blanks(r);
    *is_fortran = !strncmp(r->at, "True", 4);
    if (!*is_fortran && strncmp(r->at, "False", 5) != 0)
        return fail(r, "header has no order");
    r->at += *is_fortran ? 4 : 5;
    return true;
}

/* Reads the three keys, which appear once each and in any order.  Only blanks and the end of the
 * line may follow. */
static bool read_dict(Header *r, const char *end)
{
    static const char *const key[] = {"descr", "fortran_order", "shape"};
    bool has[3] = {false}, is_fortran = false, ok = accept(r, '{');
    while (ok && !accept(r, '}')) {
        const char *s;
        size_t n = quoted(r, &s);
        int k = 0;
        while (k < 3 && (n != strlen(key[k]) || memcmp(s, key[k], n) != 0))
            k++;
        if (k == 3 || has[k] || !accept(r, ':'))
            return fail(r, "header is not that of a .npy file");
        has[k] = true;
        if (!(k == 0 ? read_descr(r) : k == 1 ? read_order(r, &is_fortran) : read_shape(r)))
            return false;
        skip_blanks(r);
        ok = accept(r, ',') || *r->at == '}';
    }
    r->at += ok ? strspn(r->at, " \n") : 0;
    if (!ok || r->at != end || !has[0] || !has[1] || !has[2])
        return fail(r, "header is not that of a .npy file");
    return !is_fortran || r->h->rank < 2 ||
           fail(r, "is in Fortran order, which is not read; save numpy.ascontiguousarray(x)");
}

/* Finds where the header's text lies in the first n bytes of a file. */
static bool find_text(const Header *r, const uint8_t *head, size_t n, size_t *at, size_t *len)
{
    if (n < 12 || memcmp(head, "\x93NUMPY", 6) != 0)
        return fail(r, "is not a .npy file");
    if (head[6] < 1 || head[6] > 3)
        return fail(r, "is not a .npy file of version 1, 2 or 3");
    *at = head[6] > 1 ? 12 : 10;
    *len = (size_t)(head[8] | head[9] << 8);
    if (head[6] > 1)
        *len |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (*len > NPY_HEADER - 12)
        return fail(r, "has a header longer than 64 KiB");
    return fits(*at, *len, n) || fail(r, "ends within its header");
}

bool npy_header(const char *name, const uint8_t *head, size_t n, int64_t size, NpyHeader *h,
                Diag *d)
{
    Header r = {.name = name, .diag = d, .h = h};
    size_t at = 0, len = 0;
    if (!find_text(&r, head, n, &at, &len))
        return false;
    Arena *tmp = arena_new();
    *h = (NpyHeader){.start = (int64_t)(at + len)};
    r.at = arena_str(tmp, (const char *)head + at, len);
    bool ok = read_dict(&r, r.at + len);
    arena_free(tmp);
    if (!ok)
        return false;
    h->bytes = (int64_t)etc_dtype_size((int)h->dtype);
    for (int i = 0; i < h->rank; i++)
        if (h->dim[i] && !mul_ok(h->bytes, h->dim[i], &h->bytes))
            return fail(&r, "shape overflows");
    for (int i = 0; i < h->rank; i++)
        h->bytes = h->dim[i] ? h->bytes : 0;
    return fits((uint64_t)h->start, (uint64_t)h->bytes, (uint64_t)size) ||
           fail(&r, "ends within its data");
}

EtcDtype npy_dtype(EtcDtype is, EtcDtype want)
{
    bool is_bits = is == ETC_U16 || is == ETC_U8;
    return is_bits && etc_dtype_size((int)want) == etc_dtype_size((int)is) ? want : is;
}

bool npy_check(const EtcTensor *t, const char *name, Diag *d)
{
    int64_t n = t->dtype == ETC_BOOL ? etc_numel(t) : 0;
    for (int64_t i = 0; i < n; i++)
        if (((const uint8_t *)t->data)[i] > 1)
            return diag_error(d, (Loc){.file = name},
                              "is bool, but a byte of it is neither 0 nor 1");
    return true;
}

/* -- files ------------------------------------------------------------------------------- */

EtcTensor *npy_read(Files *files, Arena *a, const char *path, int want, Diag *d)
{
    const uint8_t *data;
    size_t n;
    NpyHeader h;
    if (!file_map(files, path, &data, &n, d) ||
        !npy_header(path, data, n, (int64_t)n, &h, d))
        return NULL;
    EtcTensor *t = tensor_new(a, h.dtype, h.rank, h.dim);
    if (h.bytes)
        memcpy(t->data, data + h.start, (size_t)h.bytes);
    t->dtype = want >= 0 ? npy_dtype(h.dtype, (EtcDtype)want) : h.dtype;
    return npy_check(t, path, d) ? t : NULL;
}

/* -- values ------------------------------------------------------------------------------ */

/* The number that value:JSON gives.  f always holds it, and i also holds it if it is whole. */
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

/* Stores a number as an integer, if the dtype can hold it. */
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

/* Reads a number as Python's json writes it, which includes NaN and Infinity.  False: it is no
 * number. */
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

/* Converts a number to a tensor of rank 0 if `like` is a tensor, and a whole number to a float if
 * `like` is a float.  Returns false if the dtype of the tensor cannot hold the number. */
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

bool input_read(Files *files, Arena *a, const char *text, const EtcValue *like, EtcValue *out,
                Diag *d)
{
    *out = (EtcValue){.tag = ETC_NONE};
    if (!strncmp(text, "value:", 6)) {
        if (!parse_value(a, text + 6, out))
            return diag_error(d, (Loc){0},
                              "'%s' is not a JSON number, true, false, null or string "
                              "without escapes",
                              text);
        return adapt(a, like, out) ||
               diag_error(d, (Loc){0}, "'%s' is not a value of dtype %s; give it as a .npy file",
                          text, dtype_name(like->as.tensor->dtype));
    }
    out->tag = ETC_TENSOR;
    int want = like && like->tag == ETC_TENSOR ? (int)like->as.tensor->dtype : -1;
    out->as.tensor = npy_read(files, a, text, want, d);
    return out->as.tensor != NULL;
}

/* -- writing ----------------------------------------------------------------------------- */

static const char *descr(EtcDtype t, char text[4])
{
    char kind = 'u'; /* dtypes that NumPy does not have are written as raw bits */
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
    assert((size_t)n < sizeof header);
    int pad = 64 - (10 + n + 1) % 64;
    unsigned len = (unsigned)(n + pad + 1);
    OutPiece *piece = NEW(a, OutPiece, 2);
    char *head = NEW(a, char, len + 11);
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)(len & 255);
    head[9] = (char)(len >> 8);
    snprintf(head + 10, len + 1, "%s%*s\n", header, pad, "");
    piece[0] = (OutPiece){.data = head, .n = (int64_t)len + 10};
    piece[1] = (OutPiece){.data = t->data, .n = etc_numel(t) * (int64_t)size};
    return (OutFile){piece, 2};
}
