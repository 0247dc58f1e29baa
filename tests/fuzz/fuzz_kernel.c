/* fuzz_kernel.c -- libFuzzer target: a call of a kernel that was recorded from PyTorch (tests/ops),
 * changed, and made as the executor makes it.
 *
 * The first bytes choose the kernel, the call and the instruction set.  The bytes that follow
 * change the call: sizes, ranks, dtypes and memory orders, numbers, lists and kinds of arguments,
 * the data of tensors, and their places in memory.  The kernel may refuse the call.  It must not
 * touch memory that is not its own, and must not leave a tensor larger than its memory.
 *
 * OPS is the folder of recorded calls.  With KERNELS_REACHED=FILE, the name of each kernel and the
 * number of its calls that were not refused are written there at the end.
 *
 * That the target finds anything is shown with -DPLANTED_BUG and without kernels/args.c: 17 numbers
 * are then read where 16 have room, and a write behind these is found. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/internal.h"
#include "runtime-lite/kernels/cores.h"
#include "tests/fuzz/draw.h"
#include "tests/ops_cases.h"
#include <dirent.h>
#include <stdbool.h>

#ifdef PLANTED_BUG
#define ETC_MAX_RANK 17
#include "runtime-lite/kernels/args.c"
#undef ETC_MAX_RANK
#endif

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* -- kernels and their calls ----------------------------------------------------------------- */

typedef struct Kernel {
    const char *name;
    const EtcKernelRow *row; /* NULL: no .pte calls it */
    EtcKernel *run;
    int n_args; /* outs and return slot included */
    Case **call;
    int n_calls;
    long n_done; /* calls that were not refused */
} Kernel;

enum { MAX_KERNELS = 400, MAX_CASE = 60000, MEMORY = 64 << 20 };

static Kernel kernel[MAX_KERNELS]; /* filled by LLVMFuzzerInitialize */
static int n_kernels;

static const EtcKernelRow *find_row(const char *name)
{
    for (int32_t i = 0; etc_kernel_at(i); i++)
        if (strcmp(etc_kernel_at(i)->name, name) == 0)
            return etc_kernel_at(i);
    return NULL;
}

static void add_call(const Case *from, EtcKernel *run, int n_args)
{
    int i = 0;
    while (i < n_kernels && strcmp(kernel[i].name, from->key) != 0)
        i++;
    must_hold(i < MAX_KERNELS, "more kernels than this target holds");
    Kernel *k = &kernel[i];
    Case *c = malloc(sizeof *c);
    k->call = realloc(k->call, sizeof *k->call * (size_t)(k->n_calls + 1));
    must_hold(c && k->call, "no memory");
    *c = *from;
    k->call[k->n_calls++] = c;
    k->name = k->call[0]->key;
    k->row = find_row(k->name);
    k->run = run;
    k->n_args = n_args;
    n_kernels += i == n_kernels;
}

static void read_calls(const char *path, Reader *r)
{
    static unsigned char file[8 << 20];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(file, 1, sizeof file, f) : 0;
    must_hold(n > 8 && n < sizeof file, path);
    fclose(f);
    r->at = file + 8;
    r->end = file + n;
    while (r->at < r->end) {
        const unsigned char *start = r->at;
        Case c;
        get_case(r, &c);
        EtcKernel *run = find_kernel(c.key);
        must_hold(run != NULL, c.key);
        if (r->at - start <= MAX_CASE) {
            add_call(&c, run, c.n_args + (outs_are_list(&c) ? 1 : c.n_outs));
            r->arena += r->used;
            r->room -= r->used;
        } else {
            free_case(&c);
        }
    }
}

/* Kernels of sizes and numbers have no recorded calls.  Theirs are written as a letter per
 * argument: an int (i, 0), a double, a bool, a list, a tensor of one or two axes (t, m). */
