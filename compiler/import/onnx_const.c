/* onnx_const.c -- tensors of an ONNX file: in its raw data, in typed fields, or in files beside it. */
#include "compiler/import/onnx.h"
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool onnx_dtype(int32_t code, EtcDtype *out)
{
    static const int of[] = {-1, ETC_F32, ETC_U8, ETC_I8, ETC_U16, ETC_I16, ETC_I32, ETC_I64,
                             -1, ETC_BOOL, ETC_F16, ETC_F64, ETC_U32, ETC_U64, -1, -1,
                             ETC_BF16, ETC_F8E4M3FN, ETC_F8E4M3FNUZ, ETC_F8E5M2, ETC_F8E5M2FNUZ,
                             ETC_U8, ETC_I8, -1, -1, ETC_U8, ETC_I8};
    if (code < 0 || code >= (int32_t)(sizeof of / sizeof *of) || of[code] < 0)
        return false;
    *out = (EtcDtype)of[code];
    return true;
}

int onnx_bits(int32_t code)
{
    enum { U4 = 21, I4, U2 = 25, I2 };
    return code == U4 || code == I4 ? 4 : code == U2 || code == I2 ? 2 : 0;
}

/* -- typed fields ------------------------------------------------------------------------------ */

/* A field of numbers of one width.  int32_data holds narrower ones, each in 32 bits. */
typedef struct Numbers {
    const void *data;
    size_t n, size;
} Numbers;

static Numbers typed_field(const Onnx__Tensor *t, EtcDtype dtype)
{
    switch ((int)dtype) {
    case ETC_F32:
        return (Numbers){t->float_data, t->n_float_data, sizeof(float)};
    case ETC_F64:
        return (Numbers){t->double_data, t->n_double_data, sizeof(double)};
    case ETC_I64:
        return (Numbers){t->int64_data, t->n_int64_data, sizeof(int64_t)};
    case ETC_U32:
    case ETC_U64:
        return (Numbers){t->uint64_data, t->n_uint64_data, sizeof(uint64_t)};
    default:
        return (Numbers){t->int32_data, t->n_int32_data, sizeof(int32_t)};
    }
}

/* Returns whether `size` bytes hold each number, with a sign or without. */
static bool all_fit(Numbers f, size_t size)
{
    for (size_t i = 0; size < f.size && i < f.n; i++) {
        int64_t v = f.size == sizeof(int32_t) ? ((const int32_t *)f.data)[i] : ((const int64_t *)f.data)[i];
        int64_t end = (int64_t)1 << 8 * size;
        if (v >= end || v < -end / 2)
            return false;
    }
    return true;
}

/* Returns the low bytes of each number.  The host is little-endian. */
static const uint8_t *narrowed(Arena *a, Numbers f, size_t size)
{
    assert(size <= f.size);
    uint8_t *to = arena_bytes(a, f.n * size + 1);
    for (size_t i = 0; i < f.n; i++)
        memcpy(to + i * size, (const uint8_t *)f.data + i * f.size, size);
    return to;
}

/* -- files beside the model -------------------------------------------------------------------- */

typedef struct External {
    uint8_t *data;
    size_t n;
} External;

static bool decimal(ProtobufCBinaryData text, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9' || !mul_ok(*out, 10, out) ||
            !add_ok(*out, text.data[i] - '0', out))
            return false;
    return text.len > 0;
}

/* Returns a path without "./" at its front, which some exporters write. */
static const char *from_here(const char *path)
{
    while (!strncmp(path, "./", 2))
        path += 2;
    return path;
}

/* Returns whether a path has only names between slashes, so that it leads downwards. */
static bool leads_down(const char *path)
{
    for (size_t n;; path += n + 1) {
        n = strcspn(path, "/");
        if (!n || !strncmp(path, "..", n)) /* or "." */
            return false;
        if (!path[n])
            return true;
    }
}

