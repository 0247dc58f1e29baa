/* bundle.c -- writes a BundledProgram: a .pte with inputs and their expected outputs, which the
 * official runtime's verifier reads.  Source: ExecuTorch 1.4's devtools/bundled_program/schema. */
#include "emit/emit.h"
#include "ir/flat.h"

/* The alignment that readers require. */
enum { PROGRAM_ALIGN = 32, DATA_ALIGN = 16 };

enum { VALUE_TYPE, VALUE_TABLE, N_VALUE_SLOTS };
enum { IS_TENSOR = 1, IS_INT, IS_BOOL, IS_DOUBLE }; /* the types of the union */
enum { TENSOR_DTYPE, TENSOR_SIZES, TENSOR_DATA, TENSOR_ORDER, N_TENSOR_SLOTS };
enum { CASE_INPUTS, CASE_OUTPUTS, N_CASE_SLOTS };
enum { SUITE_METHOD, SUITE_CASES, N_SUITE_SLOTS };
enum { BUNDLE_VERSION, BUNDLE_SUITES, BUNDLE_PROGRAM, N_BUNDLE_SLOTS };

static FlatRef tensor(Flat *f, const EtcTensor *t)
{
    int32_t dim[ETC_MAX_RANK];
    uint8_t order[ETC_MAX_RANK];
    assert(t->rank <= ETC_MAX_RANK && !t->order);
    for (int i = 0; i < t->rank; i++) {
        dim[i] = t->dim[i];
        order[i] = (uint8_t)i;
    }
    size_t n = (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype);
    FlatRef data = flat_bytes(f, n ? t->data : "", n, DATA_ALIGN);
    FlatRef sizes = flat_vector(f, dim, (size_t)t->rank, sizeof *dim);
    FlatRef orders = flat_vector(f, order, (size_t)t->rank, 1);
    flat_begin(f, N_TENSOR_SLOTS);
    flat_u8(f, TENSOR_DTYPE, (uint8_t)t->dtype);
    flat_ref(f, TENSOR_SIZES, sizes);
    flat_ref(f, TENSOR_DATA, data);
    flat_ref(f, TENSOR_ORDER, orders);
    return flat_end(f);
}

/* Returns the table of a value, and sets *kind to its type in the union. */
static FlatRef content(Flat *f, const EtcValue *v, uint8_t *kind)
{
    *kind = v->tag == ETC_TENSOR ? IS_TENSOR
            : v->tag == ETC_INT  ? IS_INT
            : v->tag == ETC_DOUBLE ? IS_DOUBLE : IS_BOOL;
    if (v->tag == ETC_TENSOR)
        return tensor(f, v->as.tensor);
    flat_begin(f, 1);
    if (v->tag == ETC_INT)
        flat_u64(f, 0, (uint64_t)v->as.i);
    else if (v->tag == ETC_DOUBLE)
        flat_f64(f, 0, v->as.d);
    else
        flat_u8(f, 0, v->as.b);
    return flat_end(f);
}

static FlatRef values(Flat *f, const EtcValue *v, int n, Arena *a)
{
    FlatRef *ref = NEW(a, FlatRef, n + 1);
    for (int i = 0; i < n; i++) {
        uint8_t kind;
        FlatRef table = content(f, &v[i], &kind);
        flat_begin(f, N_VALUE_SLOTS);
        flat_u8(f, VALUE_TYPE, kind);
        flat_ref(f, VALUE_TABLE, table);
        ref[i] = flat_end(f);
    }
    return flat_refs(f, ref, (size_t)n);
}

static FlatRef suite(Flat *f, const Bundle *b, Arena *a)
{
    FlatRef *ref = NEW(a, FlatRef, b->n + 1);
    for (int i = 0; i < b->n; i++) {
        FlatRef in = values(f, b->item[i].in, b->n_in, a);
        FlatRef out = values(f, b->item[i].out, b->n_out, a);
        flat_begin(f, N_CASE_SLOTS);
        flat_ref(f, CASE_INPUTS, in);
        flat_ref(f, CASE_OUTPUTS, out);
        ref[i] = flat_end(f);
    }
    FlatRef cases = flat_refs(f, ref, (size_t)b->n), method = flat_string(f, b->method);
    flat_begin(f, N_SUITE_SLOTS);
    flat_ref(f, SUITE_METHOD, method);
    flat_ref(f, SUITE_CASES, cases);
    return flat_end(f);
}

bool emit_bundle(const Bundle *b, const uint8_t *pte, size_t n, Arena *a, OutFile *out, Diag *d)
{
    Flat *f = flat_new(a);
    OutPiece *piece = NEW(a, OutPiece, 1);
    FlatRef program = flat_bytes(f, pte, n, PROGRAM_ALIGN), one = suite(f, b, a);
    FlatRef suites = flat_refs(f, &one, 1);
    flat_begin(f, N_BUNDLE_SLOTS);
    flat_u32(f, BUNDLE_VERSION, 0);
    flat_ref(f, BUNDLE_SUITES, suites);
    flat_ref(f, BUNDLE_PROGRAM, program);
    size_t bytes;
    piece->data = flat_finish(f, flat_end(f), "BP08", &bytes);
    piece->n = (int64_t)bytes;
    *out = (OutFile){piece, 1};
    return piece->data ||
           diag_unsupported(d, (Loc){0}, "the bundle would need a FlatBuffer over 2 GiB");
}
