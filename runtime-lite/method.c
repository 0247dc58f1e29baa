/* method.c -- says what a method needs, then builds it in the caller's tables, checking every
 * value, input, output, instruction and operator.  Instructions, static sizes, strings and number
 * lists stay in the file; the tables hold values, tensors, list items and sizes that may change. */
#include "runtime-lite/internal.h"
#include "runtime-lite/kernels/kernels.h"

#include <string.h>

enum {
    MAX_POOLS = 16,
    MAX_ITEMS = 1 << 24, /* of lists and calls; tables may share vectors, so the file is no bound */
    TABLE_ALIGN = 16,
    POOL_ALIGN = 64
};

typedef struct Counts {
    uint64_t items, dims, work;
    uint32_t slots, args;
} Counts;

typedef struct Build {
    EtcMethod *m;
    const EtcProgram *p;
    void *const *pools;
    EtcError *e;
    EtcFlat f;
    uint32_t plan, n_slots, n_items, n_dims;
} Build;

/* -- measure ----------------------------------------------------------------------------- */

static EtcStatus bad(EtcError *e, const char *what, int64_t index)
{
    return etc_fail(e, ETC_BAD_FILE, what, index);
}

static EtcStatus check_plan(const EtcFlat *f, uint32_t plan, EtcError *e)
{
    static const uint8_t required[] = {PLAN_VALUES,    PLAN_INPUTS,    PLAN_OUTPUTS, PLAN_CHAINS,
                                       PLAN_OPERATORS, PLAN_DELEGATES, PLAN_POOLS};
    for (size_t i = 0; i < sizeof required; i++) {
        if (etc_flat_vec(f, plan, required[i]).item == NULL) {
            return bad(e, "method lacks one of its vectors", required[i]);
        }
    }
    EtcFlatVec devices = etc_flat_vec(f, plan, PLAN_DEVICES);
    for (uint32_t i = 0; i < devices.n; i++) {
        if (etc_flat_u8(f, etc_flat_item_table(f, devices, i), 1) != 0) {
            return etc_fail(e, ETC_UNSUPPORTED, "planned memory on a device", i);
        }
    }
    return ETC_OK;
}

static EtcStatus count_value(const EtcFlat *f, uint32_t evalue, uint32_t i, Counts *c, EtcError *e)
{
    uint8_t type = etc_flat_u8(f, evalue, UNION_TYPE);
    uint32_t at = etc_flat_table(f, evalue, UNION_VALUE);
    if (type == 0) {
        return bad(e, "value without a type", i);
    }
    if (type == VALUE_TENSOR) {
        uint32_t rank = etc_flat_vec(f, at, TENSOR_SIZES).n;
        if (rank > ETC_MAX_RANK) {
            return bad(e, "tensor of more than 16 dimensions", i);
        }
        c->slots++;
        c->dims += etc_flat_u8(f, at, TENSOR_DYNAMISM) ? rank : 0;
    } else if (type >= VALUE_STRING) {
        EtcFlatVec v = etc_flat_vec(f, at, ITEMS);
        if (v.item == NULL) {
            return bad(e, "list or string without its items", i);
        }
        c->work += v.n;
        c->items += ((type == VALUE_INT_LIST) || (type >= VALUE_TENSOR_LIST)) ? v.n : 0;
    }
    return ETC_OK;
}

static EtcStatus count_chain(const EtcFlat *f, uint32_t chain, Counts *c, EtcError *e)
{
    EtcFlatVec instructions = etc_flat_vec(f, chain, CHAIN_INSTRUCTIONS);
    if (instructions.item == NULL) {
        return bad(e, "chain without instructions", -1);
    }
    for (uint32_t i = 0; i < instructions.n; i++) {
        uint32_t instruction = etc_flat_item_table(f, instructions, i);
        uint8_t type = etc_flat_u8(f, instruction, UNION_TYPE);
        uint32_t call = etc_flat_table(f, instruction, UNION_VALUE);
        if (type == 0) {
            return bad(e, "instruction without a type", i);
        }
        if ((type == KERNEL_CALL) || (type == DELEGATE_CALL)) {
            EtcFlatVec args = etc_flat_vec(f, call, 1);
            if (args.item == NULL) {
                return bad(e, "call without arguments", i);
            }
            c->args = (args.n > c->args) ? args.n : c->args;
            c->work += args.n;
        }
    }
    return ETC_OK;
}

