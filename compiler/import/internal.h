/* internal.h -- what the importer's files share: archives, JSON, and the pt2 reader's state. */
#ifndef ETC_IMPORT_INTERNAL_H
#define ETC_IMPORT_INTERNAL_H

#include "compiler/import/import.h"
#include "ir/table.h"
#include <dirent.h>

/* -- bounds -------------------------------------------------------------------------------- */

/* Returns whether n bytes from `at` on lie below `limit`; no sum is made that could wrap. */
static inline bool fits(uint64_t at, uint64_t n, uint64_t limit)
{
    return at <= limit && n <= limit - at;
}

/* -- files beneath a folder: folder.c ------------------------------------------------------- */

typedef struct Folder {
    const char *path; /* with a '/' at its end */
    int fd;           /* -1: not opened yet */
    const char *last; /* not terminated: the folder beneath it that was used last */
    size_t n_last;
    int last_fd;
} Folder;

Folder folder_at(Arena *a, const char *path);
/* `name` counts from the folder and outlives it; `path` is what messages call it.  -1: reported. */
int folder_file(Folder *f, const char *name, Files *files, const char *path, File **out,
                Diag *d);
DIR *folder_list(Folder *f, const char *name); /* NULL: there is none to be read */
void folder_close(Folder *f);

/* -- archives: zip.c ----------------------------------------------------------------------- */

typedef struct Archive Archive;

/* NULL: reported.  The mapping lives as long as the process. */
Archive *archive_open(Files *files, Arena *a, const char *path, Diag *d);
Archive *archive_bytes(Arena *a, const char *name, uint8_t *data, size_t n, Diag *d);
/* A folder an archive was unpacked into.  Unless NULL, weights_dir holds its "data", or is that. */
Archive *archive_folder(Files *files, Arena *a, const char *path, const char *weights_dir, Diag *d);
void archive_close(Archive *z); /* what was read stays; NULL: nothing */

bool archive_is_folder(const Archive *z);
bool archive_has(const Archive *z, const char *name);
/* The bytes of member `name`, counted from the archive's root: mapped, or in the arena where they
 * were deflated or are few; writable, and so are JSON_ROOM bytes behind them.  An archive gives the
 * same ones again, a folder reads anew.  False: reported. */
bool archive_read(Archive *z, const char *name, uint8_t **data, size_t *n);
int archive_names(Archive *z, const char ***names);  /* of all members of a zip, whole */
int archive_models(Archive *z, const char ***names); /* NAME of each models/NAME.json */

/* The archive that a member is, of stored members only; the same again.  NULL: reported. */
Archive *archive_inside(Archive *z, const char *member);

/* A file, however it is reached, as archive_read gives it. */
bool file_load(Files *files, Arena *a, const char *path, uint8_t **data, size_t *n, Diag *d);
/* The same beneath a folder: `name` and `path` as folder_file has them. */
bool folder_load(Folder *in, const char *name, Files *files, Arena *a, const char *path,
                 uint8_t **data, size_t *n, Diag *d);

uint32_t crc32_of(const uint8_t *data, size_t n); /* as in zip and zlib: crc32.c */

/* -- JSON: json.c -------------------------------------------------------------------------- */

/* A value in a document.  Getters of fields take an object (or NULL, which has no fields) and give
 * NULL for a field that is absent or null. */
typedef struct Json Json;

typedef struct JsonDoc {
    const Json *root; /* an object */
    const char *file;
    Diag *diag;
} JsonDoc;

enum { JSON_ROOM = 4 };

/* Parses strict JSON whose root is an object and no object of which repeats a key.  Values are in
 * `a`.  False: reported. */
bool json_parse(Arena *a, const char *file, const uint8_t *data, size_t n, Diag *d, JsonDoc *doc);
/* Parses bytes that become the strings of the document.  JSON_ROOM bytes behind them are changed
 * meanwhile.  With `has_words`, numbers may be NaN and Infinity, as Python writes them. */
bool json_parse_here(Arena *a, const char *file, uint8_t *data, size_t n, bool has_words, Diag *d,
                     JsonDoc *doc);

/* "graph_module.graph.nodes[3].target", in a; a linear walk, for messages. */
const char *json_path(const JsonDoc *doc, const Json *v, Arena *a);

