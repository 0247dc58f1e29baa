/* pte_file.c -- reads what a .pte says about its methods, without making them runnable.  So it also
 * reads files whose operators or delegates this build lacks.  Source: ExecuTorch's program.fbs. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "runtime-lite/delegates/xnn_graph.h"
#include "runtime-lite/internal.h"
#include <stdlib.h>
#include <string.h>

bool pte_open(Files *files, const char *path, EtcProgram *p, Diag *d)
{
    const uint8_t *data;
    size_t n;
    EtcError e = {.index = -1};
    File *f = file_map(files, path, &data, &n, d);
    if (!f)
        return false;
    f->is_kept = true;
    if (!n)
        return diag_error(d, (Loc){.file = path}, "is empty");
    return !etc_program_open(p, data, n, &e) || runtime_failed(path, &e, d);
}

static const char *text_of(const EtcFlat *f, uint32_t table, int slot)
{
    uint32_t n;
    const char *s = etc_flat_string(f, table, slot, &n);
    return s ? s : "";
}

static void read_operators(const EtcFlat *f, uint32_t plan, Arena *a, PteMethod *m)
{
    EtcFlatVec ops = etc_flat_vec(f, plan, PLAN_OPERATORS);
    m->n_ops = (int)ops.n;
    m->op = NEW(a, PteOperator, ops.n + 1);
    for (uint32_t i = 0; i < ops.n; i++) {
        uint32_t op = etc_flat_item_table(f, ops, i);
        const char *name = text_of(f, op, OPERATOR_NAME);
        const char *overload = text_of(f, op, OPERATOR_OVERLOAD);
        m->op[i].name = arena_printf(a, "%s%s%s", name, *overload ? "." : "", overload);
        m->op[i].is_built_in = etc_kernel_find(name, overload) != NULL;
    }
}

static void count_calls(const EtcFlat *f, uint32_t plan, PteMethod *m)
{
    EtcFlatVec chains = etc_flat_vec(f, plan, PLAN_CHAINS);
    for (uint32_t c = 0; c < chains.n; c++) {
        EtcFlatVec code = etc_flat_vec(f, etc_flat_item_table(f, chains, c), CHAIN_INSTRUCTIONS);
        for (uint32_t i = 0; i < code.n; i++) {
            uint32_t at = etc_flat_item_table(f, code, i);
            if (etc_flat_u8(f, at, INSTRUCTION_TYPE) != KERNEL_CALL)
                continue;
            uint32_t op = etc_flat_u32(f, etc_flat_table(f, at, INSTRUCTION_VALUE), KERNEL_OPERATOR);
            if (op < (uint32_t)m->n_ops)
                m->op[op].calls++;
        }
    }
}

static const char *dtype_text(uint8_t code)
{
    return etc_dtype_size(code) ? dtype_name((EtcDtype)code) : "?";
}

static PteEnd read_tensor(const EtcFlat *f, uint32_t tensor, Arena *a)
{
    EtcFlatVec sizes = etc_flat_vec(f, tensor, TENSOR_SIZES);
    int32_t *dim = NEW(a, int32_t, sizes.n + 1);
    for (uint32_t i = 0; i < sizes.n; i++)
        dim[i] = etc_flat_item_i32(sizes, i);
    return (PteEnd){.kind = "tensor",
                    .dtype = dtype_text(etc_flat_u8(f, tensor, TENSOR_DTYPE)),
                    .rank = (int)sizes.n,
                    .dim = dim,
                    .is_dynamic = etc_flat_u8(f, tensor, TENSOR_DYNAMISM) != 0};
}

static PteEnd read_value(const EtcFlat *f, EtcFlatVec values, int32_t i, Arena *a)
{
    static const char *const kind[] = {"none", "none", "int", "bool", "float", "tensor", "string"};
    if (i < 0 || (uint32_t)i >= values.n)
        return (PteEnd){.kind = "none"};
    uint32_t v = etc_flat_item_table(f, values, (uint32_t)i);
    uint8_t type = etc_flat_u8(f, v, EVALUE_TYPE);
    if (type == VALUE_TENSOR)
        return read_tensor(f, etc_flat_table(f, v, EVALUE_VALUE), a);
    return (PteEnd){.kind = type < sizeof kind / sizeof *kind ? kind[type] : "list"};
}

static PteEnd *read_ends(const EtcFlat *f, uint32_t plan, int slot, Arena *a, int *n)
{
    EtcFlatVec values = etc_flat_vec(f, plan, PLAN_VALUES), ends = etc_flat_vec(f, plan, slot);
    PteEnd *end = NEW(a, PteEnd, ends.n + 1);
    *n = (int)ends.n;
    for (uint32_t i = 0; i < ends.n; i++)
        end[i] = read_value(f, values, etc_flat_item_i32(ends, i), a);
    return end;
}

/* A method of a program, and the names of the program's data, which blobs refer to. */
typedef struct Method {
    const EtcProgram *p;
    EtcFlat f;
    uint32_t plan;
    XnnNames names;
    const char *wrong; /* why the names could not be read, or NULL */
} Method;

static const uint8_t *blob_bytes(const Method *x, uint32_t delegate, uint64_t *n)
{
    uint32_t at = etc_flat_table(&x->f, delegate, DELEGATE_PROCESSED);
    uint32_t index = etc_flat_u32(&x->f, at, DELEGATE_DATA_INDEX);
    if (etc_flat_u8(&x->f, at, DELEGATE_DATA_LOCATION))
        return etc_program_segment(x->p, index, n);
    EtcFlatVec rows = etc_flat_vec(&x->f, x->p->root, PROGRAM_INLINE_DELEGATES);
    if (index >= rows.n)
        return NULL;
    EtcFlatVec bytes = etc_flat_vec(&x->f, etc_flat_item_table(&x->f, rows, index), BUFFER_BYTES);
    *n = bytes.n;
    return bytes.item;
}