static EtcValue plain_value(char letter)
{
    static int32_t one[] = {1, 1};
    static float zero;
    static EtcTensor vector = {&zero, ETC_F32, 1, one, NULL, 4, 0, 0},
                     matrix = {&zero, ETC_F32, 2, one, NULL, 4, 0, 0};
    static EtcValue number = {.tag = ETC_INT, .as.i = 1}, *const item[] = {&number};
    EtcValue v = {.tag = ETC_INT, .as.i = letter != '0'};
    v.tag = letter == 'd' ? ETC_DOUBLE : letter == 'b' ? ETC_IS_BOOL : ETC_INT;
    if (letter == 't' || letter == 'm')
        v = (EtcValue){.tag = ETC_TENSOR, .as.tensor = letter == 't' ? &vector : &matrix};
    if (letter == 'l')
        v = (EtcValue){.tag = ETC_LIST_INT, .as.list = {item, 1}};
    if (letter == 'd')
        v.as.d = 1.5;
    return v;
}

static void add_plain_calls(void)
{
    static const struct {
        const char *name, *arguments;
    } other[] = {{"aten::_local_scalar_dense", "ti"},
                 {"aten::copy_", "ttb"},
                 {"aten::sym_numel", "ti"},
                 {"aten::sym_size.int", "t0i"},
                 {"executorch_prim::ceil.Scalar", "di"},
                 {"executorch_prim::et_copy_index.tensor", "mt0"},
                 {"executorch_prim::et_view.default", "tlt"},
                 {"executorch_prim::round.Scalar", "di"},
                 {"executorch_prim::sym_ite.Scalar", "biii"},
                 {"executorch_prim::sym_not.Scalar", "bi"},
                 {"executorch_prim::trunc.Scalar", "di"}};
    for (int32_t i = 0; etc_kernel_at(i); i++) {
        const EtcKernelRow *row = etc_kernel_at(i);
        const char *letter = "iiii"; /* as most of arithmetic has it */
        for (size_t k = 0; k < sizeof other / sizeof *other; k++)
            letter = strcmp(row->name, other[k].name) ? letter : other[k].arguments;
        if (letter[0] == 'i' && strncmp(row->name, "executorch_prim", 15) != 0)
            continue;
        Case c = {.n_args = row->n_args};
        snprintf(c.key, sizeof c.key, "%s", row->name);
        for (int k = 0; k < c.n_args; k++)
            c.value[k] = plain_value(letter[k]);
        add_call(&c, row->run, row->n_args);
    }
}

static void write_reached(void)
{
    FILE *f = fopen(getenv("KERNELS_REACHED"), "w");
    must_hold(f != NULL, "KERNELS_REACHED: no such place");
    for (int i = 0; i < n_kernels; i++)
        fprintf(f, "%s %ld\n", kernel[i].name, kernel[i].n_done);
    for (int32_t i = 0; etc_kernel_at(i); i++) {
        int k = 0;
        while (k < n_kernels && strcmp(kernel[k].name, etc_kernel_at(i)->name) != 0)
            k++;
        if (k == n_kernels)
            fprintf(f, "%s 0\n", etc_kernel_at(i)->name);
    }
    fclose(f);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *folder = getenv("OPS") ? getenv("OPS") : "tests/ops";
    static unsigned char memory[MEMORY];
    Reader r = {.arena = memory, .room = sizeof memory};
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[512];
        size_t length = strlen(entry[i]->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        if (length > 4 && !strcmp(entry[i]->d_name + length - 4, ".bin"))
            read_calls(path, &r);
        free(entry[i]);
    }
    free(entry);
    must_hold(n_kernels > 0, "OPS: no recorded calls");
    add_plain_calls();
    if (getenv("KERNELS_REACHED"))
        atexit(write_reached);
    return 0;
}

/* -- a call that can be changed --------------------------------------------------------------- */

enum { MAX_TENSORS = 96, MAX_VALUES = 2000, MAX_ITEMS = 2000, MAX_NUMBERS = 400, MAX_LIST = 18 };
enum { MAX_BYTES = 1 << 17, MAX_CHANGES = 12, PLACES_BEYOND = 64 };