static EtcStatus count(const EtcFlat *f, uint32_t plan, Counts *c, EtcError *e)
{
    EtcFlatVec values = etc_flat_vec(f, plan, PLAN_VALUES);
    EtcFlatVec chains = etc_flat_vec(f, plan, PLAN_CHAINS);
    EtcStatus status = ETC_OK;
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; (status == ETC_OK) && (i < values.n); i++) {
        status = count_value(f, etc_flat_item_table(f, values, i), i, c, e);
    }
    if ((status == ETC_OK) && (chains.n == 0)) {
        return bad(e, "method without a chain of instructions", -1);
    }
    for (uint32_t i = 0; (status == ETC_OK) && (i < chains.n); i++) {
        status = count_chain(f, etc_flat_item_table(f, chains, i), c, e);
    }
    if ((status == ETC_OK) && (c->work > MAX_ITEMS)) {
        return etc_fail(e, ETC_LIMIT, "more than 16,777,216 list items and arguments", -1);
    }
    return status;
}

/* -- memory ------------------------------------------------------------------------------ */

/* Takes n items from the tables; with no tables it only counts. */
static void *take(uint8_t *tables, uint64_t *at, uint64_t n, size_t size)
{
    uint64_t here = *at;
    *at = (here + n * size + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
    return tables ? tables + here : NULL;
}

/* Bytes of the tables.  With tables, also places the parts of *m, which lies at their start. */
static uint64_t lay_out(const EtcFlat *f, uint32_t plan, const Counts *c, uint8_t *tables)
{
    EtcMethod unplaced;
    uint64_t at = 0;
    void *start = take(tables, &at, 1, sizeof(EtcMethod));
    EtcMethod *m = start ? (EtcMethod *)start : &unplaced;
    memset(m, 0, sizeof *m);
    m->n_values = etc_flat_vec(f, plan, PLAN_VALUES).n;
    m->n_slots = c->slots;
    m->n_ops = etc_flat_vec(f, plan, PLAN_OPERATORS).n;
    m->value = take(tables, &at, m->n_values, sizeof *m->value);
    m->slot = take(tables, &at, m->n_slots, sizeof *m->slot);
    m->op = take(tables, &at, m->n_ops, sizeof *m->op);
    m->arg = take(tables, &at, c->args, sizeof *m->arg);
    m->item = take(tables, &at, c->items, sizeof *m->item);
    m->dim = take(tables, &at, c->dims, sizeof *m->dim);
    return at;
}

static EtcStatus size_pools(const EtcFlat *f, uint32_t plan, EtcMemory *m, EtcError *e)
{
    EtcFlatVec pools = etc_flat_vec(f, plan, PLAN_POOLS);
    if (pools.n > MAX_POOLS + 1) {
        return etc_fail(e, ETC_UNSUPPORTED, "more than 16 pools of planned memory", pools.n);
    }
    for (uint32_t i = 1; i < pools.n; i++) { /* entry 0 is reserved */
        int64_t bytes = etc_flat_item_i64(pools, i);
        if ((bytes < 0) || ((uint64_t)bytes > SIZE_MAX / 2)) {
            return bad(e, "pool of an impossible size", i);
        }
        m->pool_bytes[m->n_pools++] = (size_t)bytes;
    }
    return ETC_OK;
}

static EtcStatus measure(const EtcProgram *p, int32_t method, EtcMemory *m, Counts *c, EtcError *e)
{
    EtcFlat f = etc_program_flat(p);
    uint32_t plan = etc_program_plan(p, method);
    memset(m, 0, sizeof *m);
    if (plan == 0) {
        return etc_fail(e, ETC_BAD_ARG, "no method of this number", method);
    }
    EtcStatus status = check_plan(&f, plan, e);
    status = (status == ETC_OK) ? count(&f, plan, c, e) : status;
    status = (status == ETC_OK) ? size_pools(&f, plan, m, e) : status;
    if (status != ETC_OK) {
        return status;
    }
    uint64_t bytes = lay_out(&f, plan, c, NULL);
    if (bytes > SIZE_MAX / 2) {
        return etc_fail(e, ETC_LIMIT, "tables do not fit the address space", -1);
    }
    m->table_bytes = (size_t)bytes;
    m->scratch_bytes = ETC_SCRATCH_BYTES;
    return ETC_OK;
}

EtcStatus etc_program_memory(const EtcProgram *p, int32_t method, EtcMemory *m, EtcError *e)
{
    Counts c;
    return measure(p, method, m, &c, e);
}

/* -- tensors ----------------------------------------------------------------------------- */

int64_t etc_tensor_bytes(const EtcTensor *t)
{
    uint64_t most = etc_dtype_size((int)t->dtype), bytes = most;
    for (int32_t i = 0; i < t->rank; i++) {
        uint64_t d = (t->dim[i] > 0) ? (uint64_t)t->dim[i] : 1;
        if ((t->dim[i] < 0) || (most > (uint64_t)INT64_MAX / d)) {
            return -1;
        }
        most *= d;
        bytes *= (uint64_t)t->dim[i];
    }
    return (bytes <= SIZE_MAX / 2) ? (int64_t)bytes : -1;
}

/* Accessors give const; EtcTensor has one pointer for what may and what may not be written. */
static void *without_const(const void *p)
{
    return (void *)(uintptr_t)p;
}

static EtcStatus read_order(Build *b, uint32_t at, EtcTensor *t, uint32_t i)
{
    EtcFlatVec order = etc_flat_vec(&b->f, at, TENSOR_ORDER);
    uint32_t seen = 0;
    int is_plain = 1;
    if ((order.item == NULL) || (order.n != (uint32_t)t->rank)) {
        return bad(b->e, "dim_order is missing or not as long as the sizes", i);
    }
    for (uint32_t k = 0; k < order.n; k++) {
        uint32_t bit = (order.item[k] < order.n) ? 1u << order.item[k] : 0;
        if ((bit == 0) || ((seen & bit) != 0)) {
            return bad(b->e, "dim_order is not a permutation", i);
        }
        seen |= bit;
        is_plain = is_plain && (order.item[k] == k);
    }
    t->order = is_plain ? NULL : order.item;
    return ETC_OK;
}

static EtcStatus read_sizes(Build *b, uint32_t at, EtcTensor *t, uint32_t i)
{
    EtcFlatVec sizes = etc_flat_vec(&b->f, at, TENSOR_SIZES);
    uint8_t dynamism = etc_flat_u8(&b->f, at, TENSOR_DYNAMISM);
    if (sizes.item == NULL) {
        return bad(b->e, "tensor without sizes", i);
    }
    if (dynamism > 1) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "tensor of unbounded size", i);
    }
    t->rank = (int32_t)sizes.n;
    t->is_static = dynamism == 0;
    t->dim = without_const(sizes.item);
    if (!t->is_static) {
        t->dim = b->m->dim + b->n_dims;
        memcpy(t->dim, sizes.item, (size_t)sizes.n * sizeof *t->dim);
        b->n_dims += sizes.n;
    }
    return ETC_OK;
}

