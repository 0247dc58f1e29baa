/* internal.h -- shared by the files of the importers: folders, archives, JSON, pickles, and the
 * state of the .pt2 importer.
 *
 * A function that returns false, NULL or -1 has reported why, unless its comment says otherwise. */
#ifndef ETC_IMPORT_INTERNAL_H
#define ETC_IMPORT_INTERNAL_H

#include "compiler/import/import.h"
#include "ir/table.h"
#include <dirent.h>
#include <string.h>

/* -- bounds -------------------------------------------------------------------------------- */

/* Returns whether at + n <= limit, without computing the sum, which could wrap. */
static inline bool fits(uint64_t at, uint64_t n, uint64_t limit)
{
    return at <= limit && n <= limit - at;
}

/* -- files beneath a folder: folder.c ------------------------------------------------------- */

typedef struct Folder {
    const char *path; /* ends with '/' */
    int fd;           /* -1: not opened yet */
    const char *last; /* the folder beneath it that was used last, n_last characters */
    size_t n_last;
    int last_fd;
} Folder;

Folder folder_at(Arena *a, const char *path);
/* Returns "model.py:12" for the innermost frame of a trace, whose lines are like 'File
 * "/path/model.py", line 12, in forward'.  The folder of the exporting machine is dropped.  NULL:
 * the text has no such line. */
const char *import_source(Arena *a, const char *trace);
/* Returns where an unpacked archive lies: in the only folder in `path`, as torch puts all members
 * below one, or in `path` itself. */
const char *folder_of_archive(Arena *a, const char *path);
/* Opens a file beneath the folder.  `name` is relative to the folder and must outlive it; `path` is
 * the name in messages. */
int folder_file(Folder *f, const char *name, Files *files, const char *path, File **out,
                Diag *d);
DIR *folder_list(Folder *f, const char *name); /* NULL: it cannot be read, which is not reported */
void folder_close(Folder *f);

/* -- archives: zip.c ----------------------------------------------------------------------- */

typedef struct Archive Archive;

/* Opens a zip.  Its mapping lasts as long as the process. */
Archive *archive_open(Files *files, Arena *a, const char *path, Diag *d);
Archive *archive_bytes(Arena *a, const char *name, uint8_t *data, size_t n, Diag *d);
/* Opens the folder of an unpacked archive.  If weights_dir is not NULL, it is the folder "data"
 * of the archive, or contains that. */
Archive *archive_folder(Files *files, Arena *a, const char *path, const char *weights_dir, Diag *d);
void archive_close(Archive *z); /* z may be NULL; bytes that were read stay valid */

bool archive_is_folder(const Archive *z);
bool archive_has(const Archive *z, const char *name);
/* Returns the bytes of a member; `name` is relative to the archive's root.  They are mapped, or
 * in the arena if they were deflated or are few.  They and JSON_ROOM bytes after them are
 * writable.  A second read of a zip returns the same bytes; that of a folder reads the file
 * again. */
bool archive_read(Archive *z, const char *name, uint8_t **data, size_t *n);
int archive_names(Archive *z, const char ***names);  /* the full names of all members of a zip */
int archive_models(Archive *z, const char ***names); /* the NAME of each models/NAME.json */

/* Opens a member that is itself an archive of stored members.  A second call returns the same. */
Archive *archive_inside(Archive *z, const char *member);

/* Reads a file of any path, as archive_read does a member. */
bool file_load(Files *files, Arena *a, const char *path, uint8_t **data, size_t *n, Diag *d);
/* The same beneath a folder; `name` and `path` are those of folder_file. */
bool folder_load(Folder *in, const char *name, Files *files, Arena *a, const char *path,
                 uint8_t **data, size_t *n, Diag *d);

uint32_t crc32_of(const uint8_t *data, size_t n); /* crc32.c: the CRC-32 of zip and zlib */

/* -- JSON: json.c -------------------------------------------------------------------------- */

/* A value in a document.  Getters return NULL for a field that is absent or null.  They take NULL,
 * which has no fields, so that calls can be nested.  Nothing is reported by them. */
typedef struct Json Json;

typedef struct JsonDoc {
    const Json *root; /* an object */
    const char *file;
    Diag *diag;
} JsonDoc;

enum { JSON_ROOM = 4 };

/* Parses strict JSON.  Its root must be an object, and no object may repeat a key.  Values lie in
 * `a`. */
