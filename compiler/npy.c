/* npy.c -- tensors as .npy files, versions 1 and 2, and scalar values on the command line.
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
    FILE *file;
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

static bool read_header(Npy *r, Arena *a)
{
    unsigned char head[12];
    if (fread(head, 1, 10, r->file) != 10 || memcmp(head, "\x93NUMPY", 6) != 0)
        return fail(r, "not a .npy file");
    uint32_t len = (uint32_t)(head[8] | head[9] << 8);
    if (head[6] < 1 || head[6] > 3)
        return fail(r, "not a .npy file of version 1, 2 or 3");
    if (head[6] > 1) {
        if (fread(head + 10, 1, 2, r->file) != 2)
            return fail(r, "ends within the header");
        len |= (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
    }
    if (len > MAX_HEADER)
        return fail(r, "header longer than 64 KiB");
    char *header = NEW(a, char, len + 1);
    if (fread(header, 1, len, r->file) != len)
        return fail(r, "ends within the header");
    const char *order = value_of(header, "'fortran_order'");
    if (!read_descr(r, header) || !read_shape(r, header))
        return false;
    if (!order || strncmp(order, "False", 5) != 0)
        return r->rank < 2 || fail(r, "Fortran order is not read; save numpy.ascontiguousarray(x)");
    return true;
}

/* A shape may claim what the file does not hold, so memory is taken only for bytes that exist. */
static bool has_bytes(const Npy *r, int64_t bytes)
{
    long at = ftell(r->file);
    if (at < 0 || fseek(r->file, 0, SEEK_END))
        return fail(r, "cannot be read to its end");
    int64_t size = ftell(r->file);
    if (fseek(r->file, at, SEEK_SET) || size - at < bytes)
        return fail(r, "ends within the data");
    return true;
}

static EtcTensor *read_tensor(Npy *r, Arena *a, int want)
{
    if (!read_header(r, a))
        return NULL;
    int64_t bytes = (int64_t)etc_dtype_size((int)r->dtype);
    for (int i = 0; i < r->rank; i++)
        bytes *= r->dim[i];
    if (!has_bytes(r, bytes))
        return NULL;
    bool is_bits = r->dtype == ETC_U16 || r->dtype == ETC_U8;
    if (want >= 0 && is_bits && etc_dtype_size(want) == etc_dtype_size((int)r->dtype))
        r->dtype = (EtcDtype)want;
    EtcTensor *t = tensor_new(a, r->dtype, r->rank, r->dim);
    if (fread(t->data, 1, (size_t)bytes, r->file) != (size_t)bytes) {
        fail(r, "ends within the data");
        return NULL;
    }
    return t;
}

EtcTensor *npy_read(Arena *a, const char *path, int want, Diag *d)
{
    Npy r = {.path = path, .file = fopen(path, "rb"), .diag = d};
    if (!r.file) {
        diag_io(d, (Loc){.file = path}, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    EtcTensor *t = read_tensor(&r, a, want);
    fclose(r.file);
    return t;
}

/* -- values ------------------------------------------------------------------------------ */

static bool number_tensor(Arena *a, double f, int64_t i, EtcDtype dtype, EtcValue *out)
{
    EtcTensor *t = tensor_new(a, dtype, 0, NULL);
    *out = (EtcValue){.tag = ETC_TENSOR, .as.tensor = t};
    switch (dtype) {
    case ETC_F32:
        *(float *)t->data = (float)f;
        return true;
    case ETC_F64:
        *(double *)t->data = f;
        return true;
    case ETC_I64:
        *(int64_t *)t->data = i;
        return true;
    case ETC_I32:
        *(int32_t *)t->data = (int32_t)i;
        return i >= INT32_MIN && i <= INT32_MAX;
    case ETC_BOOL:
        *(uint8_t *)t->data = i != 0;
        return true;
    default:
        return false;
    }
}

static bool value_read(Arena *a, const char *s, const EtcValue *like, EtcValue *out)
{
    char *end;
    size_t len = strlen(s);
    bool wants_tensor = like && like->tag == ETC_TENSOR;
    if (!strcmp(s, "null"))
        *out = (EtcValue){.tag = ETC_NONE};
    else if (!strcmp(s, "true") || !strcmp(s, "false"))
        *out = (EtcValue){.tag = ETC_IS_BOOL, .as.b = *s == 't'};
    else if (*s == '"' && len >= 2 && s[len - 1] == '"' && !memchr(s + 1, '\\', len - 2))
        *out = (EtcValue){.tag = ETC_STRING,
                          .as.str = {arena_str(a, s + 1, len - 2), (int32_t)len - 2}};
    else if (errno = 0, out->as.i = strtoll(s, &end, 10), len && !*end && !errno)
        out->tag = ETC_INT;
    else if (out->as.d = strtod(s, &end), len && !*end)
        out->tag = ETC_DOUBLE;
    else
        return false;
    if (!wants_tensor || out->tag == ETC_NONE || out->tag == ETC_STRING)
        return true;
    double f = out->tag == ETC_DOUBLE ? out->as.d : 0;
    int64_t i = out->tag == ETC_INT ? out->as.i : out->tag == ETC_IS_BOOL ? out->as.b : (int64_t)f;
    return number_tensor(a, out->tag == ETC_DOUBLE ? f : (double)i, i, like->as.tensor->dtype, out);
}

bool input_read(Arena *a, const char *text, const EtcValue *like, EtcValue *out, Diag *d)
{
    *out = (EtcValue){.tag = ETC_NONE};
    if (!strncmp(text, "value:", 6))
        return value_read(a, text + 6, like, out) ||
               diag_error(d, (Loc){0}, "'%s' is no JSON number, true, false, null or string", text);
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

bool npy_write(const char *path, const EtcTensor *t, Diag *d)
{
    char header[512], type[4];
    size_t size = etc_dtype_size((int)t->dtype);
    int n = snprintf(header, sizeof header, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                     size > 1 ? "<" : "|", descr(t->dtype, type));
    for (int i = 0; i < t->rank; i++)
        n += snprintf(header + n, sizeof header - (size_t)n, "%d,%s", (int)t->dim[i],
                      i + 1 < t->rank ? " " : "");
    n += snprintf(header + n, sizeof header - (size_t)n, "), }");
    int pad = 64 - (10 + n + 1) % 64;
    unsigned len = (unsigned)(n + pad + 1);
    FILE *f = fopen(path, "wb");
    if (!f)
        return diag_io(d, (Loc){.file = path}, "cannot be written: %s", strerror(errno));
    fprintf(f, "%cNUMPY%c%c%c%c%s%*s\n", 0x93, 1, 0, (int)(len & 255), (int)(len >> 8), header, pad,
            "");
    size_t bytes = (size_t)etc_numel(t) * size;
    bool ok = bytes == 0 || fwrite(t->data, 1, bytes, f) == bytes;
    ok = fclose(f) == 0 && ok;
    if (!ok)
        remove(path);
    return ok || diag_io(d, (Loc){.file = path}, "cannot be written: %s", strerror(errno));
}