static EtcStatus place_in_pool(Build *b, uint32_t allocation, Slot *s, int64_t bytes, uint32_t i)
{
    EtcFlatVec pools = etc_flat_vec(&b->f, b->plan, PLAN_POOLS);
    uint32_t pool = etc_flat_u32(&b->f, allocation, 0);
    uint64_t low = etc_flat_u32(&b->f, allocation, 1), high = etc_flat_u32(&b->f, allocation, 2);
    uint64_t offset = low | (high << 32);
    if ((pool == 0) || (pool >= pools.n)) {
        return bad(b->e, "tensor in a pool that does not exist", i);
    }
    uint64_t size = (uint64_t)etc_flat_item_i64(pools, pool);
    if ((offset > size) || ((uint64_t)bytes > size - offset)) {
        return bad(b->e, "tensor past the end of its pool", i);
    }
    if (size > 0) {
        s->home = (uint8_t *)b->pools[pool - 1] + offset;
    }
    return ETC_OK;
}

/* Data index and allocation say where the bytes are: in the file (index only), in planned memory
 * (allocation only), there with an initial value (both), nowhere yet (neither). */
static EtcStatus place(Build *b, uint32_t at, Slot *s, int64_t bytes, uint32_t i)
{
    uint32_t index = etc_flat_u32(&b->f, at, TENSOR_DATA);
    uint32_t allocation = etc_flat_table(&b->f, at, TENSOR_ALLOCATION);
    const uint8_t *data = NULL;
    s->home = b->m; /* never read or written through: capacity is 0 */
    if ((index == 0) && (allocation == 0)) {
        return ETC_OK;
    }
    if (index != 0) {
        data = allocation ? etc_program_initial(b->p, index, (uint64_t)bytes)
                          : etc_program_constant(b->p, index, (uint64_t)bytes);
        if (data == NULL) {
            return bad(b->e, "data of a tensor is not, or not wholly, in the file", i);
        }
    }
    if (allocation != 0) {
        EtcStatus status = place_in_pool(b, allocation, s, bytes, i);
        if (status != ETC_OK) {
            return status;
        }
        if ((data != NULL) && (bytes > 0)) {
            memcpy(s->home, data, (size_t)bytes);
        }
    } else {
        s->home = without_const(data);
        s->is_const = 1;
    }
    s->is_planned = 1;
    s->home_bytes = bytes;
    if ((uintptr_t)s->home % etc_dtype_size((int)s->t.dtype) != 0) {
        return bad(b->e, "data of a tensor is misaligned", i);
    }
    return ETC_OK;
}

