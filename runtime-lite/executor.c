/* executor.c -- inputs, the instruction loop, outputs.
 *
 * Two invariants keep hostile programs inside their memory.  Before a kernel gets a tensor, its
 * sizes fit into its capacity; a tensor without memory has capacity 0.  And a tensor that a
 * kernel may resize occurs only once among its arguments; the sizes of all others are fixed
 * during the call. */
#include "runtime-lite/internal.h"

#include <string.h>

static EtcFlatVec chain_at(const EtcMethod *m, const EtcFlat *f, uint32_t i)
{
    return etc_flat_vec(f, etc_flat_item_table(f, m->chains, i), CHAIN_INSTRUCTIONS);
}

static Slot *slot_of(EtcTensor *t)
{
    return (Slot *)(void *)t;
}

static int is_backed(const EtcTensor *t)
{
    int64_t bytes = etc_tensor_bytes(t);
    return (bytes >= 0) && (bytes <= t->capacity);
}

/* -- inputs and outputs ------------------------------------------------------------------ */

int32_t etc_method_n_inputs(const EtcMethod *m)
{
    return (int32_t)m->inputs.n;
}

int32_t etc_method_n_outputs(const EtcMethod *m)
{
    return (int32_t)m->outputs.n;
}

static EtcValue *end_at(const EtcMethod *m, EtcFlatVec ends, int32_t i)
{
    int is_end = (i >= 0) && ((uint32_t)i < ends.n);
    return is_end ? &m->value[etc_flat_item_i32(ends, (uint32_t)i)] : NULL;
}

const EtcValue *etc_method_input(const EtcMethod *m, int32_t i)
{
    return end_at(m, m->inputs, i);
}

const EtcValue *etc_method_output(const EtcMethod *m, int32_t i)
{
    return end_at(m, m->outputs, i);
}

/* Returns NULL, or why the caller's tensor does not fit this input of the file. */
static const char *misfit(const EtcFlat *f, const Slot *s, const EtcTensor *from)
{
    EtcFlatVec bound = etc_flat_vec(f, s->in_file, TENSOR_SIZES);
    if ((from == NULL) || (from->dtype != s->t.dtype)) {
        return ETC_TEXT("input of another dtype");
    }
    if ((from->rank != s->t.rank) || ((from->rank > 0) && (from->dim == NULL))) {
        return ETC_TEXT("input of another rank");
    }
    for (uint32_t k = 0; k < bound.n; k++) {
        int32_t most = etc_flat_item_i32(bound, k);
        if ((from->dim[k] < 0) || (from->dim[k] > most)) {
            return ETC_TEXT("input with a size past its bound");
        }
        if (s->t.is_static && (from->dim[k] != most)) {
            return ETC_TEXT("input with a size other than the model's");
        }
    }
    if (!etc_same_order(from, &s->t)) {
        return ETC_TEXT("input of another dim_order");
    }
    if (!is_backed(from) || (from->data == NULL)) {
        return ETC_TEXT("input with less data than its sizes ask for");
    }
    if (!s->is_planned && ((uintptr_t)from->data % etc_dtype_size((int)from->dtype) != 0)) {
        return ETC_TEXT("input data is misaligned");
    }
    return NULL;
}

static EtcStatus set_tensor(const EtcFlat *f, Slot *s, const EtcTensor *from, int32_t i,
                            EtcError *e)
{
    const char *what = misfit(f, s, from);
    if (what != NULL) {
        return etc_fail(e, ETC_BAD_ARG, what, i);
    }
    int64_t bytes = etc_tensor_bytes(from);
    if (s->is_planned) {
        memmove(s->home, from->data, (size_t)bytes); /* may be an output of the run before */
    } else {
        s->home = from->data;
        s->home_bytes = bytes;
    }
    s->t.data = s->home;
    s->t.capacity = s->home_bytes;
    if (!s->t.is_static && (s->t.rank > 0)) {
        memmove(s->t.dim, from->dim, (size_t)s->t.rank * sizeof *s->t.dim);
    }
    return ETC_OK;
}

static int is_near(double a, double b) /* with the tolerance of the official runtime */
{
    double gap = (a > b) ? a - b : b - a;
    return (a == b) || ((a != a) && (b != b)) || (gap <= 1e-4 + 1e-5 * ((b < 0) ? -b : b));
}

/* A value that is no tensor was fixed at export.  It must equal the copy in the file, which no run
 * changes. */