const char *const xnn_node_name[] = {
    "",
#define X(id, name) name,
    XNN_NODES(X)
#undef X
};

/* Reads a blob of XNNPACK, with the same checks as its delegate. */
static void read_graph(const Method *x, const uint8_t *data, Arena *a, PteBlob *b)
{
    XnnGraph g;
    EtcError e = {.index = -1};
    b->is_read = etc_xnn_read(data, b->n_bytes, &x->names, &g, &e) == ETC_OK;
    b->wrong = b->is_read ? NULL : e.what ? e.what : "it is malformed";
    b->n_nodes = NEW(a, int, XNN_KINDS);
    b->n_values = b->is_read ? (int)g.n_values : 0;
    for (int i = 0; i < b->n_values; i++)
        b->n_constants += g.value[i].data || g.value[i].key != XNN_NO_ID;
    for (uint32_t i = 0; b->is_read && i < g.n_nodes; i++)
        b->n_nodes[g.node[i].kind]++;
    etc_xnn_free(&g);
}

static void read_delegates(const Method *x, Arena *a, PteMethod *m)
{
    EtcFlatVec v = etc_flat_vec(&x->f, x->plan, PLAN_DELEGATES);
    m->n_delegates = (int)v.n;
    m->delegate = NEW(a, PteBlob, v.n + 1);
    for (uint32_t i = 0; i < v.n; i++) {
        PteBlob *b = &m->delegate[i];
        uint32_t delegate = etc_flat_item_table(&x->f, v, i);
        const uint8_t *data = blob_bytes(x, delegate, &b->n_bytes);
        b->id = text_of(&x->f, delegate, DELEGATE_ID);
        bool is_xnnpack = !strcmp(b->id, "XnnpackBackend");
        b->wrong = !data ? "its bytes are not in the file" : is_xnnpack ? x->wrong : NULL;
        if (is_xnnpack && !b->wrong)
            read_graph(x, data, a, b);
    }
}

static void read_kinds(const EtcFlat *f, uint32_t plan, PteMethod *m)
{
    EtcFlatVec v = etc_flat_vec(f, plan, PLAN_VALUES);
    for (uint32_t i = 0; i < v.n; i++) {
        uint32_t value = etc_flat_item_table(f, v, i);
        uint8_t type = etc_flat_u8(f, value, EVALUE_TYPE);
        uint32_t at = etc_flat_table(f, value, EVALUE_VALUE);
        uint8_t dtype = type == VALUE_TENSOR ? etc_flat_u8(f, at, TENSOR_DTYPE) : ETC_F32;
        m->has_doubles = m->has_doubles || type == VALUE_DOUBLE || type == VALUE_DOUBLE_LIST;
        if (!etc_dtype_size(dtype))
            m->has_unknown_dtypes = true;
        else if (type == VALUE_TENSOR)
            m->dtypes |= 1u << dtype;
    }
}

static void read_pools(const EtcFlat *f, uint32_t plan, Arena *a, PteMethod *m)
{
    EtcFlatVec v = etc_flat_vec(f, plan, PLAN_POOLS);
    m->n_pools = v.n ? (int)v.n - 1 : 0; /* entry 0 is reserved */
    m->pool = NEW(a, int64_t, v.n + 1);
    for (int i = 0; i < m->n_pools; i++)
        m->pool[i] = etc_flat_item_i64(v, (uint32_t)i + 1);
}

PteMethod pte_method(const EtcProgram *p, int32_t method, Arena *a)
{
    EtcFlat f = {p->file, (uint32_t)p->flat_bytes};
    uint32_t plan = etc_flat_item_table(&f, etc_flat_vec(&f, p->root, PROGRAM_PLANS),
                                        (uint32_t)method);
    PteMethod m = {.name = text_of(&f, plan, PLAN_NAME)};
    Method x = {.p = p, .f = f, .plan = plan};
    EtcError e = {.index = -1};
    x.wrong = etc_xnn_names(p, &x.names, &e) == ETC_OK ? NULL : e.what;
    read_operators(&f, plan, a, &m);
    count_calls(&f, plan, &m);
    read_delegates(&x, a, &m);
    read_pools(&f, plan, a, &m);
    read_kinds(&f, plan, &m);
    m.in = read_ends(&f, plan, PLAN_INPUTS, a, &m.n_in);
    m.out = read_ends(&f, plan, PLAN_OUTPUTS, a, &m.n_out);
    free(x.names.row);
    return m;
}

const uint8_t *join_pieces(const OutFile *f, Arena *a, size_t *n)
{
    *n = 0;
    for (int i = 0; i < f->n; i++)
        *n += (size_t)(f->piece[i].n + f->piece[i].zeros);
    uint8_t *bytes = NEW(a, uint8_t, *n < 256 ? 256 : *n), *to = bytes; /* >= 256: it is aligned */
    for (int i = 0; i < f->n; i++) {
        if (f->piece[i].make)
            f->piece[i].make(f->piece[i].data, 0, f->piece[i].n, to);
        else if (f->piece[i].n)
            memcpy(to, f->piece[i].data, (size_t)f->piece[i].n);
        to += f->piece[i].n + f->piece[i].zeros;
    }
    return bytes;
}