static EtcStatus read_tensor(Build *b, uint32_t at, EtcValue *v, uint32_t i)
{
    Slot *s = &b->m->slot[b->n_slots++];
    uint32_t extra = etc_flat_table(&b->f, at, TENSOR_EXTRA);
    memset(s, 0, sizeof *s);
    v->tag = ETC_TENSOR;
    v->as.tensor = &s->t;
    s->in_file = at;
    s->t.dtype = (EtcDtype)etc_flat_u8(&b->f, at, TENSOR_DTYPE);
    if (etc_dtype_size((int)s->t.dtype) == 0) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "dtype that this build lacks", i);
    }
    if ((extra != 0) && (etc_flat_u8(&b->f, extra, 2) != 0)) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "tensor whose data is in another file", i);
    }
    if (((extra != 0) && (etc_flat_u8(&b->f, extra, 3) != 0)) ||
        (etc_flat_u8(&b->f, at, TENSOR_LAYOUT) != 0)) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "tensor that is sparse or on a device", i);
    }
    if (etc_flat_i32(&b->f, at, TENSOR_STORAGE_OFFSET) != 0) {
        return bad(b->e, "tensor with a storage offset", i);
    }
    EtcStatus status = read_sizes(b, at, &s->t, i);
    status = (status == ETC_OK) ? read_order(b, at, &s->t, i) : status;
    if (status != ETC_OK) {
        return status;
    }
    int64_t bytes = etc_tensor_bytes(&s->t);
    if (bytes < 0) {
        return bad(b->e, "sizes of a tensor are negative or too large", i);
    }
    status = place(b, at, s, bytes, i);
    s->t.data = s->home;
    s->t.capacity = s->home_bytes;
    s->t.is_const = s->is_const;
    return status;
}

/* -- values ------------------------------------------------------------------------------ */

/* Tensor lists hold only values before them; so no list holds itself. */
static EtcStatus read_tensors(Build *b, EtcFlatVec items, EtcValue *v, uint32_t i)
{
    EtcMethod *m = b->m;
    for (uint32_t k = 0; k < items.n; k++) {
        int32_t at = etc_flat_item_i32(items, k);
        EtcValue *item = &m->none;
        int may_be_none = v->tag == ETC_LIST_OPT_TENSOR;
        if (!may_be_none || (at != -1)) {
            if ((at < 0) || ((uint32_t)at >= i)) {
                return bad(b->e, "list item is no value before the list", i);
            }
            item = &m->value[at];
        }
        if ((item->tag != ETC_TENSOR) && !(may_be_none && (item->tag == ETC_NONE))) {
            return bad(b->e, "list item is not a tensor", i);
        }
        m->item[b->n_items++] = item;
    }
    return ETC_OK;
}