const Json *json_get(const Json *object, const char *key);
bool json_is_object(const Json *v); /* of NULL: false, and so below */
bool json_is_array(const Json *v);
bool json_is_string(const Json *v);
int json_count(const Json *v);               /* items of an array, fields of an object; else 0 */
bool json_int(const Json *v, int64_t *out);  /* an integer of 64 bits, written without '.' */
bool json_float(const Json *v, double *out); /* any number, or "NaN", "Infinity", "-Infinity" */
bool json_bool(const Json *v, bool *out);
const char *json_string(const Json *v); /* NULL: no string, or one with a NUL in it */

/* for (JsonIter it = json_iter(v); json_next(&it);) ... it.value, and it.key in an object */
typedef struct JsonIter {
    const Json *value;
    const char *key; /* NULL in an array, or where the key holds a NUL */
    const Json *next;
    int left;
    bool in_object;
} JsonIter;
JsonIter json_iter(const Json *v);
bool json_next(JsonIter *it);

/* The key and content of a union, an object with one field.  NULL: it is none. */
const char *json_tag(const Json *v, const Json **content);

/* -- pickles: pickle.c --------------------------------------------------------------------- */

typedef struct PickledTensor {
    EtcDtype dtype;
    int rank;
    const char *key; /* its storage's bytes are the member "data/KEY"; NULL: it is no tensor */
    int64_t n_storage, offset; /* elements */
    const Dim *size, *stride; /* numbers, none negative */
} PickledTensor;

/* The values of a dict of tensors, by their names.  False: reported. */
bool pickle_tensors(Arena *a, Loc loc, const uint8_t *data, size_t n, Diag *d, Table *tensors);

/* -- the reader: pt2.c --------------------------------------------------------------------- */

/* A name of range_constraints. */
typedef struct SizeName {
    const char *text;
    int64_t lo, hi;
    Symbol *symbol; /* NULL: nothing spoke of it yet */
    bool is_named;  /* in an expression of the graph */
} SizeName;

/* One import.  What is below `doc` belongs to the method being read. */
typedef struct MissingOp { /* that is not supported */
    Loc first;
    const char *why;
    int n; /* nodes */
} MissingOp;

typedef struct Pt2 {
    Program *program;
    Arena *tmp; /* dies with the import */
    Diag *diag;
    Archive *archive;
    Loc loc;        /* of the model's file */
    Table taken;    /* names of states and symbols, program-wide */
    Table storages; /* "data/weights/weight_3" -> Storage: weights.c */
    JsonDoc doc;
    int64_t schema;     /* the major version of doc */
    const char *method; /* of models/METHOD.json */
    const char *as;     /* its name in the program where it is to have another; else NULL */
    Table symbols;      /* "s52" -> SizeName */
    Table config[2];    /* FQN -> PayloadMeta, of weights and of constants */
    JsonDoc config_doc[2];
    Archive *pickled[2]; /* where the config is a pickle, -> PickledTensor: what holds it */
    bool config_read[2], config_ok[2];
    Table missing_of; /* "aten.topk.default" -> MissingOp */
    MissingOp **missing; /* in the order of their first nodes */
    int n_missing;
    Table batches; /* Value * -> Batch: pt2_vmap.c */
    bool has_batches, may_batch, told_batch; /* may_batch: the node at hand takes batches */
} Pt2;

/* Reports the operators that nodes asked for in vain, each once. */
void pt2_tell_missing(Pt2 *p);

/* Reports that `object` has no field `key` of kind `want`, by its path in the JSON. */
bool pt2_malformed(Pt2 *p, const Json *object, const char *key, const char *want);
/* A name is letters, digits and '_': what torch makes of all names of values. */
bool pt2_is_name(const char *s);
/* `name`, or one made from it, which no other state or symbol of the program has. */
const char *pt2_unique(Pt2 *p, const char *name, void *item);
/* Checks that a small text member says `want`, or is not there where it is optional; else
 * reported. */
bool pt2_check_text(Pt2 *p, Archive *z, const char *member, const char *want, bool is_optional);
const Symbol *pt2_symbol(Pt2 *p, const char *name); /* NULL: it has no range */

/* -- sizes and types: pt2_type.c ------------------------------------------------------------ */

bool pt2_dim(Pt2 *p, Loc loc, const Json *sym_int, Dim *out);
bool pt2_dtype(Pt2 *p, Loc loc, const char *what, const Json *code, EtcDtype *out);
/* A type, checked; strides that are those of a dense tensor are left out. */
bool pt2_strided(Pt2 *p, Loc loc, const char *value, EtcDtype dtype, int rank, const Dim *dim,
                 const Dim *stride, Type *out);
bool pt2_type(Pt2 *p, Loc loc, const char *value, const Json *tensor_meta, Type *out);

/* -- graphs: pt2_graph.c -------------------------------------------------------------------- */