typedef struct Tensor {
    EtcTensor t; /* first: what values point at */
    int32_t dim[ETC_MAX_RANK];
    uint8_t order[ETC_MAX_RANK];
    const EtcTensor *recorded;
    bool is_out, is_seen;
    int64_t extra; /* bytes beyond those of its sizes */
    void *own;
} Tensor;

typedef struct Call {
    Tensor tensor[MAX_TENSORS];
    EtcValue value[MAX_VALUES], *item[MAX_ITEMS], *arg[MAX_ARGS + MAX_OUTS];
    double number[MAX_NUMBERS];
    int n_tensors, n_values, n_items, n_numbers, n_args;
    unsigned overlay; /* 0: each tensor has memory of its own */
    unsigned noise;   /* what tensors hold: 0: as recorded */
} Call;

static EtcTensor *copy_tensor(Call *c, const EtcTensor *from, bool is_out)
{
    must_hold(c->n_tensors < MAX_TENSORS, "more tensors than this target holds");
    Tensor *t = &c->tensor[c->n_tensors++];
    memset(t, 0, sizeof *t);
    t->t = *from;
    t->recorded = from;
    t->is_out = is_out;
    memcpy(t->dim, from->dim, sizeof *t->dim * (size_t)from->rank);
    t->t.dim = t->dim;
    if (from->order) {
        memcpy(t->order, from->order, (size_t)from->rank);
        t->t.order = t->order;
    }
    return &t->t;
}

static EtcValue *add_value(Call *c, EtcValue v)
{
    must_hold(c->n_values < MAX_VALUES, "more values than this target holds");
    c->value[c->n_values] = v;
    return &c->value[c->n_values++];
}

/* Room for n items more, where there is any. */
static EtcValue **add_items(Call *c, int n)
{
    EtcValue **item = &c->item[c->n_items];
    if (c->n_items + n > MAX_ITEMS || c->n_values + n > MAX_VALUES)
        return NULL;
    c->n_items += n;
    return item;
}

static bool is_tensors(const EtcValue *v)
{
    return v->tag == ETC_LIST_TENSOR || v->tag == ETC_LIST_OPT_TENSOR;
}

static EtcValue *copy_value(Call *c, const EtcValue *from)
{
    EtcValue *v = add_value(c, *from);
    if (v->tag == ETC_TENSOR)
        v->as.tensor = copy_tensor(c, from->as.tensor, false);
    if (is_tensors(v) || v->tag == ETC_LIST_INT) {
        EtcValue **item = add_items(c, from->as.list.n);
        must_hold(item || !from->as.list.n, "more items than this target holds");
        for (int i = 0; i < from->as.list.n; i++)
            item[i] = copy_value(c, from->as.list.item[i]);
        v->as.list.item = item;
    }
    if (v->tag == ETC_LIST_DOUBLE) {
        double *to = &c->number[c->n_numbers];
        c->n_numbers += from->as.doubles.n;
        must_hold(c->n_numbers <= MAX_NUMBERS, "more numbers than this target holds");
        memcpy(to, from->as.doubles.item, sizeof *to * (size_t)from->as.doubles.n);
        v->as.doubles.item = to;
    }
    return v;
}

static void copy_call(Call *c, const Kernel *k, const Case *from)
{
    c->n_tensors = c->n_values = c->n_items = c->n_numbers = c->n_args = 0;
    c->overlay = c->noise = 0;
    for (int i = 0; i < from->n_args; i++)
        c->arg[c->n_args++] = copy_value(c, &from->value[i]);
    EtcValue **out = &c->arg[c->n_args], *list = NULL;
    if (k->n_args == from->n_args + 1 && from->n_outs > 1) {
        out = add_items(c, from->n_outs);
        list = add_value(c, (EtcValue){.tag = ETC_LIST_TENSOR, .as.list = {out, from->n_outs}});
    }
    for (int i = 0; i < from->n_outs; i++) {
        EtcTensor *t = copy_tensor(c, &from->out[i].expected, true);
        out[i] = add_value(c, (EtcValue){.tag = ETC_TENSOR, .as.tensor = t});
    }
    if (list)
        c->arg[c->n_args] = list;
    c->n_args = k->n_args;
}

