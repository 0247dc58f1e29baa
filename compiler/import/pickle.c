/* pickle.c -- reads the tensors of a state dict that torch.save wrote; torch 2.5 to 2.8 put such
 * files into exports.
 *
 * A pickle is a program for a stack machine whose opcodes can name any function of Python.  Here
 * nothing is called: a list has the few names that a dict of tensors needs, and what each
 * makes.  Any other name or opcode is refused.  Values are never walked into, so a value that
 * contains itself does no harm, and memory is bounded by the bytes that are read.  Source:
 * Lib/pickletools.py of CPython; torch/_utils.py, torch/serialization.py. */
#include "compiler/import/internal.h"
#include "ir/escape.h"
#include <string.h>

enum {
    MAX_STACK = 1 << 16, /* a pickler stores the items of a dict a thousand at a time */
    MAX_DEPTH = 3, /* of nested tuples: sizes are tuples in the arguments of a call */
    PROTOCOL = 2
};

typedef enum Role { ORDERED_DICT, TENSOR, PARAMETER, STORAGE_CLASS } Role;

/* A name that a pickle may contain. */
typedef struct Known {
    const char *module, *name;
    Role role;
    EtcDtype dtype; /* if it is the class of a storage */
} Known;

static const Known known[] = {
    {"collections", "OrderedDict", ORDERED_DICT, ETC_U8},
    {"torch._utils", "_rebuild_tensor_v2", TENSOR, ETC_U8},
    {"torch._utils", "_rebuild_parameter", PARAMETER, ETC_U8},
    {"torch", "FloatStorage", STORAGE_CLASS, ETC_F32},
    {"torch", "DoubleStorage", STORAGE_CLASS, ETC_F64},
    {"torch", "HalfStorage", STORAGE_CLASS, ETC_F16},
    {"torch", "BFloat16Storage", STORAGE_CLASS, ETC_BF16},
    {"torch", "LongStorage", STORAGE_CLASS, ETC_I64},
    {"torch", "IntStorage", STORAGE_CLASS, ETC_I32},
    {"torch", "ShortStorage", STORAGE_CLASS, ETC_I16},
    {"torch", "CharStorage", STORAGE_CLASS, ETC_I8},
    {"torch", "ByteStorage", STORAGE_CLASS, ETC_U8},
    {"torch", "BoolStorage", STORAGE_CLASS, ETC_BOOL},
    {"torch", "ComplexFloatStorage", STORAGE_CLASS, ETC_C64},
    {"torch", "ComplexDoubleStorage", STORAGE_CLASS, ETC_C128},
};

typedef enum ItemKind {
    IS_MARK,
    IS_NONE,
    IS_BOOL,
    IS_INT,
    IS_TEXT,
    IS_KNOWN,
    IS_TUPLE,
    IS_DICT,
    IS_STORAGE,
    IS_TENSOR
} ItemKind;

typedef struct Dict Dict;

typedef struct Item {
    uint8_t kind;  /* ItemKind */
    uint8_t depth; /* how deep a tuple is nested; else 0 */
    int n;         /* the items of a tuple */
    union {
        int64_t number;
        const char *text;
        const Known *known;
        const struct Item *item;
        Dict *dict;
        const PickledTensor *tensor; /* a storage is a tensor without sizes */
    };
} Item;

struct Dict {
    Item *item; /* keys and values in turn */
    int n;
};

typedef struct Pickle {
    Arena *arena;
    Diag *diag;
    Loc loc;
    const uint8_t *start, *at, *end;
    int64_t op_at; /* the position of the current opcode */
    Item *stack, *memo;
    int n, n_memo;
} Pickle;

static bool refuse(const Pickle *p, const char *what)
{
    return diag_error(p->diag, p->loc, "the pickle %s at byte %lld", what, (long long)p->op_at);
}

/* -- bytes and the stack ----------------------------------------------------------------------- */

/* Returns the next n bytes, or NULL after an error was reported. */
static const uint8_t *take(Pickle *p, uint64_t n)
{
    if (n > (uint64_t)(p->end - p->at)) {
        refuse(p, "ends within the opcode");
        return NULL;
    }
    const uint8_t *from = p->at;
    p->at += n;
    return from;
}

/* Reads a number of n <= 8 bytes, the lowest byte first. */
static bool take_number(Pickle *p, int n, bool is_signed, int64_t *out)
{
    assert(n >= 0 && n <= 8);
    const uint8_t *from = take(p, (uint64_t)n);
    uint64_t v = 0;
    for (int i = 0; from && i < n; i++)
        v |= (uint64_t)from[i] << (8 * i);
    if (from && is_signed && n && n < 8 && from[n - 1] & 0x80)
        v |= UINT64_MAX << (8 * n);
    *out = (int64_t)v;
    return from != NULL;
}

