/* method.c -- computes the memory that a method needs, and builds the method in the caller's
 * tables: instructions, operators and delegates here, values in values.c.  Instructions, static
 * sizes, strings and lists of numbers stay in the file.  The tables have values, tensors, items
 * of lists and sizes that may change. */
#include "runtime-lite/internal.h"
#include "runtime-lite/kernels/kernels.h"

#include <string.h>

enum {
    MAX_POOLS = 16,
    MAX_ITEMS = 1 << 24, /* of lists and calls; tables of a small file can share vectors */
    MAX_DELEGATES = 1 << 16,
    DELEGATE_SLACK = 64, /* delegates may read some bytes after a tensor without using them */
    TABLE_ALIGN = 16,
    POOL_ALIGN = 64
};

typedef struct Counts {
    uint64_t items, dims, work;
    uint32_t slots, args;
} Counts;

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
        if (etc_flat_u8(f, etc_flat_item_table(f, devices, i), DEVICE_TYPE) != 0) {
            return etc_fail(e, ETC_UNSUPPORTED, "planned memory on a device", i);
        }
    }
    return ETC_OK;
}

static EtcStatus count_value(const EtcFlat *f, uint32_t evalue, uint32_t i, Counts *c, EtcError *e)
{
    uint8_t type = etc_flat_u8(f, evalue, EVALUE_TYPE);
    uint32_t at = etc_flat_table(f, evalue, EVALUE_VALUE);
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
        EtcFlatVec v = etc_flat_vec(f, at, LIST_ITEMS);
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
        uint8_t type = etc_flat_u8(f, instruction, INSTRUCTION_TYPE);
        uint32_t call = etc_flat_table(f, instruction, INSTRUCTION_VALUE);
        if (type == 0) {
            return bad(e, "instruction without a type", i);
        }
        if ((type == KERNEL_CALL) || (type == DELEGATE_CALL)) {
            EtcFlatVec args = etc_flat_vec(f, call, CALL_ARGS);
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

/* Returns the number of bytes of the tables.  If `tables` is not NULL, also places the parts of *m,
 * which lies at their start. */
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
    m->n_delegates = etc_flat_vec(f, plan, PLAN_DELEGATES).n;
    m->delegate = take(tables, &at, m->n_delegates, sizeof *m->delegate);
    m->arg = take(tables, &at, c->args, sizeof *m->arg);
    m->item = take(tables, &at, c->items, sizeof *m->item);
    m->dim = take(tables, &at, c->dims, sizeof *m->dim);
    return at;
}

static EtcStatus size_pools(const EtcFlat *f, uint32_t plan, EtcMemory *m, EtcError *e)
{
    EtcFlatVec pools = etc_flat_vec(f, plan, PLAN_POOLS);
    size_t slack = (etc_flat_vec(f, plan, PLAN_DELEGATES).n > 0) ? DELEGATE_SLACK : 0;
    if (pools.n > MAX_POOLS + 1) {
        return etc_fail(e, ETC_UNSUPPORTED, "more than 16 pools of planned memory", pools.n);
    }
    for (uint32_t i = 1; i < pools.n; i++) { /* entry 0 is reserved */
        int64_t bytes = etc_flat_item_i64(pools, i);
        if ((bytes < 0) || ((uint64_t)bytes > SIZE_MAX / 2)) {
            return bad(e, "pool of an impossible size", i);
        }
        m->pool_bytes[m->n_pools++] = (size_t)bytes + ((bytes > 0) ? slack : 0);
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
    EtcFlatVec args = etc_flat_vec(&b->f, call, CALL_ARGS);
    for (uint32_t k = 0; k < args.n; k++) {
        int32_t at = etc_flat_item_i32(args, k);
        if ((at < 0) || ((uint32_t)at >= b->m->n_values)) {
            return bad(b->e, "argument of a call is not a value", i);
        }
        b->m->arg[k] = &b->m->value[at];
    }
    return ETC_OK;
}

static EtcStatus bad_call(const Build *b, const Operator *op, const char *what, uint32_t i)
{
    EtcStatus status = bad(b->e, what, i);
    etc_name_operator(b->e, op);
    return status;
}

/* Checks that the results of a call may lie where they are planned.  Calls may share long lists, so
 * the size of the file does not bound the work. */
static EtcStatus check_results(Build *b, const Operator *op, uint32_t i)
{
    EtcCall c = {b->m->arg, op->row->n_args, NULL, NULL, NULL};
    for (int32_t k = 0; k < c.n_args; k++) {
        EtcTag tag = c.arg[k]->tag;
        int is_list = (tag == ETC_LIST_TENSOR) || (tag == ETC_LIST_OPT_TENSOR);
        b->n_compared += is_list ? (uint64_t)c.arg[k]->as.list.n : 1;
    }
    if (b->n_compared > MAX_ITEMS) {
        return etc_fail(b->e, ETC_LIMIT, "more than 16,777,216 arguments with those in lists", i);
    }
    const char *what = etc_find_overlap(&c, op->row, 1);
    return (what != NULL) ? bad_call(b, op, what, i) : ETC_OK;
}

static EtcStatus check_kernel(Build *b, uint32_t call, uint32_t i)
{
    int32_t at = etc_flat_i32(&b->f, call, KERNEL_OPERATOR);
    if ((at < 0) || ((uint32_t)at >= b->m->n_ops)) {
        return bad(b->e, "call of an operator that is not listed", i);
    }
    const Operator *op = &b->m->op[at];
    if ((op->row != NULL) && (etc_flat_vec(&b->f, call, KERNEL_ARGS).n < (uint32_t)op->row->n_args)) {
        return bad_call(b, op, "too few arguments for the operator", i);
    }
    EtcStatus status = check_args(b, call, i);
    return ((status == ETC_OK) && (op->row != NULL)) ? check_results(b, op, i) : status;
}

/* Checks that a move keeps the kind of a value: tensors, lists and None keep their tag, so a list
 * of tensors stays one.  Ints, doubles and bools may take each other's place. */
static EtcStatus check_move(const Build *b, uint32_t move, uint32_t i)
{
    const EtcValue *from = value_at(b, move, MOVE_FROM), *to = value_at(b, move, MOVE_TO);
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
    const EtcValue *cond = value_at(b, jump, JUMP_CONDITION);
    int32_t to = etc_flat_i32(&b->f, jump, JUMP_DESTINATION);
    if ((cond == NULL) || (!is_scalar(cond) && (cond->tag != ETC_TENSOR))) {
        return bad(b->e, "condition of a jump is not a bool", i);
    }
    if ((to < 0) || ((uint32_t)to > n)) {
        return bad(b->e, "jump past the end of the chain", i);
    }
    return ETC_OK;
}

static EtcStatus check_instruction(Build *b, uint32_t instruction, uint32_t n, uint32_t i)
{
    uint32_t at = etc_flat_table(&b->f, instruction, INSTRUCTION_VALUE);
    const EtcValue *v;
    switch ((Instruction)etc_flat_u8(&b->f, instruction, INSTRUCTION_TYPE)) {
    case KERNEL_CALL:
        return check_kernel(b, at, i);
    case DELEGATE_CALL:
        if (etc_flat_u32(&b->f, at, DELEGATE_CALL_INDEX) >=
            etc_flat_vec(&b->f, b->plan, PLAN_DELEGATES).n) {
            return bad(b->e, "call of a delegate that is not listed", i);
        }
        return check_args(b, at, i);
    case MOVE_CALL:
        return check_move(b, at, i);
    case JUMP_FALSE_CALL:
        return check_jump(b, at, n, i);
    case FREE_CALL:
    default:
        v = value_at(b, at, FREE_VALUE);
        if ((v == NULL) || (v->tag != ETC_TENSOR)) {
            return bad(b->e, "free of no tensor", i);
        }
        return ETC_OK;
    }
}

static EtcStatus check_chains(Build *b)
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

static void read_operator(const EtcProgram *p, const EtcFlat *f, uint32_t at, Operator *op)
{
    const char *overload = etc_flat_string(f, at, OPERATOR_OVERLOAD, NULL);
    op->name = etc_flat_string(f, at, OPERATOR_NAME, NULL);
    op->overload = overload ? overload : "";
    op->row = op->name ? etc_kernel_find(op->name, op->overload) : NULL;
    op->is_host = 0;
    if (ETC_BUILD_HOST_KERNELS && (op->row == NULL) && (op->name != NULL)) {
        op->row = etc_kernel_among(p->kernel, p->n_kernels, op->name, op->overload);
        op->is_host = op->row != NULL;
    }
    op->is_view = (op->row != NULL) && !op->is_host &&
                  (etc_compare_text(op->row->name, "executorch_prim::et_view.default") == 0);
}

static int is_sound(const EtcKernelRow *row)
{
    return (row->run != NULL) && (row->n_args >= 0) && (row->n_outs >= 0) &&
           (row->n_outs <= MAX_HOST_OUTS) && (row->first_out >= 0) &&
           (row->first_out <= row->n_args) && (row->n_outs <= row->n_args - row->first_out);
}

static EtcStatus read_operators(const Build *b)
{
    EtcFlatVec ops = etc_flat_vec(&b->f, b->plan, PLAN_OPERATORS);
    for (uint32_t i = 0; i < ops.n; i++) {
        Operator *op = &b->m->op[i];
        read_operator(b->p, &b->f, etc_flat_item_table(&b->f, ops, i), op);
        if (op->name == NULL) {
            return bad(b->e, "operator without a name", i);
        }
        if (op->is_host && !is_sound(op->row)) {
            etc_fail(b->e, ETC_BAD_ARG, "the host's row of this kernel contradicts itself", i);
            etc_name_operator(b->e, op);
            return ETC_BAD_ARG;
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

static EtcStatus name_delegate(EtcError *e, EtcStatus status, const char *id)
{
    if (e != NULL) {
        e->name = id;
        e->overload = NULL;
    }
    return status;
}

/* Returns the bytes of a blob, which lie in the FlatBuffer or in a segment; NULL: they are not in
 * the file. */
static const uint8_t *blob_of(const Build *b, uint32_t data, uint64_t *n_bytes)
{
    uint32_t index = etc_flat_u32(&b->f, data, DELEGATE_DATA_INDEX);
    if (etc_flat_u8(&b->f, data, DELEGATE_DATA_LOCATION) != 0) {
        return etc_program_segment(b->p, index, n_bytes);
    }
    EtcFlatVec rows = etc_flat_vec(&b->f, b->p->root, PROGRAM_INLINE_DELEGATES);
    if (index >= rows.n) {
        return NULL;
    }
    EtcFlatVec bytes = etc_flat_vec(&b->f, etc_flat_item_table(&b->f, rows, index), BUFFER_BYTES);
    *n_bytes = bytes.n;
    return bytes.item;
}

static const EtcDelegate *find_delegate(const EtcProgram *p, const char *id)
{
    for (int32_t i = 0; i < p->n_delegates; i++) {
        if (etc_compare_text(p->delegate[i].id, id) == 0) {
            return &p->delegate[i];
        }
    }
    return NULL;
}

static EtcStatus check_delegates(const Build *b)
{
    EtcFlatVec delegates = etc_flat_vec(&b->f, b->plan, PLAN_DELEGATES);
    uint64_t n_bytes;
    if (delegates.n > MAX_DELEGATES) {
        return etc_fail(b->e, ETC_LIMIT, "more than 65,536 delegates", delegates.n);
    }
    for (uint32_t i = 0; ETC_BUILD_DELEGATES && (i < delegates.n); i++) {
        uint32_t at = etc_flat_item_table(&b->f, delegates, i), data = etc_flat_table(&b->f, at, DELEGATE_PROCESSED);
        if ((data == 0) || (etc_flat_string(&b->f, at, DELEGATE_ID, NULL) == NULL)) {
            return bad(b->e, "delegate without an id or data", i);
        }
        if (blob_of(b, data, &n_bytes) == NULL) {
            return bad(b->e, "data of a delegate is not in the file", i);
        }
    }
    return ETC_OK;
}

static EtcStatus find_delegates(const Build *b)
{
    EtcFlatVec delegates = etc_flat_vec(&b->f, b->plan, PLAN_DELEGATES);
    for (uint32_t i = 0; i < delegates.n; i++) {
        uint32_t at = etc_flat_item_table(&b->f, delegates, i);
        const char *id = etc_flat_string(&b->f, at, DELEGATE_ID, NULL);
        b->m->delegate[i].kind = ETC_BUILD_DELEGATES ? find_delegate(b->p, id) : NULL;
        b->m->delegate[i].state = NULL;
        if (b->m->delegate[i].kind == NULL) {
            EtcStatus status =
                etc_fail(b->e, ETC_UNSUPPORTED, "delegate that this build lacks", i);
            return name_delegate(b->e, status, id);
        }
    }
    return ETC_OK;
}

static EtcStatus start_delegates(const Build *b)
{
    EtcFlatVec delegates = etc_flat_vec(&b->f, b->plan, PLAN_DELEGATES);
    for (uint32_t i = 0; ETC_BUILD_DELEGATES && (i < delegates.n); i++) {
        uint32_t at = etc_flat_item_table(&b->f, delegates, i);
        Delegate *to = &b->m->delegate[i];
        EtcBlob blob = {NULL, NULL, 0};
        blob.program = b->p;
        blob.data = blob_of(b, etc_flat_table(&b->f, at, DELEGATE_PROCESSED), &blob.n_bytes);
        if ((uintptr_t)blob.data % 4 != 0) {
            return bad(b->e, "data of a delegate is misaligned", i);
        }
        EtcStatus status = to->kind->init(to->kind->host, &blob, &to->state, b->e);
        if (status != ETC_OK) {
            return name_delegate(b->e, status, to->kind->id);
        }
    }
    return ETC_OK;
}

void etc_method_free(EtcMethod *m)
{
    for (uint32_t i = 0; ETC_BUILD_DELEGATES && (m != NULL) && (i < m->n_delegates); i++) {
        if (m->delegate[i].state != NULL) {
            m->delegate[i].kind->free(m->delegate[i].state);
        }
        m->delegate[i].state = NULL;
    }
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
        read_operator(p, &f, etc_flat_item_table(&f, ops, i), &op);
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

/* Builds a method.  Faults of the file are found before operators and delegates that this build
 * lacks. */
static EtcStatus build(Build *b)
{
    EtcStatus status = etc_build_values(b);
    status = (status == ETC_OK) ? etc_build_ends(b) : status;
    status = (status == ETC_OK) ? read_operators(b) : status;
    status = (status == ETC_OK) ? check_delegates(b) : status;
    status = (status == ETC_OK) ? check_chains(b) : status;
    status = (status == ETC_OK) ? find_delegates(b) : status;
    status = (status == ETC_OK) ? check_operators(b) : status;
    if (status != ETC_OK) {
        return status;
    }
    status = start_delegates(b);
    if (status != ETC_OK) {
        etc_method_free(b->m);
    }
    return status;
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
    b.m->cores = ETC_BUILD_ONE_ISA ? NULL : etc_cores();
    for (int32_t i = 0; i < memory.n_pools; i++) {
        if (!p->has_zero_pools && (memory.pool_bytes[i] > 0)) {
            memset(pools[i], 0, memory.pool_bytes[i]);
        }
    }
    status = build(&b);
    *out = (status == ETC_OK) ? b.m : NULL;
    return status;
}