static int equals_file(const EtcFlat *f, uint32_t evalue, const EtcValue *v)
{
    uint32_t at = etc_flat_table(f, evalue, EVALUE_VALUE), n;
    uint64_t bits;
    double d;
    const char *text;
    switch ((ValueType)etc_flat_u8(f, evalue, EVALUE_TYPE)) {
    case VALUE_NULL:
        return v->tag == ETC_NONE;
    case VALUE_INT:
        return (v->tag == ETC_INT) && (v->as.i == (int64_t)etc_flat_u64(f, at, INT_VALUE));
    case VALUE_BOOL:
        return (v->tag == ETC_IS_BOOL) && ((v->as.b != 0) == (etc_flat_u8(f, at, BOOL_VALUE) != 0));
    case VALUE_DOUBLE:
        bits = etc_flat_u64(f, at, DOUBLE_VALUE);
        memcpy(&d, &bits, sizeof d);
        return ETC_BUILD_DOUBLES && (v->tag == ETC_DOUBLE) && is_near(v->as.d, d);
    case VALUE_STRING:
        text = etc_flat_string(f, at, 0, &n);
        return (v->tag == ETC_STRING) && (v->as.str.n >= 0) && ((uint32_t)v->as.str.n == n) &&
               (memcmp(v->as.str.text, text, n) == 0);
    case VALUE_TENSOR:
    case VALUE_INT_LIST:
    case VALUE_DOUBLE_LIST:
    case VALUE_BOOL_LIST:
    case VALUE_TENSOR_LIST:
    case VALUE_OPT_TENSOR_LIST:
    default:
        return 0;
    }
}

EtcStatus etc_method_set_input(EtcMethod *m, int32_t i, const EtcValue *v, EtcError *e)
{
    EtcFlat f = etc_program_flat(&m->program);
    EtcValue *to = end_at(m, m->inputs, i);
    if (to == NULL) {
        return etc_fail(e, ETC_BAD_ARG, "no input of this number", i);
    }
    if (v == NULL) {
        return etc_fail(e, ETC_BAD_ARG, "input is missing", i);
    }
    if (to->tag == ETC_TENSOR) {
        return (v->tag == ETC_TENSOR) ? set_tensor(&f, slot_of(to->as.tensor), v->as.tensor, i, e)
                                      : etc_fail(e, ETC_BAD_ARG, "input is not a tensor", i);
    }
    EtcFlatVec values = etc_flat_vec(&f, m->plan, PLAN_VALUES);
    uint32_t evalue = etc_flat_item_table(&f, values, (uint32_t)(to - m->value));
    if (!equals_file(&f, evalue, v)) {
        return etc_fail(e, ETC_BAD_ARG, "input differs from the value fixed at export", i);
    }
    return ETC_OK;
}

/* -- kernel calls ------------------------------------------------------------------------ */

static const char *admit_tensor(EtcTensor *t, int needs_memory)
{
    Slot *s = slot_of(t);
    if (needs_memory && !is_backed(t)) {
        return ETC_TEXT("argument is a tensor without memory, or larger than its memory");
    }
    if (s->is_marked && !t->is_static) {
        t->is_static = 1;
        s->is_frozen = 1;
    }
    s->is_marked = 1;
    return NULL;
}

static const char *admit(const EtcValue *v, int needs_memory)
{
    const char *what = NULL;
    if (v->tag == ETC_TENSOR) {
        return admit_tensor(v->as.tensor, needs_memory);
    }
    if ((v->tag == ETC_LIST_TENSOR) || (v->tag == ETC_LIST_OPT_TENSOR)) {
        for (int32_t k = 0; (what == NULL) && (k < v->as.list.n); k++) {
            const EtcValue *item = v->as.list.item[k];
            what = (item->tag == ETC_TENSOR) ? admit_tensor(item->as.tensor, 1) : NULL;
        }
    } else if (v->tag == ETC_LIST_INT) {
        for (int32_t k = 0; k < v->as.list.n; k++) {
            if (v->as.list.item[k]->tag != ETC_INT) { /* a prim op may have put a double there */
                return ETC_TEXT("item of an int list is not an int at this point");
            }
        }
    }
    return what;
}

static void release_tensor(EtcTensor *t)
{
    Slot *s = slot_of(t);
    if (s->is_frozen) {
        t->is_static = 0;
    }
    s->is_frozen = 0;
    s->is_marked = 0;
}

static void release(const EtcValue *v)
{
    if (v->tag == ETC_TENSOR) {
        release_tensor(v->as.tensor);
    } else if ((v->tag == ETC_LIST_TENSOR) || (v->tag == ETC_LIST_OPT_TENSOR)) {
        for (int32_t k = 0; k < v->as.list.n; k++) {
            if (v->as.list.item[k]->tag == ETC_TENSOR) {
                release_tensor(v->as.list.item[k]->as.tensor);
            }
        }
    }
}