static bool push(Pickle *p, Item item)
{
    if (p->n == MAX_STACK)
        return refuse(p, "stacks more than 65536 values");
    PUSH(p->arena, p->stack, p->n, item);
    return true;
}

static bool has_value(const Pickle *p)
{
    return (p->n && p->stack[p->n - 1].kind != IS_MARK) ||
           refuse(p, "takes a value from an empty stack");
}

static bool pop(Pickle *p, Item *out)
{
    if (!has_value(p))
        return false;
    *out = p->stack[--p->n];
    return true;
}

/* Removes the last n values from the stack or, if n < 0, those after the last mark and the mark.
 * They stay in memory until the next push. */
static bool pop_many(Pickle *p, int n, const Item **item, int *count)
{
    int first = p->n;
    while (first && p->stack[first - 1].kind != IS_MARK && (n < 0 || p->n - first < n))
        first--;
    *item = p->n ? p->stack + first : NULL;
    *count = p->n - first;
    if (n >= 0 ? *count < n : !first)
        return refuse(p, n < 0 ? "takes values to a mark that is not there"
                               : "takes a value from an empty stack");
    p->n = first - (n < 0);
    return true;
}

/* -- values ------------------------------------------------------------------------------------ */

static bool push_tuple(Pickle *p, int n)
{
    const Item *item;
    int count;
    if (!pop_many(p, n, &item, &count))
        return false;
    Item *copy = NEW(p->arena, Item, count);
    uint8_t depth = 0;
    for (int i = 0; i < count; i++) {
        copy[i] = item[i];
        depth = item[i].depth > depth ? item[i].depth : depth;
    }
    if (depth == MAX_DEPTH)
        return refuse(p, "nests tuples deeper than 3");
    return push(p, (Item){.kind = IS_TUPLE, .depth = (uint8_t)(depth + 1), .n = count, .item = copy});
}

static bool push_number(Pickle *p, int n, bool is_signed)
{
    Item made = {.kind = IS_INT};
    return take_number(p, n, is_signed, &made.number) && push(p, made);
}

static bool push_long(Pickle *p)
{
    int64_t n;
    if (!take_number(p, 1, false, &n))
        return false;
    return n <= 8 ? push_number(p, (int)n, true) : refuse(p, "has an integer of over 64 bits");
}

static bool push_text(Pickle *p)
{
    int64_t n;
    if (!take_number(p, 4, false, &n))
        return false;
    const char *s = (const char *)take(p, (uint64_t)n);
    if (!s)
        return false;
    if (memchr(s, 0, (size_t)n) || !is_utf8(s, (size_t)n))
        return refuse(p, "has a string with a NUL or that is not UTF-8");
    return push(p, (Item){.kind = IS_TEXT, .text = arena_str(p->arena, s, (size_t)n)});
}

/* Returns the next line, or NULL after an error was reported. */
static const char *take_line(Pickle *p)
{
    const uint8_t *line = p->at, *end = memchr(line, '\n', (size_t)(p->end - line));
    if (!end) {
        refuse(p, "ends within the opcode");
        return NULL;
    }
    p->at = end + 1;
    return arena_str(p->arena, (const char *)line, (size_t)(end - line));
}

static bool push_known(Pickle *p)
{
    const char *module = take_line(p), *name = module ? take_line(p) : NULL;
    if (!name)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].module, module) && !strcmp(known[i].name, name))
            return push(p, (Item){.kind = IS_KNOWN, .known = &known[i]});
    return diag_unsupported(p->diag, p->loc,
                            "the pickle names '%.99s.%.99s' at byte %lld, which is never called: only "
                            "plain tensors are read; export the model with torch 2.9 or later",
                            module, name, (long long)p->op_at);
}

/* -- the memo ---------------------------------------------------------------------------------- */

static bool put(Pickle *p, int n_bytes)
{
    int64_t at;
    if (!take_number(p, n_bytes, false, &at))
        return false;
    if (at != p->n_memo)
        return refuse(p, "numbers its memo out of order");
    if (!has_value(p))
        return false;
    PUSH(p->arena, p->memo, p->n_memo, p->stack[p->n - 1]);
    return true;
}