/* -- changes ---------------------------------------------------------------------------------- */

static const EtcDtype dtypes[] = {
#define X(id, code, size, name) ETC_##id,
    ETC_DTYPES(X)
#undef X
};

/* Returns the bytes of a tensor of these sizes, none counted as 0; -1: more than anybody has. */
static int64_t most_bytes(const EtcTensor *t)
{
    int64_t n = (int64_t)etc_dtype_size((int)t->dtype);
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(n, t->dim[i] ? t->dim[i] : 1, &n) || n > MAX_BYTES)
            return -1;
    return n;
}

static void change_size(Tensor *t, Draw *d)
{
    if (!t->t.rank)
        return;
    int32_t *dim = &t->dim[draw_below(d, (size_t)t->t.rank)], was = *dim;
    int64_t size = draw_size(d);
    *dim = size < INT32_MAX ? (int32_t)size : INT32_MAX;
    if (most_bytes(&t->t) < 0)
        *dim = was;
}

static void change_rank(Tensor *t, Draw *d)
{
    int rank = (int)draw_below(d, ETC_MAX_RANK + 1);
    for (int i = t->t.rank; i < rank; i++)
        t->dim[i] = 1;
    t->t.rank = rank;
    t->t.order = NULL;
}

static void change_dtype(Tensor *t, Draw *d)
{
    EtcDtype was = t->t.dtype;
    t->t.dtype = DRAW_FROM(d, dtypes);
    if (most_bytes(&t->t) < 0)
        t->t.dtype = was;
}

static void change_order(Tensor *t, Draw *d)
{
    for (int i = 0; i < t->t.rank; i++)
        t->order[i] = (uint8_t)i;
    for (int i = t->t.rank - 1; i > 0; i--) {
        unsigned k = draw_below(d, (size_t)i + 1);
        uint8_t at = t->order[i];
        t->order[i] = t->order[k];
        t->order[k] = at;
    }
    t->t.order = t->order;
}

static void change_tensor(Call *c, Draw *d)
{
    if (!c->n_tensors)
        return;
    Tensor *t = &c->tensor[draw_below(d, (size_t)c->n_tensors)];
    switch (draw_below(d, 8)) {
    case 0:
        change_rank(t, d);
        break;
    case 1:
        change_dtype(t, d);
        break;
    case 2:
        change_order(t, d);
        break;
    case 3:
        t->t.is_static ^= 1;
        break;
    case 4:
        t->t.is_const ^= 1;
        break;
    case 5:
        t->extra = 4096;
        break;
    default:
        change_size(t, d);
    }
}

static EtcValue *any_argument(Call *c, Draw *d)
{
    return c->arg[draw_below(d, (size_t)c->n_args)];
}

static void change_number(Call *c, Draw *d)
{
    EtcValue *v = any_argument(c, d);
    if (v->tag == ETC_LIST_INT && v->as.list.n)
        v = v->as.list.item[draw_below(d, (size_t)v->as.list.n)];
    if (v->tag == ETC_INT)
        v->as.i = draw_int(d);
    else if (v->tag == ETC_DOUBLE)
        v->as.d = draw_double(d);
    else if (v->tag == ETC_IS_BOOL)
        v->as.b ^= 1;
    else if (v->tag == ETC_LIST_DOUBLE && v->as.doubles.n)
        c->number[v->as.doubles.item - c->number + draw_below(d, (size_t)v->as.doubles.n)] =
            draw_double(d);
}