/* Items may come after the list, but each is an int in the file. */
static EtcStatus read_ints(Build *b, EtcFlatVec items, uint32_t i)
{
    EtcFlatVec values = etc_flat_vec(&b->f, b->plan, PLAN_VALUES);
    for (uint32_t k = 0; k < items.n; k++) {
        int64_t at = etc_flat_item_i64(items, k);
        if ((at < 0) || (at >= values.n)) {
            return bad(b->e, "list item is no value", i);
        }
        uint32_t evalue = etc_flat_item_table(&b->f, values, (uint32_t)at);
        if (etc_flat_u8(&b->f, evalue, UNION_TYPE) != VALUE_INT) {
            return bad(b->e, "list item is not an int", i);
        }
        b->m->item[b->n_items++] = &b->m->value[at];
    }
    return ETC_OK;
}

static EtcStatus read_list(Build *b, uint8_t type, EtcFlatVec items, EtcValue *v, uint32_t i)
{
    v->tag = (type == VALUE_INT_LIST)      ? ETC_LIST_INT
             : (type == VALUE_TENSOR_LIST) ? ETC_LIST_TENSOR
                                           : ETC_LIST_OPT_TENSOR;
    v->as.list.item = b->m->item + b->n_items;
    v->as.list.n = (int32_t)items.n;
    return (type == VALUE_INT_LIST) ? read_ints(b, items, i) : read_tensors(b, items, v, i);
}

static EtcStatus read_bools(Build *b, EtcFlatVec items, EtcValue *v, uint32_t i)
{
    v->tag = ETC_LIST_BOOL;
    v->as.bools.item = items.item;
    v->as.bools.n = (int32_t)items.n;
    for (uint32_t k = 0; k < items.n; k++) {
        if (items.item[k] > 1) {
            return bad(b->e, "bool that is neither 0 nor 1", i);
        }
    }
    return ETC_OK;
}