static bool get(Pickle *p, int n_bytes)
{
    int64_t at;
    if (!take_number(p, n_bytes, false, &at))
        return false;
    return at < p->n_memo ? push(p, p->memo[at]) : refuse(p, "reads a memo that is not there");
}

/* -- storages, tensors and dicts --------------------------------------------------------------- */

static bool is_tuple_of(Item v, const ItemKind *kind, int n)
{
    if (v.kind != IS_TUPLE || v.n != n)
        return false;
    for (int i = 0; i < n; i++)
        if (v.item[i].kind != kind[i])
            return false;
    return true;
}

/* Replaces ("storage", class, key, device, number of elements) by a storage. */
static bool push_storage(Pickle *p)
{
    static const ItemKind kind[] = {IS_TEXT, IS_KNOWN, IS_TEXT, IS_TEXT, IS_INT};
    Item id;
    if (!pop(p, &id))
        return false;
    if (!is_tuple_of(id, kind, 5) || strcmp(id.item[0].text, "storage") != 0 ||
        id.item[1].known->role != STORAGE_CLASS || id.item[4].number < 0)
        return refuse(p, "has a persistent id that is not a storage");
    PickledTensor *made = NEW(p->arena, PickledTensor, 1);
    *made = (PickledTensor){.dtype = id.item[1].known->dtype,
                            .key = id.item[2].text,
                            .n_storage = id.item[4].number};
    return push(p, (Item){.kind = IS_STORAGE, .tensor = made});
}

static bool read_dims(Pickle *p, Item tuple, const Dim **out)
{
    Dim *made = NEW(p->arena, Dim, tuple.n);
    *out = made;
    for (int i = 0; i < tuple.n; i++) {
        if (tuple.item[i].kind != IS_INT || tuple.item[i].number < 0)
            return refuse(p, "has a size or stride that is not a count");
        made[i] = DIM(tuple.item[i].number);
    }
    return true;
}

/* Replaces (storage, offset, sizes, strides, requires_grad, hooks) by a tensor.  A seventh item
 * would be metadata. */
static bool push_tensor(Pickle *p, Item args)
{
    static const ItemKind kind[] = {IS_STORAGE, IS_INT, IS_TUPLE, IS_TUPLE, IS_BOOL, IS_DICT};
    if (!is_tuple_of(args, kind, 6))
        return refuse(p, "rebuilds a tensor from other than storage, offset, sizes and strides");
    Item size = args.item[2], stride = args.item[3];
    if (size.n != stride.n || size.n > MAX_RANK)
        return refuse(p, "has a tensor of other sizes than strides, or of more than 16");
    PickledTensor *made = NEW(p->arena, PickledTensor, 1);
    *made = *args.item[0].tensor;
    made->offset = args.item[1].number;
    made->rank = size.n;
    return read_dims(p, size, &made->size) && read_dims(p, stride, &made->stride) &&
           push(p, (Item){.kind = IS_TENSOR, .tensor = made});
}

/* Replaces (tensor, requires_grad, hooks) by the tensor. */
static bool push_parameter(Pickle *p, Item args)
{
    static const ItemKind kind[] = {IS_TENSOR, IS_BOOL, IS_DICT};
    return is_tuple_of(args, kind, 3) ? push(p, args.item[0])
                                      : refuse(p, "rebuilds a parameter from other than a tensor");
}

static bool push_dict(Pickle *p)
{
    return push(p, (Item){.kind = IS_DICT, .dict = NEW(p->arena, Dict, 1)});
}

static bool reduce(Pickle *p)
{
    Item args, callee;
    if (!pop(p, &args) || !pop(p, &callee))
        return false;
    if (callee.kind != IS_KNOWN || args.kind != IS_TUPLE)
        return refuse(p, "calls a value that is not a function");
    switch (callee.known->role) {
    case ORDERED_DICT:
        return args.n ? refuse(p, "makes an OrderedDict from arguments") : push_dict(p);
    case TENSOR:
        return push_tensor(p, args);
    case PARAMETER:
        return push_parameter(p, args);
    case STORAGE_CLASS:
        break;
    }
    return refuse(p, "calls a value that is not a function");
}

/* Puts the n last values of the stack, or those after the mark, into the dict below them. */
static bool set_items(Pickle *p, int n)
{
    const Item *item;
    int count;
    if (!pop_many(p, n, &item, &count) || !has_value(p))
        return false;
    Item into = p->stack[p->n - 1];
    if (into.kind != IS_DICT || count % 2)
        return refuse(p, "stores items into a value that is not a dict");
    for (int i = 0; i < count; i++)
        PUSH(p->arena, into.dict->item, into.dict->n, item[i]);
    return true;
}