bool json_parse(Arena *a, const char *file, const uint8_t *data, size_t n, Diag *d, JsonDoc *doc);
/* The same without a copy: strings of the document lie in `data`, which is changed, and
 * JSON_ROOM bytes after it are changed during the call.  With `has_words`, numbers may be NaN
 * and Infinity, as Python writes them. */
bool json_parse_here(Arena *a, const char *file, uint8_t *data, size_t n, bool has_words, Diag *d,
                     JsonDoc *doc);

/* Returns the path of a value, "graph_module.graph.nodes[3].target", in a.  It walks the whole
 * document, so it is only for messages. */
const char *json_path(const JsonDoc *doc, const Json *v, Arena *a);

const Json *json_get_n(const Json *object, const char *key, size_t n); /* a key of n bytes */
static inline const Json *json_get(const Json *object, const char *key)
{
    return json_get_n(object, key, strlen(key));
}
/* Calls `seen` for the value of each field of that name, in v and in all that v contains. */
typedef void JsonSeen(const Json *value, void *with);
void json_find(const Json *v, const char *key, JsonSeen *seen, void *with);
bool json_is_object(const Json *v); /* false if v is NULL; so are all below */
bool json_is_array(const Json *v);
bool json_is_string(const Json *v);
int json_count(const Json *v);               /* items of an array, fields of an object; else 0 */
bool json_int(const Json *v, int64_t *out);  /* an integer of 64 bits, written without '.' */
bool json_float(const Json *v, double *out); /* any number, or "NaN", "Infinity", "-Infinity" */
bool json_bool(const Json *v, bool *out);
const char *json_string(const Json *v); /* NULL: it is no string, or contains a NUL */

/* for (JsonIter it = json_iter(v); json_next(&it);) ... it.value, and it.key in an object */
typedef struct JsonIter {
    const Json *value;
    const char *key; /* NULL: it is an array, or the key contains a NUL */
    const Json *next;
    int left;
    bool in_object;
} JsonIter;
JsonIter json_iter(const Json *v);
bool json_next(JsonIter *it);

/* Returns the key of an object with one field, which is how unions are written, and its content.
 * NULL: it is no such object. */
const char *json_tag(const Json *v, const Json **content);

/* -- pickles: pickle.c --------------------------------------------------------------------- */

typedef struct PickledTensor {
    EtcDtype dtype;
    int rank;
    const char *key;           /* the member "data/KEY" holds its storage; NULL: it is no tensor */
    int64_t n_storage, offset; /* in elements */
    const Dim *size, *stride;  /* numbers, none negative */
} PickledTensor;

/* Reads a pickled dict of tensors.  `tensors` maps names to PickledTensor. */
bool pickle_tensors(Arena *a, Loc loc, const uint8_t *data, size_t n, Diag *d, Table *tensors);

/* -- the reader: pt2.c --------------------------------------------------------------------- */

/* A name of range_constraints. */
typedef struct SizeName {
    const char *text;
    int64_t lo, hi;
    bool is_used;   /* the graph has used it */
    Dim dim;        /* then: the symbol, or the only size that --dim leaves */
    bool is_named;  /* an expression of the graph contains it */
} SizeName;

/* An operator that is not supported. */
typedef struct MissingOp {
    Loc first; /* the first node that calls it */
    const char *why;
    int n; /* how many nodes call it */
} MissingOp;

/* The state of one import.  The fields from `doc` on belong to the method that is being read. */
typedef struct Pt2 {
    Program *program;
    Arena *tmp; /* freed at the end of the import */
    Diag *diag;
    Archive *archive;
    Loc loc;        /* of the model's file */
    Table taken;    /* the names of all states and symbols of the program */
    Table storages; /* "data/weights/weight_3" -> Storage: weights.c */
    JsonDoc doc;
    int64_t schema;     /* the major version of doc */
    const char *method; /* METHOD of models/METHOD.json */
    const char *as;     /* another name that it gets in the program, or NULL */
    Table symbols;      /* "s52" -> SizeName */
    const ImportDim *dim; /* the symbols that have one value */
    int n_dims;
    Table config[2];    /* FQN -> PayloadMeta, of weights and of constants */
    JsonDoc config_doc[2];
    Archive *pickled[2]; /* if the config is a pickle: its archive; `config` has PickledTensor */
    bool config_read[2], config_ok[2];
    Table missing_of;    /* "aten.topk.default" -> MissingOp */
    MissingOp **missing; /* in the order of their first nodes */
    int n_missing;
    Table batches;                           /* Value * -> Batch: pt2_vmap.c */
    bool has_batches, may_batch, told_batch; /* may_batch: the current node takes batches */
} Pt2;

