/* values.c -- builds the values of a method: tensors and where their bytes are, lists, scalars;
 * then checks its inputs and outputs. */
#include "runtime-lite/internal.h"
#include "runtime-lite/kernels/kernels.h"

#include <string.h>

/* -- tensors ----------------------------------------------------------------------------- */

int64_t etc_tensor_bytes(const EtcTensor *t)
{
    int64_t bytes = etc_bytes(t->dtype, t->dim, t->rank);
    return ((uint64_t)bytes <= SIZE_MAX / 2) ? bytes : -1;
}

/* Removes const: EtcTensor has one pointer, for data that may be written and data that may not. */
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
        return etc_fail(b->e, ETC_BAD_FILE, "dim_order is missing or not as long as the sizes", i);
    }
    for (uint32_t k = 0; k < order.n; k++) {
        uint32_t bit = (order.item[k] < order.n) ? 1u << order.item[k] : 0;
        if ((bit == 0) || ((seen & bit) != 0)) {
            return etc_fail(b->e, ETC_BAD_FILE, "dim_order is not a permutation", i);
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
        return etc_fail(b->e, ETC_BAD_FILE, "tensor without sizes", i);
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
    uint32_t pool = etc_flat_u32(&b->f, allocation, ALLOCATION_POOL);
    uint64_t low = etc_flat_u32(&b->f, allocation, ALLOCATION_OFFSET_LOW);
    uint64_t high = etc_flat_u32(&b->f, allocation, ALLOCATION_OFFSET_HIGH);
    uint64_t offset = low | (high << 32);
    if ((pool == 0) || (pool >= pools.n)) {
        return etc_fail(b->e, ETC_BAD_FILE, "tensor in a pool that does not exist", i);
    }
    uint64_t size = (uint64_t)etc_flat_item_i64(pools, pool);
    if ((offset > size) || ((uint64_t)bytes > size - offset)) {
        return etc_fail(b->e, ETC_BAD_FILE, "tensor past the end of its pool", i);
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
            return etc_fail(b->e, ETC_BAD_FILE,
                            "data of a tensor is not, or not wholly, in the file", i);
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
    size_t align = (s->t.dtype == ETC_C64) ? sizeof(float) : etc_dtype_size((int)s->t.dtype);
    if ((uintptr_t)s->home % align != 0) {
        return etc_fail(b->e, ETC_BAD_FILE, "data of a tensor is misaligned", i);
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
    if ((etc_dtype_size((int)s->t.dtype) == 0) || !ETC_HAS((int)s->t.dtype)) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "dtype that this build lacks", i);
    }
    if ((extra != 0) && (etc_flat_u8(&b->f, extra, EXTRA_LOCATION) != 0)) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "tensor whose data is in another file", i);
    }
    if (((extra != 0) && (etc_flat_u8(&b->f, extra, EXTRA_DEVICE) != 0)) ||
        (etc_flat_u8(&b->f, at, TENSOR_LAYOUT) != 0)) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "tensor that is sparse or on a device", i);
    }
    if (etc_flat_i32(&b->f, at, TENSOR_STORAGE_OFFSET) != 0) {
        return etc_fail(b->e, ETC_BAD_FILE, "tensor with a storage offset", i);
    }
    EtcStatus status = read_sizes(b, at, &s->t, i);
    status = (status == ETC_OK) ? read_order(b, at, &s->t, i) : status;
    if (status != ETC_OK) {
        return status;
    }
    int64_t bytes = etc_tensor_bytes(&s->t);
    if (bytes < 0) {
        return etc_fail(b->e, ETC_BAD_FILE, "sizes of a tensor are negative or too large", i);
    }
    status = place(b, at, s, bytes, i);
    s->t.data = s->home;
    s->t.capacity = s->home_bytes;
    s->t.is_const = s->is_const;
    return status;
}

/* -- values ------------------------------------------------------------------------------ */

/* A list of tensors may only contain values before it, so no list contains itself. */
static EtcStatus read_tensors(Build *b, EtcFlatVec items, EtcValue *v, uint32_t i)
{
    EtcMethod *m = b->m;
    for (uint32_t k = 0; k < items.n; k++) {
        int32_t at = etc_flat_item_i32(items, k);
        EtcValue *item = &m->none;
        int may_be_none = v->tag == ETC_LIST_OPT_TENSOR;
        if (!may_be_none || (at != -1)) {
            if ((at < 0) || ((uint32_t)at >= i)) {
                return etc_fail(b->e, ETC_BAD_FILE, "list item is not a value before the list", i);
            }
            item = &m->value[at];
        }
        if ((item->tag != ETC_TENSOR) && !(may_be_none && (item->tag == ETC_NONE))) {
            return etc_fail(b->e, ETC_BAD_FILE, "list item is not a tensor", i);
        }
        m->item[b->n_items++] = item;
    }
    return ETC_OK;
}