/* Drops the attributes of an OrderedDict, such as "_metadata" of a state dict. */
static bool set_attributes(Pickle *p)
{
    Item state;
    if (!pop(p, &state) || !has_value(p))
        return false;
    return (state.kind == IS_DICT && p->stack[p->n - 1].kind == IS_DICT) ||
           refuse(p, "sets attributes of a value that is not a dict");
}

/* -- opcodes ----------------------------------------------------------------------------------- */

static bool protocol(Pickle *p)
{
    int64_t version;
    return take_number(p, 1, false, &version) &&
           (version == PROTOCOL || refuse(p, "is not of protocol 2"));
}

static bool unknown_opcode(const Pickle *p, int op)
{
    static const struct {
        int op;
        const char *name;
    } row[] = {{'i', "INST"},         {'o', "OBJ"},        {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"},
               {0x93, "STACK_GLOBAL"}, {'P', "PERSID"},     {0x82, "EXT1"},   {0x83, "EXT2"},
               {0x84, "EXT4"},         {0x97, "NEXT_BUFFER"}, {']', "EMPTY_LIST"}};
    const char *name = "";
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].op == op)
            name = row[i].name;
    return diag_unsupported(p->diag, p->loc,
                            "the pickle has opcode 0x%02x%s%s at byte %lld, which no dict of plain "
                            "tensors needs; export the model with torch 2.9 or later",
                            (unsigned)op, *name ? " " : "", name, (long long)p->op_at);
}

static bool step(Pickle *p, int op)
{
    switch (op) {
    case 0x80:
        return protocol(p);
    case '(':
        return push(p, (Item){.kind = IS_MARK});
    case 'N':
        return push(p, (Item){.kind = IS_NONE});
    case 0x88:
    case 0x89:
        return push(p, (Item){.kind = IS_BOOL, .number = op == 0x88});
    case '}':
        return push_dict(p);
    case ')':
        return push(p, (Item){.kind = IS_TUPLE});
    case 't':
        return push_tuple(p, -1);
    case 0x85:
    case 0x86:
    case 0x87:
        return push_tuple(p, op - 0x84);
    case 'K':
        return push_number(p, 1, false);
    case 'M':
        return push_number(p, 2, false);
    case 'J':
        return push_number(p, 4, true);
    case 0x8a:
        return push_long(p);
    case 'X':
        return push_text(p);
    case 'c':
        return push_known(p);
    case 'q':
        return put(p, 1);
    case 'r':
        return put(p, 4);
    case 'h':
        return get(p, 1);
    case 'j':
        return get(p, 4);
    case 'Q':
        return push_storage(p);
    case 'R':
        return reduce(p);
    case 's':
        return set_items(p, 2);
    case 'u':
        return set_items(p, -1);
    case 'b':
        return set_attributes(p);
    default:
        return unknown_opcode(p, op);
    }
}

/* Puts the items of the dict into the table.  One that is no tensor gets a place without a key. */
static bool list_tensors(Pickle *p, const Dict *dict, Table *tensors)
{
    table_reserve(tensors, (size_t)dict->n / 2);
    for (int i = 0; i < dict->n; i += 2) {
        Item key = dict->item[i], value = dict->item[i + 1];
        if (key.kind != IS_TEXT)
            return refuse(p, "has a dict whose keys are not names");
        TableItem *at = table_at_text(tensors, key.text);
        if (at->ptr)
            return diag_error(p->diag, p->loc, "the pickle has '%s' twice", key.text);
        PickledTensor *made = at->ptr = NEW(p->arena, PickledTensor, 1);
        *made = value.kind == IS_TENSOR ? *value.tensor : (PickledTensor){0};
    }
    return true;
}

bool pickle_tensors(Arena *a, Loc loc, const uint8_t *data, size_t n, Diag *d, Table *tensors)
{
    Pickle p = {.arena = a, .diag = d, .loc = loc, .start = data, .at = data, .end = data + n};
    while (p.at < p.end) {
        p.op_at = p.at - p.start;
        int op = *p.at++;
        if (op == '.')
            return p.at == p.end && p.n == 1 && p.stack[0].kind == IS_DICT
                       ? list_tensors(&p, p.stack[0].dict, tensors)
                       : refuse(&p, "does not end with one dict");
        if (!step(&p, op))
            return false;
    }
    p.op_at = (int64_t)n;
    return refuse(&p, "ends without a STOP");
}