/* -- names: pt2_name.c ---------------------------------------------------------------------- */

/* Reports that `object`, given by its path in the JSON, has no field `key` of kind `want`. */
bool pt2_malformed(Pt2 *p, const Json *object, const char *key, const char *want);
/* Returns whether s has only letters, digits and '_', as all names of values that torch writes. */
bool pt2_is_name(const char *s);
/* Returns `name`, or a longer name if another state or symbol of the program has it. */
const char *pt2_unique(Pt2 *p, const char *name, void *item);
/* Checks that the text of a small member is `want`.  If it is optional, it may be absent. */
bool pt2_check_text(Pt2 *p, Archive *z, const char *member, const char *want, bool is_optional);
/* Sets the size that a symbol stands for.  Returns false if it has no range. */
bool pt2_symbol(Pt2 *p, const char *name, Dim *out);

/* -- what names stand for: pt2_scope.c ------------------------------------------------------- */

/* A kind of state of the program. */
typedef struct StateTag {
    const char *tag, *fqn; /* of its InputSpec, and the field of that with the FQN */
    StateKind kind;
} StateTag;

/* A name in a graph, and the value or number that it stands for. */
typedef struct Name {
    const char *text;
    const Json *meta;     /* TensorMeta; NULL: it is no tensor */
    const Json *sym_int;  /* SymInt; NULL: it is no symbolic integer */
    const Json *sym_bool; /* SymBool; NULL: it is no symbolic bool */
    bool is_float;        /* it is a symbolic float, whose value is a tensor of rank 0 */
    const Json *spec;     /* the InputSpec of a state that no node has used yet */
    const StateTag *tag;  /* of that InputSpec */
    Value *value;         /* NULL until it is defined */
    bool is_broken;       /* its definition was refused; uses of it are not reported */
} Name;

typedef struct Scope {
    Pt2 *in;
    Graph *graph;
    Table names;        /* -> Name */
    const char *prefix; /* of the names of values of an inlined graph; else "" */
    int depth;
    bool in_autocast;  /* torch casts operands, and the graph does not show it */
    bool casts;        /* it casts those of the current node */
    EtcDtype operands; /* to this dtype */
} Scope;

Name *pt2_name(Scope *s, Loc loc, const char *text);            /* finds a name */
Value *pt2_use(Scope *s, Loc loc, const Json *tensor_argument); /* the value of {"name": ...} */
Value *pt2_state(Scope *s, Loc loc, Name *n); /* makes the value of a state, for its first use */
bool pt2_define(Scope *s, Loc loc, const char *text, Value *v);
const char *pt2_value_name(Scope *s, const char *text);

/* -- sizes and types: pt2_type.c ------------------------------------------------------------ */

bool pt2_dim(Pt2 *p, Loc loc, const Json *sym_int, Dim *out);
bool pt2_dtype(Pt2 *p, Loc loc, const char *what, const Json *code, EtcDtype *out);
/* Makes a type and checks it.  The strides of a dense tensor are left out. */
bool pt2_strided(Pt2 *p, Loc loc, const char *value, EtcDtype dtype, int rank, const Dim *dim,
                 const Dim *stride, Type *out);
bool pt2_type(Pt2 *p, Loc loc, const char *value, const Json *tensor_meta, Type *out);
/* Computes a symbolic bool, as a tensor of rank 0. */
Value *pt2_truth(Scope *s, Loc loc, const Json *sym_bool);

/* -- graphs: pt2_graph.c -------------------------------------------------------------------- */

bool pt2_method(Pt2 *p); /* reads the graph of p->doc and adds it as a method */
Graph *pt2_nested(Scope *s, Loc loc, const Json *as_graph); /* a graph nested in the node at loc */
/* Reads the nodes of a nested graph into the graph of s.  in[] replaces its inputs.  Its results
 * are out[0..n_out). */
bool pt2_inline(Scope *s, Loc loc, const Json *as_graph, Value **in, int n_in, Value **out,
                int n_out);

/* -- nodes: pt2_node.c ---------------------------------------------------------------------- */

bool pt2_node(Scope *s, const Json *node);
void pt2_report_missing(Pt2 *p); /* reports each operator that is not supported, once */

/* -- functions under torch.vmap: pt2_vmap.c ------------------------------------------------- */