/* Arguments past the row's count repeat the results, for the return slot. */
static const char *admit_all(const EtcCall *c, const Operator *op)
{
    const char *what = NULL;
    for (int32_t k = 0; (what == NULL) && (k < op->row->n_args); k++) {
        what = admit(c->arg[k], !op->is_view || (k + 1 < op->row->n_args));
    }
    return (what == NULL) ? etc_find_overlap(c, op->row, 0) : what;
}

static const char too_much[] = "more element operations than the host allows in a run";

/* Counts the elements of a tensor, and one for each item of a list, as work. */
static int charge_value(EtcMethod *m, const EtcValue *v, int64_t more)
{
    int64_t n = (v->tag == ETC_TENSOR) ? etc_numel(v->as.tensor) : 0;
    if ((m->work_left < more) || (n > m->work_left - more)) {
        return 0;
    }
    m->work_left -= n + more;
    return 1;
}

/* Counts the work of a call once the sizes of all its arguments are known. */
static EtcStatus charge(EtcMethod *m, int32_t n_args)
{
    int ok = 1;
    for (int32_t k = 0; (m->work_limit > 0) && ok && (k < n_args); k++) {
        const EtcValue *v = m->arg[k];
        int is_list = (v->tag == ETC_LIST_TENSOR) || (v->tag == ETC_LIST_OPT_TENSOR);
        ok = charge_value(m, v, 0);
        for (int32_t i = 0; is_list && ok && (i < v->as.list.n); i++) {
            ok = charge_value(m, v->as.list.item[i], 1);
        }
    }
    return ok ? ETC_OK : ETC_TOO_MUCH;
}

/* Returns whether a call is one that etc made to fail, because no operator checks sizes.  Its
 * arguments are a value and, in the place of a number, a text that says what the value had to
 * be. */
static int is_check(const EtcCall *c)
{
    return (c->n_args == 3) && (c->arg[0]->tag == ETC_INT) && (c->arg[1]->tag == ETC_STRING);
}

/* -- kernels of the host */

/* A result as it was before a kernel of the host ran.  Afterwards it is compared with this copy,
 * because the host's kernel is not trusted. */
typedef struct HostResult {
    EtcTensor t;
    int64_t bytes;
} HostResult;

static const char *fault_of_result(const EtcTensor *t, const HostResult *was)
{
    int64_t bytes = etc_tensor_bytes(t);
    int is_same = (t->data == was->t.data) && (t->dtype == was->t.dtype) &&
                  (t->rank == was->t.rank) && (t->dim == was->t.dim) &&
                  (t->order == was->t.order) && (t->capacity == was->t.capacity);
    if (!is_same || (bytes < 0) || (bytes > t->capacity)) {
        return ETC_TEXT("the host's kernel left a result of another kind, or larger than its memory");
    }
    return (was->t.is_static && (bytes != was->bytes))
               ? ETC_TEXT("the host's kernel left a result of another size than the plan has")
               : NULL;
}

/* Restores a result that the kernel has left in a wrong state, and empties it, so that nobody reads
 * past its memory. */
static void restore_result(EtcTensor *t, const HostResult *was)
{
    *t = was->t;
    for (int32_t i = 0; !t->is_static && (i < t->rank); i++) {
        t->dim[i] = 0;
    }
}

/* Runs a kernel of the host, whose results must be tensors of the plan. */
static EtcStatus run_host(const EtcCall *c, const EtcKernelRow *row, const char **what)
{
    HostResult was[MAX_HOST_OUTS];
    for (int32_t k = 0; k < row->n_outs; k++) {
        const EtcValue *v = c->arg[row->first_out + k];
        if (v->tag != ETC_TENSOR) {
            *what = ETC_TEXT("a result of the host's kernel is not a tensor");
            return ETC_BAD_FILE;
        }
        was[k].t = *v->as.tensor;
        was[k].bytes = etc_tensor_bytes(v->as.tensor);
    }
    EtcStatus status = row->run(c);
    for (int32_t k = 0; k < row->n_outs; k++) {
        EtcTensor *t = c->arg[row->first_out + k]->as.tensor;
        *what = (*what == NULL) ? fault_of_result(t, &was[k]) : *what;
        if (*what != NULL) {
            restore_result(t, &was[k]);
        }
    }
    return ((*what != NULL) && (status == ETC_OK)) ? ETC_BAD_ARG : status;
}