typedef struct Scope Scope;

bool pt2_method(Pt2 *p); /* adds the program of p->doc as a method */
Graph *pt2_nested(Scope *s, Loc loc, const Json *as_graph); /* of the node at loc; NULL: reported */
/* Reads the nodes of a nested graph into s's own; in[] stands for its inputs.  Its results go to
 * out[0..n_out). */
bool pt2_inline(Scope *s, Loc loc, const Json *as_graph, Value **in, int n_in, Value **out,
                int n_out);

/* -- nodes: pt2_node.c ---------------------------------------------------------------------- */

/* The value or number that a name of a graph stands for. */
typedef struct Name {
    const char *text;
    const Json *meta;    /* TensorMeta; NULL: not a tensor */
    const Json *sym_int; /* SymInt; NULL: not a symbolic integer */
    bool is_float;       /* a symbolic float: its value is a tensor of rank 0 */
    const Json *spec;    /* tag of its InputSpec where it is a state not used yet */
    const char *kind;    /* that tag */
    Value *value;        /* once defined */
    bool is_broken;      /* its definition was refused: uses are not reported again */
} Name;

struct Scope {
    Pt2 *in;
    Graph *graph;
    Table names;        /* -> Name */
    const char *prefix; /* of values of an inlined graph, else "" */
    int depth;
};

/* The name, or NULL when the graph has none such: reported. */
Name *pt2_name(Scope *s, Loc loc, const char *text);
Value *pt2_use(Scope *s, Loc loc, const Json *tensor_argument); /* {"name": ...}; NULL: reported */
bool pt2_define(Scope *s, Loc loc, const char *text, Value *v);
const char *pt2_value_name(Scope *s, const char *text);
bool pt2_node(Scope *s, const Json *node);

/* -- functions under torch.vmap: pt2_vmap.c ------------------------------------------------- */

/* Reads _add_batch_dim and _remove_batch_dim, the marks that take and give tensors. */
bool pt2_vmap_mark(Scope *s, Loc loc, const char *target, const Json *node);
bool pt2_is_batched(Pt2 *p, const Value *v);
bool pt2_takes_batches(OpId op);
/* Gives a node that takes batches, in no list yet, operands and results of the same levels. */
bool pt2_batch(Scope *s, Node *n);
bool pt2_refuse_batch(Pt2 *p, Loc loc); /* reports it, the first time */

/* -- loops: pt2_loop.c ---------------------------------------------------------------------- */

bool pt2_scan(Scope *s, Loc loc, const Json *node, bool is_map); /* higher_order.scan or map_impl */

/* -- numbers: pt2_number.c ------------------------------------------------------------------ */

/* An input that is no tensor but `tag`: symbolic, or fixed by the export. */
bool pt2_number_input(Scope *s, const char *tag, const Json *content, int number);
bool pt2_constant_input(Scope *s, const char *text, const char *tag, const Json *content);
/* Defines an output that is a number, as pt2_number_input does an input. */
bool pt2_number_output(Scope *s, const char *tag, const Json *content, int number);
/* A plain number or a symbolic int as an argument; false: it is neither, not reported. */
bool pt2_number_literal(Scope *s, Loc loc, const char *tag, const Json *content, Arg *out);
/* A node whose result is a symbolic float. */
bool pt2_float_node(Scope *s, Loc loc, const char *target, const Json *inputs, Name *result);
/* A symbolic float beside a tensor of type `other`, or where a number is wanted. */
Value *pt2_float_tensor(Scope *s, Loc loc, const Json *argument, Type other);
Value *pt2_float_number(Scope *s, Loc loc, const Json *argument);

/* -- guards: pt2_guards.c -------------------------------------------------------------------- */

void pt2_guards(Scope *s, const Json *list); /* guards_code of the method whose inputs s has */
/* A size as sympy prints it; false: it cannot be read, not reported. */
bool pt2_printed_size(Pt2 *p, const char *size, Dim *out);
/* The range of a size that is computed from symbols, as sympy prints it. */
void pt2_range_guard(Pt2 *p, const char *size, int64_t lo, int64_t hi);

/* -- weights: weights.c --------------------------------------------------------------------- */

/* The state behind a parameter, buffer or constant `fqn`, read and checked.  NULL: reported. */
State *weights_state(Pt2 *p, StateKind kind, bool in_constants, const char *name, const char *fqn,
                     Type type);

/* Fills in the bytes of states that a text says lie in members of the archive. */
bool weights_of_text(Program *p, Archive *z, Loc loc, Arena *tmp, Diag *d);

#endif