static const External *external_file(Onnx *o, Loc loc, const char *written)
{
    const char *name = from_here(written);
    TableItem *known = table_at_copy(&o->externals, name, strlen(name));
    if (known->ptr)
        return known->ptr;
    if (strchr(name, '\\') || !leads_down(name)) {
        diag_error(o->diag, loc,
                   "the external data are in '%s', expected a path beneath the model's folder",
                   written);
        return NULL;
    }
    const char *path = arena_join(o->program->arena, o->folder.path, name);
    External *e = NEW(o->tmp, External, 1);
    if (!folder_load(&o->folder, name, o->files, o->program->arena, path, &e->data, &e->n, o->diag))
        return NULL;
    return known->ptr = e;
}

static bool external_data(Onnx *o, Loc loc, const Onnx__Tensor *t, OnnxConst *c)
{
    int64_t offset = 0, length = -1, end;
    const char *name = NULL;
    for (size_t i = 0; i < t->n_external_data; i++) {
        const Onnx__Entry *e = t->external_data[i];
        const char *key = onnx_text(o, e->key);
        if (!key)
            return false;
        if (!strcmp(key, "location") && !(name = onnx_text(o, e->value)))
            return false;
        if ((!strcmp(key, "offset") && !decimal(e->value, &offset)) ||
            (!strcmp(key, "length") && !decimal(e->value, &length)))
            return diag_error(o->diag, loc, "the %s of external data is not a number", key);
    }
    if (!name)
        return diag_error(o->diag, loc, "external data have no location");
    const External *e = external_file(o, loc, name);
    if (!e)
        return false;
    if (!add_ok(offset, c->n_bytes, &end) || end > (int64_t)e->n ||
        (length >= 0 && length != c->n_bytes))
        return diag_error(o->diag, loc,
                          "external data of %" PRId64 " bytes at %" PRId64 " are not in '%s'",
                          c->n_bytes, offset, name);
    c->data = e->data + offset;
    return true;
}

/* -- constants --------------------------------------------------------------------------------- */

static bool find_data(Onnx *o, Loc loc, const Onnx__Tensor *t, OnnxConst *c)
{
    enum { EXTERNAL = 1 };
    size_t size = etc_dtype_size((int)c->type.dtype);
    int64_t count = type_numel(c->type);
    if (t->data_location == EXTERNAL)
        return external_data(o, loc, t, c);
    Numbers f = typed_field(t, c->type.dtype);
    if (t->has_mapped_size || t->has_raw_data) {
        uint64_t n = t->has_mapped_size ? t->mapped_size : t->raw_data.len;
        /* The copy outlives the message that protobuf-c has unpacked. */
        uint8_t *copy = arena_bytes(o->program->arena, t->raw_data.len + 1);
        if (t->raw_data.len) /* an empty field has no address */
            memcpy(copy, t->raw_data.data, t->raw_data.len);
        c->data = t->has_mapped_size ? o->data + t->mapped_at : copy;
        if (f.n)
            return diag_error(o->diag, loc, "a constant has both bytes and numbers");
        return (int64_t)n == c->n_bytes ||
               diag_error(o->diag, loc, "a constant has %" PRIu64 " bytes, expected %" PRId64, n,
                          c->n_bytes);
    }
    c->data = narrowed(o->program->arena, f, size);
    if (!all_fit(f, size))
        return diag_error(o->diag, loc, "a constant has numbers that do not fit into %zu bits", 8 * size);
    return (int64_t)f.n == count ||
           diag_error(o->diag, loc, "a constant has %zu numbers, expected %" PRId64, f.n, count);
}

/* Unpacks integers that share bytes, the first in the lowest bits, into a byte each. */
static bool find_packed(Onnx *o, Loc loc, const Onnx__Tensor *t, OnnxConst *c)
{
    int64_t count = type_numel(c->type), each = 8 / c->bits, bytes = count / each + (count % each > 0);
    Dim size = DIM(bytes);
    OnnxConst packed = {.type = type_tensor(o->program, ETC_U8, 1, &size), .n_bytes = bytes};
    uint8_t *to = arena_bytes(o->program->arena, (size_t)count + 1);
    if (!find_data(o, loc, t, &packed))
        return false;
    for (int64_t i = 0; i < count; i++) {
        int v = packed.data[i / each] >> (i % each * c->bits) & ((1 << c->bits) - 1);
        bool is_below = c->type.dtype == ETC_I8 && v >> (c->bits - 1);
        to[i] = (uint8_t)(is_below ? v - (1 << c->bits) : v);
    }
    c->data = to;
    return true;
}