/* Items may come after the list, but each must be an int in the file. */
static EtcStatus read_ints(Build *b, EtcFlatVec items, uint32_t i)
{
    EtcFlatVec values = etc_flat_vec(&b->f, b->plan, PLAN_VALUES);
    for (uint32_t k = 0; k < items.n; k++) {
        int64_t at = etc_flat_item_i64(items, k);
        if ((at < 0) || (at >= values.n)) {
            return etc_fail(b->e, ETC_BAD_FILE, "list item is not a value", i);
        }
        uint32_t evalue = etc_flat_item_table(&b->f, values, (uint32_t)at);
        if (etc_flat_u8(&b->f, evalue, EVALUE_TYPE) != VALUE_INT) {
            return etc_fail(b->e, ETC_BAD_FILE, "list item is not an int", i);
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
            return etc_fail(b->e, ETC_BAD_FILE, "bool that is neither 0 nor 1", i);
        }
    }
    return ETC_OK;
}

static double read_double(const EtcFlat *f, uint32_t at)
{
    uint64_t bits = etc_flat_u64(f, at, DOUBLE_VALUE);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static EtcStatus read_value(Build *b, uint32_t evalue, EtcValue *v, uint32_t i)
{
    uint8_t type = etc_flat_u8(&b->f, evalue, EVALUE_TYPE);
    uint32_t at = etc_flat_table(&b->f, evalue, EVALUE_VALUE);
    EtcFlatVec items = {NULL, 0};
    memset(v, 0, sizeof *v);
    if (type >= VALUE_STRING) {
        items = etc_flat_vec(&b->f, at, LIST_ITEMS);
    }
    if (!ETC_BUILD_DOUBLES && ((type == VALUE_DOUBLE) || (type == VALUE_DOUBLE_LIST))) {
        return etc_fail(b->e, ETC_UNSUPPORTED, "float, which this build lacks", i);
    }
    switch ((ValueType)type) {
    case VALUE_INT:
        v->tag = ETC_INT;
        v->as.i = (int64_t)etc_flat_u64(&b->f, at, INT_VALUE);
        return ETC_OK;
    case VALUE_BOOL:
        v->tag = ETC_IS_BOOL;
        v->as.b = etc_flat_u8(&b->f, at, BOOL_VALUE) != 0;
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

EtcStatus etc_build_values(Build *b)
{
    EtcFlatVec values = etc_flat_vec(&b->f, b->plan, PLAN_VALUES);
    EtcStatus status = ETC_OK;
    for (uint32_t i = 0; (status == ETC_OK) && (i < values.n); i++) {
        uint32_t evalue = etc_flat_item_table(&b->f, values, i);
        status = read_value(b, evalue, &b->m->value[i], i);
    }
    return status;
}

EtcStatus etc_build_ends(Build *b)
{
    EtcMethod *m = b->m;
    for (uint32_t i = 0; i < m->inputs.n; i++) {
        int32_t at = etc_flat_item_i32(m->inputs, i);
        if ((at < 0) || ((uint32_t)at >= m->n_values)) {
            return etc_fail(b->e, ETC_BAD_FILE, "input is not a value", i);
        }
        if (m->value[at].tag == ETC_TENSOR) {
            Slot *s = (Slot *)(void *)m->value[at].as.tensor;
            if (s->is_const && s->is_planned) {
                return etc_fail(b->e, ETC_BAD_FILE, "input is a constant tensor", i);
            }
            s->is_input = 1;
            s->is_const = !s->is_planned; /* the caller's data is never written */
            s->t.is_const = s->is_const;
        }
    }
    for (uint32_t i = 0; i < m->outputs.n; i++) {
        int32_t at = etc_flat_item_i32(m->outputs, i);
        if ((at < 0) || ((uint32_t)at >= m->n_values)) {
            return etc_fail(b->e, ETC_BAD_FILE, "output is not a value", i);
        }
    }
    return ETC_OK;
}