static EtcStatus call_kernel(EtcMethod *m, const EtcFlat *f, uint32_t call, uint32_t i, EtcError *e)
{
    const Operator *op = &m->op[etc_flat_i32(f, call, KERNEL_OPERATOR)];
    EtcFlatVec args = etc_flat_vec(f, call, KERNEL_ARGS);
    EtcCall c;
    for (uint32_t k = 0; k < args.n; k++) {
        m->arg[k] = &m->value[etc_flat_item_i32(args, k)];
    }
    c.arg = m->arg;
    c.n_args = (int32_t)args.n;
    c.scratch = m->scratch;
    c.cores = m->cores;
    c.work = (m->work_limit > 0) ? &m->work_left : NULL;
    const char *what = admit_all(&c, op);
    EtcStatus status = ETC_BAD_FILE;
    if (what == NULL) {
        status = (ETC_BUILD_HOST_KERNELS && op->is_host) ? run_host(&c, op->row, &what)
                                                        : op->row->run(&c);
    }
    for (int32_t k = 0; k < op->row->n_args; k++) {
        release(m->arg[k]);
    }
    if ((status != ETC_OK) && (what == NULL) && is_check(&c)) {
        return etc_fail_text(e, ETC_BAD_ARG, c.arg[1]->as.str.text, c.arg[0]->as.i);
    }
    status = (status == ETC_OK) ? charge(m, op->row->n_args) : status;
    if (status != ETC_OK) {
        what = (status == ETC_TOO_MUCH)   ? too_much
               : (status == ETC_SINGULAR) ? ETC_TEXT("a matrix is singular, or not positive definite")
                                          : what;
        etc_fail(e, status, what ? what : "the kernel refused its arguments", i);
        etc_name_operator(e, op);
    }
    return status;
}

/* A delegate checks its results itself, since these may still have their largest sizes. */
static EtcStatus call_delegate(EtcMethod *m, const EtcFlat *f, uint32_t call, uint32_t i,
                               EtcError *e)
{
    const Delegate *d = &m->delegate[etc_flat_u32(f, call, DELEGATE_CALL_INDEX)];
    EtcFlatVec args = etc_flat_vec(f, call, DELEGATE_CALL_ARGS);
    for (uint32_t k = 0; k < args.n; k++) {
        m->arg[k] = &m->value[etc_flat_item_i32(args, k)];
    }
    etc_fail(e, ETC_OK, NULL, i);
    EtcStatus status = d->kind->run(d->state, m->arg, (int32_t)args.n, e);
    if ((status == ETC_OK) && (charge(m, (int32_t)args.n) != ETC_OK)) {
        status = etc_fail(e, ETC_TOO_MUCH, too_much, i);
    }
    if ((status != ETC_OK) && (e != NULL)) {
        e->name = d->kind->id;
        e->overload = NULL;
    }
    return status;
}

/* -- other instructions ------------------------------------------------------------------ */

/* Returns whether a condition is true; -1: it is neither a bool nor a tensor of bools.  A tensor is
 * true if all its elements are. */
static int is_true(const EtcValue *v)
{
    if (v->tag == ETC_IS_BOOL) {
        return v->as.b != 0;
    }
    if ((v->tag != ETC_TENSOR) || (v->as.tensor->dtype != ETC_BOOL) || !is_backed(v->as.tensor)) {
        return -1;
    }
    int64_t n = etc_numel(v->as.tensor);
    const uint8_t *b = v->as.tensor->data;
    for (int64_t k = 0; k < n; k++) {
        if (b[k] == 0) {
            return 0;
        }
    }
    return 1;
}

static EtcStatus step(EtcMethod *m, const EtcFlat *f, EtcFlatVec list, uint32_t *pc, EtcError *e)
{
    uint32_t here = *pc, instruction = etc_flat_item_table(f, list, here);
    uint32_t at = etc_flat_table(f, instruction, INSTRUCTION_VALUE);
    EtcTensor *t;
    int holds;
    *pc = here + 1;
    switch ((Instruction)etc_flat_u8(f, instruction, INSTRUCTION_TYPE)) {
    case KERNEL_CALL:
        return call_kernel(m, f, at, here, e);
    case MOVE_CALL:
        m->value[etc_flat_i32(f, at, MOVE_TO)] = m->value[etc_flat_i32(f, at, MOVE_FROM)];
        return ETC_OK;
    case JUMP_FALSE_CALL:
        holds = is_true(&m->value[etc_flat_i32(f, at, JUMP_CONDITION)]);
        if (holds < 0) {
            return etc_fail(e, ETC_BAD_FILE, "condition of a jump is not a bool", here);
        }
        *pc = holds ? here + 1 : etc_flat_u32(f, at, JUMP_DESTINATION);
        return ETC_OK;
    case FREE_CALL: /* the tensor has no memory until the next run */
        t = m->value[etc_flat_i32(f, at, FREE_VALUE)].as.tensor;
        t->data = m;
        t->capacity = 0;
        return ETC_OK;
    case DELEGATE_CALL:
        if (ETC_BUILD_DELEGATES) {
            return call_delegate(m, f, at, here, e);
        }
        /* fall through */
    default:
        return etc_fail(e, ETC_UNSUPPORTED, "instruction that this build lacks", here);
    }
}