/* Reports a bool that is neither 0 nor 1.  Kernels rely on these two values. */
static bool check_bools(Onnx *o, Loc loc, const OnnxConst *c)
{
    for (int64_t i = 0; c->type.dtype == ETC_BOOL && i < c->n_bytes; i++)
        if (c->data[i] > 1)
            return diag_error(o->diag, loc, "a constant has a bool that is neither 0 nor 1");
    return true;
}

OnnxConst *onnx_const(Onnx *o, Loc loc, const Onnx__Tensor *t)
{
    Dim dim[MAX_RANK];
    EtcDtype dtype;
    OnnxConst *c = NEW(o->tmp, OnnxConst, 1);
    if (!onnx_dtype(t->data_type, &dtype)) {
        diag_unsupported(o->diag, loc, "a constant has ONNX's element type %d", t->data_type);
        return NULL;
    }
    if (t->n_dims > MAX_RANK) {
        diag_unsupported(o->diag, loc, "a constant has %zu axes, at most 16 are supported", t->n_dims);
        return NULL;
    }
    for (size_t i = 0; i < t->n_dims; i++) {
        dim[i] = DIM(t->dims[i]);
        if (t->dims[i] < 0) {
            diag_error(o->diag, loc, "a constant has a negative size");
            return NULL;
        }
    }
    c->type = type_tensor(o->program, dtype, (int)t->n_dims, dim);
    c->n_bytes = type_bytes(c->type);
    if (c->n_bytes == INT64_MAX) {
        diag_error(o->diag, loc, "the sizes of a constant overflow");
        return NULL;
    }
    c->bits = onnx_bits(t->data_type);
    if (c->bits)
        return find_packed(o, loc, t, c) ? c : NULL;
    return find_data(o, loc, t, c) && check_bools(o, loc, c) ? c : NULL;
}

Value *onnx_const_value(Onnx *o, const char *name, OnnxConst *c)
{
    assert(c->state || c->data || !c->n_bytes);
    if (!c->state)
        c->state = program_const(o->program, onnx_unique(o, name), name, c->type, (uint8_t *)c->data);
    return graph_state(o->graph, c->state);
}

/* -- lists ------------------------------------------------------------------------------------- */

static int64_t integer_at(EtcDtype t, const uint8_t *at)
{
    int64_t v = 0;
    assert(etc_dtype_size((int)t) <= sizeof v);
    memcpy(&v, at, etc_dtype_size((int)t));
    switch ((int)t) {
    case ETC_I8:
        return (int8_t)v;
    case ETC_I16:
        return (int16_t)v;
    case ETC_I32:
        return (int32_t)v;
    default:
        return v;
    }
}

static double short_value(EtcDtype t, uint16_t bits)
{
    assert(dtype_is_half(t));
    uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return t == ETC_F16 ? half_value(bits) : (double)v;
}

const OnnxList *onnx_const_list(Onnx *o, const OnnxConst *c)
{
    EtcDtype t = c->type.dtype;
    int64_t n = type_numel(c->type), size = dtype_bytes(t);
    if (c->type.rank > 2 || n > MAX_LIST || (dtype_is_float(t) && size < 2))
        return NULL;
    OnnxList *l = NEW(o->tmp, OnnxList, 1);
    *l = (OnnxList){.dtype = t, .rank = c->type.rank, .n = (int)n};
    l->columns = c->type.rank == 2 ? (int)c->type.dim[1].value : 0;
    if (dtype_is_float(t))
        l->number = NEW(o->tmp, double, n + 1);
    else
        l->dim = NEW(o->tmp, Dim, n + 1);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *at = c->data + i * size;
        float narrow;
        uint16_t half;
        if (t == ETC_F64)
            memcpy(&l->number[i], at, sizeof *l->number);
        else if (dtype_is_half(t))
            l->number[i] = short_value(t, *(uint16_t *)memcpy(&half, at, sizeof half));
        else if (t == ETC_F32)
            l->number[i] = (double)*(float *)memcpy(&narrow, at, sizeof narrow);
        else
            l->dim[i] = DIM(integer_at(t, at));
    }
    return l;
}