static double read_double(const EtcFlat *f, uint32_t at)
{
    uint64_t bits = etc_flat_u64(f, at, 0);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static EtcStatus read_value(Build *b, uint32_t evalue, EtcValue *v, uint32_t i)
{
    uint8_t type = etc_flat_u8(&b->f, evalue, UNION_TYPE);
    uint32_t at = etc_flat_table(&b->f, evalue, UNION_VALUE);
    EtcFlatVec items = {NULL, 0};
    memset(v, 0, sizeof *v);
    if (type >= VALUE_STRING) {
        items = etc_flat_vec(&b->f, at, ITEMS);
    }
    switch ((ValueType)type) {
    case VALUE_INT:
        v->tag = ETC_INT;
        v->as.i = (int64_t)etc_flat_u64(&b->f, at, 0);
        return ETC_OK;
    case VALUE_BOOL:
        v->tag = ETC_IS_BOOL;
        v->as.b = etc_flat_u8(&b->f, at, 0) != 0;
        return ETC_OK;
    case VALUE_DOUBLE:
        v->tag = ETC_DOUBLE;
        v->as.d = read_double(&b->f, at);
        return ETC_OK;
    case VALUE_TENSOR:
        return read_tensor(b, at, v, i);
    case VALUE_STRING:
        v->tag = ETC_STRING;
        v->as.str.text = (const char *)items.item;
        v->as.str.n = (int32_t)items.n;
        return ETC_OK;
    case VALUE_DOUBLE_LIST: /* read in place: the verifier asked for 8-byte alignment */
        v->tag = ETC_LIST_DOUBLE;
        v->as.doubles.item = (const double *)(const void *)items.item;
        v->as.doubles.n = (int32_t)items.n;
        return ETC_OK;
    case VALUE_BOOL_LIST:
        return read_bools(b, items, v, i);
    case VALUE_INT_LIST:
    case VALUE_TENSOR_LIST:
    case VALUE_OPT_TENSOR_LIST:
        return read_list(b, type, items, v, i);
    case VALUE_NULL:
    default:
        return ETC_OK;
    }
}

static EtcStatus read_values(Build *b)
{
    EtcFlatVec values = etc_flat_vec(&b->f, b->plan, PLAN_VALUES);
    EtcStatus status = ETC_OK;
    for (uint32_t i = 0; (status == ETC_OK) && (i < values.n); i++) {
        uint32_t evalue = etc_flat_item_table(&b->f, values, i);
        status = read_value(b, evalue, &b->m->value[i], i);
    }
    return status;
}

static EtcStatus read_ends(Build *b)
{
    EtcMethod *m = b->m;
    for (uint32_t i = 0; i < m->inputs.n; i++) {
        int32_t at = etc_flat_item_i32(m->inputs, i);
        if ((at < 0) || ((uint32_t)at >= m->n_values)) {
            return bad(b->e, "input is no value", i);
        }
        if (m->value[at].tag == ETC_TENSOR) {
            Slot *s = (Slot *)(void *)m->value[at].as.tensor;
            if (s->t.is_const) {
                return bad(b->e, "input is a constant tensor", i);
            }
            s->is_input = 1;
        }
    }
    for (uint32_t i = 0; i < m->outputs.n; i++) {
        int32_t at = etc_flat_item_i32(m->outputs, i);
        if ((at < 0) || ((uint32_t)at >= m->n_values)) {
            return bad(b->e, "output is no value", i);
        }
    }
    return ETC_OK;
}

/* -- instructions ------------------------------------------------------------------------ */

static int is_scalar(const EtcValue *v)
{
    return (v->tag == ETC_INT) || (v->tag == ETC_DOUBLE) || (v->tag == ETC_IS_BOOL);
}

static EtcValue *value_at(const Build *b, uint32_t instruction, int slot)
{
    int32_t i = etc_flat_i32(&b->f, instruction, slot);
    return ((i >= 0) && ((uint32_t)i < b->m->n_values)) ? &b->m->value[i] : NULL;
}

static EtcStatus check_args(const Build *b, uint32_t call, uint32_t i)
{
    EtcFlatVec args = etc_flat_vec(&b->f, call, 1);
    for (uint32_t k = 0; k < args.n; k++) {
        int32_t at = etc_flat_item_i32(args, k);
        if ((at < 0) || ((uint32_t)at >= b->m->n_values)) {
            return bad(b->e, "argument of a call is no value", i);
        }
    }
    return ETC_OK;
}

static EtcStatus check_kernel(const Build *b, uint32_t call, uint32_t i)
{
    int32_t op = etc_flat_i32(&b->f, call, 0);
    if ((op < 0) || ((uint32_t)op >= b->m->n_ops)) {
        return bad(b->e, "call of an operator that is not listed", i);
    }
    const EtcKernelRow *row = b->m->op[op].row;
    if ((row != NULL) && (etc_flat_vec(&b->f, call, 1).n < (uint32_t)row->n_args)) {
        EtcStatus status = bad(b->e, "too few arguments for the operator", i);
        etc_name_operator(b->e, &b->m->op[op]);
        return status;
    }
    return check_args(b, call, i);
}

/* What a value is for memory's sake never changes: tensors, lists and None keep their tag, so a
 * list of tensors stays one.  Ints, doubles and bools may take each other's place. */
static EtcStatus check_move(const Build *b, uint32_t move, uint32_t i)
{
    const EtcValue *from = value_at(b, move, 0), *to = value_at(b, move, 1);
    if ((from == NULL) || (to == NULL)) {
        return bad(b->e, "move from or to no value", i);
    }
    if ((from->tag != to->tag) && !(is_scalar(from) && is_scalar(to))) {
        return bad(b->e, "move onto a value of another kind", i);
    }
    if ((to->tag == ETC_TENSOR) && ((Slot *)(void *)to->as.tensor)->is_input) {
        return bad(b->e, "move onto an input", i);
    }
    return ETC_OK;
}

static EtcStatus check_jump(const Build *b, uint32_t jump, uint32_t n, uint32_t i)
{
    const EtcValue *cond = value_at(b, jump, 0);
    int32_t to = etc_flat_i32(&b->f, jump, 1);
    if ((cond == NULL) || (!is_scalar(cond) && (cond->tag != ETC_TENSOR))) {
        return bad(b->e, "condition of a jump is no bool", i);
    }
    if ((to < 0) || ((uint32_t)to > n)) {
        return bad(b->e, "jump past the end of the chain", i);
    }
    return ETC_OK;
}

static EtcStatus check_instruction(const Build *b, uint32_t instruction, uint32_t n, uint32_t i)
{
    uint32_t at = etc_flat_table(&b->f, instruction, UNION_VALUE);
    const EtcValue *v;
    switch ((Instruction)etc_flat_u8(&b->f, instruction, UNION_TYPE)) {
    case KERNEL_CALL:
        return check_kernel(b, at, i);
    case DELEGATE_CALL:
        if (etc_flat_u32(&b->f, at, 0) >= etc_flat_vec(&b->f, b->plan, PLAN_DELEGATES).n) {
            return bad(b->e, "call of a delegate that is not listed", i);
        }
        return check_args(b, at, i);
    case MOVE_CALL:
        return check_move(b, at, i);
    case JUMP_FALSE_CALL:
        return check_jump(b, at, n, i);
    case FREE_CALL:
    default:
        v = value_at(b, at, 0);
        if ((v == NULL) || (v->tag != ETC_TENSOR)) {
            return bad(b->e, "free of no tensor", i);
        }
        return ETC_OK;
    }
}

static EtcStatus check_chains(const Build *b)
{
    EtcStatus status = ETC_OK;
    for (uint32_t c = 0; (status == ETC_OK) && (c < b->m->chains.n); c++) {
        uint32_t chain = etc_flat_item_table(&b->f, b->m->chains, c);
        EtcFlatVec list = etc_flat_vec(&b->f, chain, CHAIN_INSTRUCTIONS);
        for (uint32_t i = 0; (status == ETC_OK) && (i < list.n); i++) {
            status = check_instruction(b, etc_flat_item_table(&b->f, list, i), list.n, i);
        }
    }
    return status;
}

/* -- operators and delegates ------------------------------------------------------------- */

void etc_name_operator(EtcError *e, const Operator *op)
{
    if (e != NULL) {
        e->name = op->name;
        e->overload = op->overload;
    }
}

static void read_operator(const EtcFlat *f, uint32_t at, Operator *op)
{
    uint32_t n = 0;
    const char *overload = etc_flat_string(f, at, 1, NULL);
    op->name = etc_flat_string(f, at, 0, &n);
    op->overload = overload ? overload : "";
    op->row = op->name ? etc_kernel_find(op->name, op->overload) : NULL;
    op->is_view = (op->row != NULL) && (op->row->run == etc_et_view);
    op->in_place = (op->overload[0] == '\0') && (n > 0) && (op->name[n - 1] == '_');
}

static EtcStatus read_operators(const Build *b)
{
    EtcFlatVec ops = etc_flat_vec(&b->f, b->plan, PLAN_OPERATORS);
    for (uint32_t i = 0; i < ops.n; i++) {
        read_operator(&b->f, etc_flat_item_table(&b->f, ops, i), &b->m->op[i]);
        if (b->m->op[i].name == NULL) {
            return bad(b->e, "operator without a name", i);
        }
    }
    return ETC_OK;
}

static EtcStatus check_operators(const Build *b)
{
    const Operator *first = NULL;
    int64_t n = 0;
    for (uint32_t i = b->m->n_ops; i-- > 0;) {
        if (b->m->op[i].row == NULL) {
            first = &b->m->op[i];
            n++;
        }
    }
    if (first == NULL) {
        return ETC_OK;
    }
    etc_fail(b->e, ETC_UNSUPPORTED, "operator that this build lacks; the number is their count", n);
    etc_name_operator(b->e, first);
    return ETC_UNSUPPORTED;
}

static EtcStatus check_delegate_data(const Build *b, uint32_t delegate, uint32_t i)
{
    uint32_t data = etc_flat_table(&b->f, delegate, 1);
    if ((data == 0) || (etc_flat_string(&b->f, delegate, 0, NULL) == NULL)) {
        return bad(b->e, "delegate without an id or data", i);
    }
    int slot = etc_flat_u8(&b->f, data, 0) ? PROGRAM_SEGMENTS : PROGRAM_INLINE_DELEGATES;
    if (etc_flat_u32(&b->f, data, 1) >= etc_flat_vec(&b->f, b->p->root, slot).n) {
        return bad(b->e, "data of a delegate is not in the file", i);
    }
    return ETC_OK;
}

static EtcStatus check_delegates(const Build *b)
{
    EtcFlatVec delegates = etc_flat_vec(&b->f, b->plan, PLAN_DELEGATES);
    for (uint32_t i = 0; i < delegates.n; i++) {
        EtcStatus status = check_delegate_data(b, etc_flat_item_table(&b->f, delegates, i), i);
        if (status != ETC_OK) {
            return status;
        }
    }
    return ETC_OK;
}

static EtcStatus refuse_delegates(const Build *b)
{
    EtcFlatVec delegates = etc_flat_vec(&b->f, b->plan, PLAN_DELEGATES);
    if (delegates.n == 0) {
        return ETC_OK;
    }
    uint32_t first = etc_flat_item_table(&b->f, delegates, 0);
    etc_fail(b->e, ETC_UNSUPPORTED, "delegate that this build lacks", 0);
    if (b->e != NULL) {
        b->e->name = etc_flat_string(&b->f, first, 0, NULL);
    }
    return ETC_UNSUPPORTED;
}

int etc_method_missing(const EtcProgram *p, int32_t method, int32_t k, const char **name,
                       const char **overload)
{
    EtcFlat f = etc_program_flat(p);
    uint32_t plan = etc_program_plan(p, method);
    EtcFlatVec ops = {NULL, 0};
    Operator op;
    if (plan != 0) {
        ops = etc_flat_vec(&f, plan, PLAN_OPERATORS);
    }
    for (uint32_t i = 0; i < ops.n; i++) {
        read_operator(&f, etc_flat_item_table(&f, ops, i), &op);
        if ((op.row == NULL) && (op.name != NULL) && (k-- == 0)) {
            *name = op.name;
            *overload = op.overload;
            return 1;
        }
    }
    return 0;
}

/* -- init -------------------------------------------------------------------------------- */

static EtcStatus check_memory(const EtcMemory *m, const void *tables, void *const *pools,
                              const void *scratch, EtcError *e)
{
    if ((tables == NULL) || ((uintptr_t)tables % TABLE_ALIGN != 0)) {
        return etc_fail(e, ETC_NO_MEMORY, "tables do not lie at a multiple of 16 bytes", -1);
    }
    if ((scratch == NULL) || ((uintptr_t)scratch % POOL_ALIGN != 0)) {
        return etc_fail(e, ETC_NO_MEMORY, "scratch does not lie at a multiple of 64 bytes", -1);
    }
    for (int32_t i = 0; i < m->n_pools; i++) {
        if ((m->pool_bytes[i] > 0) && ((pools[i] == NULL) || ((uintptr_t)pools[i] % POOL_ALIGN))) {
            return etc_fail(e, ETC_NO_MEMORY, "pool does not lie at a multiple of 64 bytes", i + 1);
        }
    }
    return ETC_OK;
}

/* What is wrong with the file comes before what this build lacks. */
static EtcStatus build(Build *b)
{
    EtcStatus status = read_values(b);
    status = (status == ETC_OK) ? read_ends(b) : status;
    status = (status == ETC_OK) ? read_operators(b) : status;
    status = (status == ETC_OK) ? check_delegates(b) : status;
    status = (status == ETC_OK) ? check_chains(b) : status;
    status = (status == ETC_OK) ? refuse_delegates(b) : status;
    return (status == ETC_OK) ? check_operators(b) : status;
}

EtcStatus etc_method_init(const EtcProgram *p, int32_t method, void *tables, void *const *pools,
                          void *scratch, EtcMethod **out, EtcError *e)
{
    EtcMemory memory;
    Counts counts;
    Build b;
    *out = NULL;
    EtcStatus status = measure(p, method, &memory, &counts, e);
    status = (status == ETC_OK) ? check_memory(&memory, tables, pools, scratch, e) : status;
    if (status != ETC_OK) {
        return status;
    }
    memset(&b, 0, sizeof b);
    b.p = p;
    b.pools = pools;
    b.e = e;
    b.f = etc_program_flat(p);
    b.plan = etc_program_plan(p, method);
    lay_out(&b.f, b.plan, &counts, tables);
    b.m = tables;
    b.m->program = *p;
    b.m->plan = b.plan;
    b.m->inputs = etc_flat_vec(&b.f, b.plan, PLAN_INPUTS);
    b.m->outputs = etc_flat_vec(&b.f, b.plan, PLAN_OUTPUTS);
    b.m->chains = etc_flat_vec(&b.f, b.plan, PLAN_CHAINS);
    b.m->scratch = scratch;
    b.m->cores = etc_cores();
    for (int32_t i = 0; i < memory.n_pools; i++) {
        if (memory.pool_bytes[i] > 0) {
            memset(pools[i], 0, memory.pool_bytes[i]);
        }
    }
    status = build(&b);
    *out = (status == ETC_OK) ? b.m : NULL;
    return status;
}