/* Reads _add_batch_dim and _remove_batch_dim, the nodes that enter and leave a batch. */
bool pt2_vmap_mark(Scope *s, Loc loc, const char *target, const Json *node);
bool pt2_is_batched(Pt2 *p, const Value *v);
bool pt2_may_batch(OpId op); /* false: its operands cannot be batched */
/* Makes the operands and results of a new node that takes batches have the same batch levels. */
bool pt2_batch(Scope *s, Node *n);
/* Returns whether a new node has batches that it does not take: it is called for each element. */
bool pt2_needs_elements(Pt2 *p, const Node *n);
/* Adds these calls in place of n, whose results are already defined under their names, and joins
 * their results. */
bool pt2_each_element(Scope *s, const Node *n);
bool pt2_refuse_batch(Pt2 *p, Loc loc); /* reports the first node that cannot be batched */

/* -- casts that the graph lacks: pt2_cast.c ------------------------------------------------- */

/* Returns the name and type of a node's first result; NULL: it is refused. */
const char *pt2_first_result(Scope *s, Loc loc, const Json *outputs, Type *t);
/* Returns whether one of the stems is the operator's name without overload and the '_' of those
 * that write. */
bool pt2_has_stem(const char *op, const char *const *stem, size_t n_stems);
bool pt2_autocasts(Scope *s, Loc loc, const Json *outputs, EtcDtype *to);
Value *pt2_cast_operand(Scope *s, Loc loc, Value *v); /* to s->operands */
bool pt2_is_mixed_norm(const Node *n);
bool pt2_mixed_norm(Scope *s, Node *n, const Json *outputs);

/* -- loops: pt2_loop.c ---------------------------------------------------------------------- */

bool pt2_scan(Scope *s, Loc loc, const Json *node, bool is_map); /* higher_order.scan or map_impl */

/* -- numbers: pt2_number.c ------------------------------------------------------------------ */

/* Makes numbers what torch takes them for.  Where the operand and the result are bytes, -1 is 255;
 * what is made of integers alone, such as a range, takes their whole parts; beside halves some are
 * rounded to halves. */
void pt2_torch_numbers(Node *n);

/* Makes sizes what torch gives: those that it records of unique rows along axis -1 are followed by
 * all sizes of the operand. */
void pt2_torch_sizes(Program *p, Node *n);

/* Define an input that is no tensor but has this tag: a symbolic one, and one that the export
 * fixed. */
bool pt2_number_input(Scope *s, const char *tag, const Json *content, int number);
bool pt2_constant_input(Scope *s, const char *text, const char *tag, const Json *content);
/* Defines an output that is a number. */
bool pt2_number_output(Scope *s, const char *tag, const Json *content, int number);
/* Reads a number or a symbolic int as an argument.  Returns false without a report if it is
 * neither. */
bool pt2_number_literal(Scope *s, Loc loc, const char *tag, const Json *content, Arg *out);
/* Reads a node whose result is a symbolic float. */
bool pt2_float_node(Scope *s, Loc loc, const char *target, const Json *inputs, Name *result);
/* Returns the argument that is a symbolic float, or NULL. */
const Json *pt2_symbolic_float(const Json *inputs);
/* Returns the overload that takes tensors where `op` takes numbers; `op` if there is none. */
OpId pt2_with_tensors(Arena *tmp, OpId op);
bool pt2_fills(OpId op); /* makes a tensor of one number */
/* Reads such a node whose number is a symbolic float. */
bool pt2_filled(Scope *s, Loc loc, const Json *number, const Json *outputs);
/* Read a symbolic float as a tensor, for an operand beside one of type `other`, and as a number. */
Value *pt2_float_tensor(Scope *s, Loc loc, const Json *argument, Type other);
Value *pt2_float_number(Scope *s, Loc loc, const Json *argument);

/* -- guards: pt2_guards.c -------------------------------------------------------------------- */

void pt2_guards(Scope *s, const Json *list); /* reads guards_code; s has the inputs of the method */
/* Reads a size that sympy printed.  Returns false without a report if it cannot. */
bool pt2_printed_size(Pt2 *p, const char *size, Dim *out);
/* Adds a guard lo <= size <= hi for a size that sympy printed. */
void pt2_range_guard(Pt2 *p, const char *size, int64_t lo, int64_t hi);

/* -- weights: weights.c --------------------------------------------------------------------- */

/* Reads and checks the parameter, buffer or constant `fqn`, and returns its state. */
State *weights_state(Pt2 *p, StateKind kind, bool in_constants, const char *name, const char *fqn,
                     Type type);

/* Gives the states of a textual program their bytes from members of the archive. */
bool weights_of_text(Program *p, Archive *z, Loc loc, Arena *tmp, Diag *d);

#endif