/* -- profiles ---------------------------------------------------------------------------- */

void etc_method_observe(EtcMethod *m, EtcObserver *observer, void *host)
{
    m->observer = observer;
    m->observer_host = host;
}

static void call_observer(const EtcMethod *m, const EtcFlat *f, EtcFlatVec list, uint32_t pc,
                          uint32_t first)
{
    uint32_t instruction = etc_flat_item_table(f, list, pc);
    uint32_t at = etc_flat_table(f, instruction, INSTRUCTION_VALUE);
    Instruction type = (Instruction)etc_flat_u8(f, instruction, INSTRUCTION_TYPE);
    EtcExecuted s = {first + pc, NULL, NULL, -1};
    if (type == KERNEL_CALL) {
        s.name = m->op[etc_flat_i32(f, at, KERNEL_OPERATOR)].name;
        s.overload = m->op[etc_flat_i32(f, at, KERNEL_OPERATOR)].overload;
    } else if (type == DELEGATE_CALL) {
        s.delegate = etc_flat_i32(f, at, DELEGATE_CALL_INDEX);
        s.name = m->delegate[s.delegate].kind->id;
    }
    m->observer(m->observer_host, &s);
}

int32_t etc_method_n_delegates(const EtcMethod *m)
{
    return (int32_t)m->n_delegates;
}

static const Delegate *delegate_at(const EtcMethod *m, int32_t i)
{
    return ((i >= 0) && ((uint32_t)i < m->n_delegates)) ? &m->delegate[i] : NULL;
}

int32_t etc_method_parts(const EtcMethod *m, int32_t delegate, EtcPart *to, int32_t room)
{
    const Delegate *d = delegate_at(m, delegate);
    return ((d != NULL) && (d->kind->parts != NULL)) ? d->kind->parts(d->state, to, room) : 0;
}

int64_t etc_method_held_bytes(const EtcMethod *m, int32_t delegate)
{
    const Delegate *d = delegate_at(m, delegate);
    return ((d != NULL) && (d->kind->held_bytes != NULL)) ? d->kind->held_bytes(d->state) : 0;
}

void etc_method_limit(EtcMethod *m, int64_t work)
{
    m->work_limit = work;
}

/* -- run --------------------------------------------------------------------------------- */

/* Lets all tensors point to their own memory again.  A view of the last run may point to an input
 * that no longer exists. */
static void reset_tensors(EtcMethod *m)
{
    for (uint32_t i = 0; i < m->n_slots; i++) {
        Slot *s = &m->slot[i];
        s->t.data = s->home;
        s->t.capacity = s->home_bytes;
        s->t.is_const = s->is_const;
    }
}

EtcStatus etc_method_run(EtcMethod *m, EtcError *e)
{
    EtcFlat f = etc_program_flat(&m->program);
    int32_t n_steps = 0;
    uint32_t first = 0;
    m->work_left = m->work_limit;
    reset_tensors(m);
    for (uint32_t c = 0; c < m->chains.n; c++) {
        EtcFlatVec list = chain_at(m, &f, c);
        for (uint32_t pc = 0; pc < list.n;) {
            uint32_t here = pc;
            if ((m->work_limit > 0) && (m->work_left-- == 0)) {
                return etc_fail(e, ETC_TOO_MUCH, too_much, here);
            }
            if (n_steps++ == ETC_MAX_STEPS) {
                return etc_fail(e, ETC_LIMIT, "more than 10,000,000 instructions in a run", here);
            }
            EtcStatus status = step(m, &f, list, &pc, e);
            if (status != ETC_OK) {
                return status;
            }
            if (m->observer != NULL) {
                call_observer(m, &f, list, here, first);
            }
        }
        first += list.n;
    }
    for (int32_t i = 0; i < etc_method_n_outputs(m); i++) {
        const EtcValue *v = etc_method_output(m, i);
        if ((v->tag == ETC_TENSOR) && !is_backed(v->as.tensor)) {
            return etc_fail(e, ETC_BAD_FILE, "output is a tensor without memory", i);
        }
    }
    return ETC_OK;
}