/* Longer, shorter, with other items; a plain list of tensors stays one of tensors alone. */
static void change_list(Call *c, Draw *d)
{
    EtcValue *v = any_argument(c, d);
    int was = v->as.list.n, n = (int)draw_below(d, MAX_LIST);
    EtcValue **item = is_tensors(v) || v->tag == ETC_LIST_INT ? add_items(c, n) : NULL;
    if (!item || (v->tag == ETC_LIST_TENSOR && !was))
        return;
    for (int i = 0; i < n; i++) {
        bool is_old = i < was && draw_below(d, 4);
        if (is_old || (is_tensors(v) && was && (v->tag == ETC_LIST_TENSOR || draw_below(d, 2))))
            item[i] = v->as.list.item[is_old ? i : (int)draw_below(d, (size_t)was)];
        else
            item[i] = add_value(c, is_tensors(v) ? (EtcValue){.tag = ETC_NONE}
                                                 : (EtcValue){.tag = ETC_INT, .as.i = draw_int(d)});
    }
    v->as.list.item = item;
    v->as.list.n = n;
}

static bool holds_tensors_alone(const EtcValue *list)
{
    for (int i = 0; i < list->as.list.n; i++)
        if (list->as.list.item[i]->tag != ETC_TENSOR)
            return false;
    return true;
}

static void change_kind(Call *c, Draw *d)
{
    EtcValue *v = any_argument(c, d);
    unsigned how = draw_below(d, 8);
    if (how == 0)
        *v = (EtcValue){.tag = ETC_NONE};
    else if (how == 1)
        *v = (EtcValue){.tag = ETC_INT, .as.i = draw_int(d)};
    else if (how == 2)
        *v = (EtcValue){.tag = ETC_DOUBLE, .as.d = draw_double(d)};
    else if (how == 3)
        *v = (EtcValue){.tag = ETC_IS_BOOL, .as.b = 1};
    else if (how == 4)
        *v = (EtcValue){.tag = ETC_STRING, .as.str = {"x", 1}};
    else if (how == 5)
        *v = (EtcValue){.tag = ETC_LIST_INT};
    else if (how == 6 && c->n_tensors)
        *v = (EtcValue){.tag = ETC_TENSOR,
                        .as.tensor = &c->tensor[draw_below(d, (size_t)c->n_tensors)].t};
    else if (is_tensors(v) && (v->tag == ETC_LIST_TENSOR || holds_tensors_alone(v)))
        v->tag = v->tag == ETC_LIST_TENSOR ? ETC_LIST_OPT_TENSOR : ETC_LIST_TENSOR;
}

static void change_places(Call *c, Draw *d)
{
    EtcValue *a = any_argument(c, d), *b = any_argument(c, d), was = *a;
    *a = *b;
    if (draw_below(d, 2))
        *b = was;
}

static void change(Call *c, Draw *d)
{
    switch (draw_below(d, 16)) {
    case 0:
        change_list(c, d);
        break;
    case 1:
        change_kind(c, d);
        break;
    case 2:
        change_places(c, d);
        break;
    case 3:
    case 4:
        c->overlay = 1 + draw_below(d, 255);
        break;
    case 5:
    case 6:
        c->noise = 1 + draw_below(d, 255);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        change_number(c, d);
        break;
    default:
        change_tensor(c, d);
    }
}

/* -- memory ----------------------------------------------------------------------------------- */

/* Fills a tensor with what was recorded, as far as that goes; where noise is asked for, with noise
 * in all bytes or one in sixteen, large or small. */
static void fill(const Call *c, const Tensor *t, int64_t bytes, uint32_t *seed)
{
    uint8_t *to = t->t.data;
    int64_t n = t->recorded->capacity < bytes ? t->recorded->capacity : bytes;
    if (!t->is_out || c->noise)
        memcpy(to, t->recorded->data, (size_t)n);
    for (int64_t i = 0; i < bytes && c->noise; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        if (c->noise & 1 || !(*seed >> 28))
            to[i] = (uint8_t)((*seed >> 16) & (c->noise & 2 ? 255 : 3));
    }
}

/* Where a tensor lies in the block: anywhere, or exactly where one before it does. */
static uint8_t *place_in_block(const Call *c, int i, uint8_t *block, size_t room, Draw *d)
{
    const EtcTensor *t = &c->tensor[i].t;
    size_t size = etc_dtype_size((int)t->dtype), bytes = (size_t)t->capacity;
    const Tensor *other = &c->tensor[draw_below(d, (size_t)i + 1)];
    size_t at = draw_below(d, 256) * size;
    if (other != &c->tensor[i] && !other->own)
        at = (size_t)((uint8_t *)other->t.data - block);
    if (at + bytes > room || at % size)
        at = (room - bytes) / size * size;
    return block + at;
}

/* Each tensor gets memory of exactly its size, or a piece of one block for all inputs and some
 * results.  What no .pte calls has memory of its own. */
static void *place(Call *c, const Kernel *k, Draw *d)
{
    uint32_t seed = c->noise * 2654435761u + 1;
    size_t room = PLACES_BEYOND;
    for (int i = 0; i < c->n_tensors; i++) {
        Tensor *t = &c->tensor[i];
        t->t.capacity = etc_numel(&t->t) * (int64_t)etc_dtype_size((int)t->t.dtype) + t->extra;
        room = (size_t)t->t.capacity > room ? (size_t)t->t.capacity : room;
    }
    room += c->overlay & 1 ? PLACES_BEYOND : 0;
    uint8_t *block = c->overlay && k->row ? malloc(room) : NULL;
    for (int i = 0; i < c->n_tensors; i++) {
        Tensor *t = &c->tensor[i];
        bool has_own = !block || (t->is_out && draw_below(d, 4) > 1);
        t->own = has_own ? malloc(t->t.capacity ? (size_t)t->t.capacity : 1) : NULL;
        t->t.data = has_own ? t->own : place_in_block(c, i, block, room, d);
        fill(c, t, t->t.capacity, &seed);
    }
    return block;
}

/* -- the call --------------------------------------------------------------------------------- */

static bool is_sound(const Call *c)
{
    for (int i = 0; i < c->n_tensors; i++)
        if (most_bytes(&c->tensor[i].t) < 0)
            return false;
    return true;
}

/* Fixes the sizes of a tensor that is named twice among the arguments, as the executor sees to. */
static void hold(EtcValue *v)
{
    Tensor *t = v->tag == ETC_TENSOR ? (Tensor *)v->as.tensor : NULL;
    for (int i = 0; is_tensors(v) && i < v->as.list.n; i++)
        if (v->as.list.item[i]->tag == ETC_TENSOR)
            hold(v->as.list.item[i]);
    if (t && t->is_seen)
        t->t.is_static = 1;
    if (t)
        t->is_seen = true;
}

static void check_sizes(const Call *c)
{
    for (int i = 0; i < c->n_tensors; i++) {
        const EtcTensor *t = &c->tensor[i].t;
        int64_t n = (int64_t)etc_dtype_size((int)t->dtype);
        for (int k = 0; k < t->rank; k++)
            if (t->dim[k] < 0 || __builtin_mul_overflow(n, t->dim[k], &n))
                __builtin_trap();
        if (n > t->capacity)
            __builtin_trap();
    }
}

static int n_cores(void)
{
    int n = 0;
    while (etc_cores_at(n))
        n++;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Call c;
    static _Alignas(64) uint8_t scratch[ETC_SCRATCH_BYTES];
    Draw d = {data, size, 0};
    Kernel *k = &kernel[draw_below(&d, 65536) % (unsigned)n_kernels];
    copy_call(&c, k, k->call[draw_below(&d, 65536) % (unsigned)k->n_calls]);
    const EtcCores *cores = etc_cores_at((int)draw_below(&d, (size_t)n_cores()));
    for (int i = 0; i < MAX_CHANGES && d.left; i++)
        change(&c, &d);
    if (!is_sound(&c))
        return 0;
    void *block = place(&c, k, &d);
    for (int i = 0; i < c.n_args; i++)
        hold(c.arg[i]);
    EtcCall call = {c.arg, c.n_args, scratch, cores};
    bool is_refused = k->row && etc_find_overlap(&call, k->row, 0);
    if (!is_refused && !k->run(&call)) {
        k->n_done++;
        check_sizes(&c);
    }
    for (int i = 0; i < c.n_tensors; i++)
        free(c.tensor[i].own);
    free(block);
    return 0;
}
