/* compiler.h -- the command line: options, pipelines, commands. */
#ifndef ETC_COMPILER_H
#define ETC_COMPILER_H

#include "compiler/import/import.h"
#include "emit/emit.h"
#include "ir/escape.h"
#include "ir/session.h"
#include "ir/table.h"
#include "partition/partition.h"
#include "passes/passes.h"
#include "quant/quant.h"

struct Json; /* compiler/import/internal.h */

#define ETC_VERSION "0.1.0"

/* -- options.c --------------------------------------------------------------------------- */

typedef enum Command {
    CMD_COMPILE,
    CMD_EMIT_C,
    CMD_RUN,
    CMD_BENCH,
    CMD_DIFF,
    CMD_CHECK,
    CMD_PARTITION,
    CMD_QUANTIZE,
    CMD_INSPECT,
    CMD_OPT,
    CMD_OPS,
    CMD_RUNTIME,
    CMD_BATCH,
    CMD_DOCTOR,
    CMD_VERIFY,
    CMD_GATE,
    CMD_REFIT,
    CMD_KEY, /* stands for the command whose key it is, once flags are read */
    N_COMMANDS
} Command;

typedef struct Strings {
    const char **item;
    int n;
} Strings;

typedef struct Options {
    Command command;
    Files *files;       /* of the run: those that are named here, then all others */
    const char *model;  /* "-" is standard input */
    const char *output; /* -o; "-" is standard output */
    Strings models;     /* of runtime, the first of them too */
    const char *runtime_dir; /* of runtime: where its sources lie */
    const char *weights_dir, *weights, *data, *dump_ir, *dump_data;
    const char *backend, *delegate, *target, *weights_as, *build_files, *target_runtime,
        *require_delegated;
    const char *recipe, *calibrate, *statistics; /* the last is written by quantize, else read */
    const char *objective, *io, *error_format, *bundle;
    const char *max_drop, *labels;               /* of quantize */
    const char *passes, *tail, *method, *output_dir, *report, *threads;
    const char *memory_limit, *work_limit; /* of run and bench */
    const char *jobs, *junit, *ninja;              /* of batch */
    const char *runs, *warmup, *trace;     /* of bench */
    const char *other, *other_weights, *other_data, *atol, *rtol; /* of diff: B's files */
    char **argv; /* all words of the command line */
    const char *baseline, *tolerances, *verified, *compiled; /* of gate */
    const char *debug_map, *etdump, *map; /* written by compile; by run, else read */
    Strings methods;      /* NAME=FILE */
    Strings ops;          /* files of operators */
    Strings manifests;    /* of doctor */
    Strings binds;        /* INPUT=VALUE, of ONNX files */
    Strings banks;        /* NAME=SIZE and more, of emit-c */
    Strings dims, inputs; /* inputs: files and "value:JSON"; NULL stands for --next */
    bool verify, check_ir, dry_run, depfile, json, quiet, verbose, main, share_io, list, all,
        simulate, fast_calibrate, write_baseline;
    bool refittable, is_refit; /* the latter of the compile that `etc refit` makes of its record */
    bool wants_key; /* of the command, instead of its output */
    const char *name;     /* of a model among several: NAME of --model NAME=FILE */
    struct Options *part; /* the options of each of several models; NULL: there is one, with these */
    int n_parts;
} Options;

static inline int n_models(const Options *o)
{
    return o->part ? o->n_parts : 1;
}

static inline const Options *options_of_model(const Options *o, int i)
{
    return o->part ? &o->part[i] : o;
}

/* The outcome of reading argv.  OPTIONS_RUN: go on.  OPTIONS_DONE: help or version was printed, exit 0.
 * OPTIONS_BAD: the mistake was reported, exit 2. */
typedef enum OptionsResult { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_BAD } OptionsResult;
OptionsResult options_parse(Options *o, Arena *a, int argc, char **argv, FILE *out,
                            Diag *d);

/* Prints the command and a line for each flag that may change an output, whatever the order they
 * were given in; files have numbers there, by their first mention. */
void options_for_key(const Options *o, Arena *a, FILE *out);

/* Checks the flags of a command, whose name and use these are, against each other.  False:
 * reported. */
MUST_USE bool options_agree(const Options *o, const char *name, const char *use, Arena *a, Diag *d);
bool options_writes(Command c, const char *flag); /* the flag of that command names an output */

/* -- banks.c ------------------------------------------------------------------------------- */

/* Reads a --bank; its name in small letters.  False: `why`. */
bool bank_parse(const char *text, Arena *a, MemoryBank *b, bool *is_const, const char **why);
/* Those of the command line; false: reported. */
MUST_USE bool banks_read(const Options *o, Session *s, Diag *d);
int64_t banks_missing(const CFiles *f); /* bytes that banks of values lack */
/* False: reported, with what would do. */
MUST_USE bool banks_suffice(const CFiles *f, const Program *p, Diag *d);

/* -- output.c: texts ------------------------------------------------------------------------ */

/* A text that is printed into memory, as it will be in a file. */
typedef struct Text {
    FILE *f;
    char *data;
    size_t n;
} Text;

FILE *text_open(Text *t);                   /* NULL: no memory, which is told when it is closed */
const char *text_close(Text *t, Arena *a); /* in a; NULL: no memory */
/* Closes it and writes it, alone, as a file of that path.  False: reported. */
MUST_USE bool text_write(Text *t, const char *path, Arena *a, Diag *d);

/* -- messages.c --------------------------------------------------------------------------- */

#define MESSAGE_FORMATS "human|json|github|sarif"

/* The messages of a run, as --error-format asks for them. */
typedef struct Messages {
    const char *format;
    Text text; /* those that are printed together in the end */
    Diag diag;
} Messages;

void messages_start(Messages *m, int argc, char **argv); /* to standard error */
void messages_end(Messages *m);

/* Reads lines as message_put_json writes them; any other is an error that says just this. */
Message *messages_read(const char *lines, size_t n, Arena *a, int *count);
void messages_print(const char *format, const Message *m, int n, Arena *a, FILE *out);

/* -- pipeline.c -------------------------------------------------------------------------- */

typedef struct Pipeline {
    const char *const *pass;
    int n;
} Pipeline;

/* The passes that are left from p's stage to a planned program of p's tail.  False: that stage
 * leads to the other tail; reported. */
MUST_USE bool pipeline_of(const Program *p, Pipeline *out, Diag *d);

/* Gives the passes on the way to a .pte up to partition.  False: p is past it; reported. */
MUST_USE bool pipeline_to_partition(const Program *p, Pipeline *out, Diag *d);

/* Gives the passes up to quantize.  False: p is past it; reported. */
MUST_USE bool pipeline_to_quantize(const Program *p, Pipeline *out, Diag *d);

/* The first of them, which make core of an export. */
Pipeline pipeline_to_core(void);

/* Checks that each of the passes, in this order, meets a stage that it can start from; all that do
 * not are reported. */
MUST_USE bool passes_follow(const Program *p, const char *const *pass, int n, Diag *d);

/* -- model.c ----------------------------------------------------------------------------- */

/* "LO..HI" with 0 <= LO <= HI. */
bool parse_range(const char *s, int64_t *lo, int64_t *hi);

/* "4096" or "4K", M, G, T: each letter is `step` times the one before. */
bool parse_amount(const char *s, int64_t step, int64_t *n);

/* Returns what kind of file MODEL is; "-" is textual IR.  IMPORT_UNKNOWN: reported. */
ImportKind model_kind(const Options *o, Diag *d);

/* Reads a .pt2, a folder, a model.json or an .etir (stage as written there), or the models of
 * --method, and applies --dim.  NULL: reported. */
Program *model_load(const Options *o, Arena *a, Diag *d);

/* Loads, and reads all else that the tail's passes want.  NULL: reported. */
Program *model_prepare(const Options *o, const Tail *tail, Arena *a, Diag *d);

/* Takes a loaded program through these passes.  NULL: reported. */
Program *model_compile_loaded(const Options *o, Program *p, const Tail *tail, Arena *a, OutBatch *out,
                              Diag *d);

/* Loads one and does the same.  NULL: reported. */
Program *model_compile(const Options *o, const Tail *tail, Arena *a, OutBatch *out, Diag *d);

/* Loads and gives regions to the backends of --backend, of which there may be none; what they are
 * is in its `partition`.  NULL: reported. */
Program *model_partition(const Options *o, Arena *a, Diag *d);

/* Loads and runs what stands before quantize, and that, with some nodes kept in floats or, where
 * `keep` is NULL, none.  NULL: reported. */
Program *model_observe(const Options *o, const Statistics *keep, Arena *a, Diag *d);

/* Loads a program of its own and runs what stands before quantize, and that, by what was observed.
 * NULL: reported. */
Program *model_quantize(const Options *o, const Statistics *known, Arena *a, Diag *d);

/* Loads and checks; what is at stage aten becomes core, so that the evaluator can run it.  NULL:
 * reported. */
Program *model_evaluable(const Options *o, Arena *a, Diag *d);

/* Whether a tensor can be a value of this type; the values of symbols are checked in evaluation. */
bool tensor_is_of_type(const EtcTensor *t, Type want);

/* An --input argument as input i of g; whether a tensor can be that input.  False: reported. */
MUST_USE bool model_input(const Options *o, const char *text, const Graph *g, int i, Arena *a,
                          EtcTensor **out, Diag *d);
MUST_USE bool model_input_fits(const Options *o, const Graph *g, int i, const EtcTensor *t,
                               Arena *a, Diag *d);

/* The passes, with what --verify, --check-ir, --dump-ir and -v ask for; what --dump-data asks for
 * is added to `out` unless that is NULL. */
MUST_USE bool model_run_passes(const Options *o, Program *p, const char *const *pass, int n, Arena *a,
                      OutBatch *out, Diag *d);

/* -- build.c ----------------------------------------------------------------------------- */

const char *depfile_path(const Options *o, Arena *a); /* OUT.d */
const Target *c_target(const Options *o); /* of --target; NULL: generic */
/* Compiles a model to C and delivers it, as `etc emit-c` does.  NULL: reported. */
const Program *build_c_program(const Options *o, Arena *a, Diag *d);

/* Compiles a loaded program to a .pte and delivers it, if `agrees` says so of the file.  False:
 * reported. */
MUST_USE bool build_loaded(const Options *o, Program *p, bool (*agrees)(const OutFile *f, void *ctx),
                           void *ctx, Arena *a, Diag *d);

/* -- bundle.c ------------------------------------------------------------------------------- */

/* The two halves of --bundle; the second may be NULL. */
const char *bundle_inputs(const Options *o, Arena *a);
const char *bundle_outputs(const Options *o);
/* Reads and evaluates what --bundle asks for.  False: reported. */
MUST_USE bool bundle_make(const Options *o, Arena *a, Bundle *out, Diag *d);

/* -- refit.c ------------------------------------------------------------------------------- */

/* Of --refittable: the graph as it was loaded goes into the session's record, which becomes whole
 * when the passes are through.  False: reported. */
MUST_USE bool refit_keep_graph(const Options *o, const Program *p, Arena *a, Diag *d);
MUST_USE bool refit_keep(const Options *o, const Program *p, Arena *a, Diag *d);

/* -- output.c ---------------------------------------------------------------------------- */

/* Each adds one file, if it is no other one of the run.  The bytes must outlive the batch; the text
 * is closed. */
MUST_USE bool output_file(const Options *o, OutBatch *b, const OutFile *f, const char *path, Diag *d);
MUST_USE bool output_bytes(const Options *o, OutBatch *b, const void *bytes, int64_t n, const char *path,
                  Diag *d);
MUST_USE bool output_text(const Options *o, OutBatch *b, Text *t, const char *path, Diag *d);

/* Makes a folder that is not there yet, and notes it in `made`. */
MUST_USE bool output_folder(const char *path, Strings *made, Arena *a, Diag *d);
void remove_folders(Strings *made); /* those that are empty, where the run failed */

/* The files of a run appear, or none: in the end all that are staged are renamed to their places,
 * if standard output took what was printed, no mapped file has changed and nothing failed. */
MUST_USE bool finish_files(const Options *o, OutBatch *b, Diag *d);

/* -- run.c: the inputs of each call ---------------------------------------------------------- */

Strings *split_calls(const Options *o, Arena *a, int *n);
/* An output as a tensor; NULL for what no .npy file holds: a string, none, a list. */
const EtcTensor *value_tensor(Arena *a, const EtcValue *v);

/* -- npy.c ------------------------------------------------------------------------------- */

/* A tensor from a .npy file of version 1 to 3, little-endian, C order; its data is in `a`.
 * bfloat16 and float8 travel as uint16 and uint8 and are taken as `want` when sizes agree; give
 * -1 for no wish.  NULL: reported. */
EtcTensor *npy_read(Files *files, Arena *a, const char *path, int want, Diag *d);

enum { NPY_HEADER = 64 * 1024 }; /* more than the longest header that is read */

typedef struct NpyHeader {
    EtcDtype dtype;
    int rank;
    int64_t dim[ETC_MAX_RANK];
    int64_t start, bytes; /* of the elements */
} NpyHeader;

/* Reads the header of an .npy file of `size` bytes that begins with head[0..n); n is `size` or at
 * least NPY_HEADER.  False: reported. */
MUST_USE bool npy_header(const char *name, const uint8_t *head, size_t n, int64_t size,
                         NpyHeader *h, Diag *d);
EtcDtype npy_dtype(EtcDtype is, EtcDtype want); /* as which a file's elements are taken */
MUST_USE bool npy_check(const EtcTensor *t, const char *name, Diag *d); /* bool: 0 or 1 */

/* -- data.c: samples of a model's inputs ---------------------------------------------------- */

typedef struct Data Data;

/* DATA for graph g: a folder of .npy and .npz files, or one of them.  What an input's array
 * holds is one sample where it fits as it is; else its first axis is that of samples, or of a
 * multiple of the fixed batch.  All files' headers are read and their mistakes reported.  NULL:
 * there were any. */
Data *data_open(Files *files, const char *path, const Graph *g, Arena *a, Diag *d);
/* Returns the samples, for one reader at a time; they are valid until data_close. */
Samples data_samples(Data *data);
uint64_t data_id(const Data *data); /* by names, sizes and times of the files */
void data_close(Data *data); /* NULL: nothing */

/* An --input argument: a .npy file, or value:JSON as a scalar value.  `like` (may be NULL) is
 * what the program expects: a number becomes a 0-d tensor where it wants one. */
MUST_USE bool input_read(Files *files, Arena *a, const char *text, const EtcValue *like, EtcValue *out,
                Diag *d);

/* The file of a tensor; its pieces point into `a` and at the tensor's data. */
OutFile npy_file(Arena *a, const EtcTensor *t);

/* -- pte_file.c: what a .pte says ---------------------------------------------------------- */

typedef struct PteOperator {
    const char *name; /* "aten::add.out" */
    int calls;
    bool is_built_in; /* runtime-lite has it */
} PteOperator;

typedef struct PteEnd { /* an input or output of a method */
    const char *kind;   /* "tensor", "int", ... */
    const char *dtype;  /* of a tensor, as below */
    int rank;
    const int32_t *dim;
    bool is_dynamic; /* sizes are bounds */
} PteEnd;

/* A delegate's blob. */
typedef struct PteBlob {
    const char *id; /* the backend's */
    uint64_t n_bytes;
    const char *wrong; /* why it is not read, or NULL; nothing but these is known then */
    bool is_read;      /* it is one of XNNPACK */
    int n_values, n_constants;
    int *n_nodes; /* by XnnKind */
} PteBlob;

typedef struct PteMethod {
    const char *name;
    int n_ops, n_in, n_out, n_delegates, n_pools;
    PteOperator *op;
    PteEnd *in, *out;
    PteBlob *delegate; /* once per call site */
    int64_t *pool;         /* planned bytes */
    uint32_t dtypes;       /* bit n: a tensor is of dtype n */
    bool has_doubles, has_unknown_dtypes;
} PteMethod;

/* Maps and verifies a .pte.  False: reported. */
MUST_USE bool pte_open(Files *files, const char *path, EtcProgram *p, Diag *d);

/* p was opened by etc_program_open, which verified what is read here. */
PteMethod pte_method(const EtcProgram *p, int32_t method, Arena *a);

extern const char *const xnn_node_name[]; /* by XnnKind */

/* The pieces as one, 64-byte aligned. */
const uint8_t *join_pieces(const OutFile *f, Arena *a, size_t *n);

/* -- delegates.c --------------------------------------------------------------------------- */

typedef struct Delegates {
    EtcDelegate list[1];
    int n;
    void *host;
} Delegates;

/* profiles: they tell what they do.  False: reported. */
MUST_USE bool delegates_start(int threads, bool profiles, Delegates *to, Diag *d);
void delegates_stop(const Delegates *d);
bool delegates_have(const char *id); /* the program has that one */

/* -- runner.c ------------------------------------------------------------------------------ */

typedef struct Runner { /* {.o, .arena, .diag} is a new one */
    const Options *o;
    Arena *arena;
    Diag *diag;
    bool profiles;         /* delegates tell what they do */
    const Program *source; /* NULL where the model is a .pte */
    PteStats stats;        /* of the source */
    EtcProgram file;
    const Graph *graph; /* of the method, where there is a source */
    Delegates delegates;
    EtcMethod *method;
    PteMethod says; /* what the file says of it */
    EtcMemory need;
    int64_t most, held; /* bytes: that the program may take and does */
} Runner;

bool runner_load(Runner *r); /* false: reported, as all of these */
bool runner_init(Runner *r); /* after it, or a failure of it, runner_end */
void runner_end(Runner *r);  /* may be initialised again */

/* Counts bytes that are about to be taken; false where they pass --memory-limit: reported. */
bool runner_takes(Runner *r, size_t bytes, const char *what);

bool runner_set_input(const Runner *r, int i, const EtcValue *v);
bool runner_set_inputs(const Runner *r,
                       const Strings *in); /* --input's; tells all that are wrong */
bool runner_call(const Runner *r);

/* Goes on as etc-xnn, which stands beside this program or in PATH, where the file asks for XNNPACK
 * and this program has none; comes back where it does not. */
void runner_become_xnn(const EtcProgram *file, const Options *o, Arena *a);

/* -- bench.c --------------------------------------------------------------------------------- */

/* What all methods take, as the cost models estimate: kernels, and delegates with their calls. */
double predicted_seconds(const Program *p);
/* The median of --runs calls of a .pte.  False: reported. */
MUST_USE bool bench_median(const Options *o, Arena *a, Diag *d, double *seconds);

/* -- diff.c: for verify too ------------------------------------------------------------------ */

bool numbers_agree(double a, double b, double atol, double rtol); /* b differs from a by no more */
bool tensors_match(const EtcTensor *a, const EtcTensor *b); /* of the same sizes */
Graph *method_asked(const Options *o, const Program *p, Diag *d); /* NULL: reported */
MUST_USE bool graph_can_run(const Graph *g, Diag *d); /* in the evaluator; false: reported */
/* Keeps the states that a call has updated for the next one, in `a`. */
void states_carry(const Graph *g, EtcTensor **update, Arena *a);

/* -- target.c ------------------------------------------------------------------------------ */

#define RUNTIME_FIRST "1.0.1"
#define RUNTIME_NEWEST "1.4.1" /* that the tables were made from */

int runtime_version(
    const char *text); /* a number that grows with it; 0: none from RUNTIME_FIRST on */
/* The version that brought a node of XNNPACK, an XnnKind, as such a number. */
int runtime_since_node(int kind);
/* Has the program's passes do without the kernels and nodes that --target-runtime has not. */
void target_prepare(const Options *o, Program *p);
/* The version that brought a kernel, as such a number; 0: no published runtime has it itself. */
int runtime_since(const char *kernel);
const char *runtime_text(Arena *a, int version); /* "1.4.1" */
/* Whether a file of --ops says that the user's runtime registers it.  own: NULL where there is none. */
bool custom_registers(const CustomOps *own, const char *kernel);

/* Checks that --target-runtime, if given, has every operator that the file calls; all others are
 * reported, each at the nodes that ask for it. */
MUST_USE bool target_has_operators(const Options *o, const Program *p, const OutFile *f, Arena *a,
                                   Diag *d);

/* -- digest.c ------------------------------------------------------------------------------ */

typedef struct Digest {
    char hex[33];
} Digest;

Digest digest_bytes(const void *data, size_t n);
/* Also tells which file it was.  False: reported. */
MUST_USE bool digest_file(Files *files, const char *path, Digest *out, File **is, Diag *d);

/* -- key.c --------------------------------------------------------------------------------- */

typedef struct KeyFile {
    const char *path;
    File *file;
    Digest digest;
    bool counts; /* what it holds reaches the output */
} KeyFile;

typedef struct ContentKey {
    Digest digest;
    const char *text; /* that it is the digest of, a line for each thing that counts */
    KeyFile *file;    /* all that were read */
    int n_files;
} ContentKey;

/* The key of a compile of which all files were opened.  False: reported. */
MUST_USE bool key_of(const Options *o, Arena *a, ContentKey *k, Diag *d);

/* -- batch_list.c, batch_state.c, batch.c, batch_report.c ----------------------------------- */

typedef struct BatchFile {
    const char *path; /* an output's counts from the output folder */
    int64_t size, seconds, nanoseconds, inode;
    Digest digest; /* of a folder: of the names in it */
} BatchFile;

typedef struct BatchRecord { /* of what an entry's last good run read and wrote */
    const char *name;
    Digest words, key;
    int64_t bytes, arena;
    double delegated, predicted, cosine; /* percent, seconds, of its outputs; NAN: not known */
    BatchFile *in, *out;
    int n_in, n_out;
} BatchRecord;

typedef enum BatchStatus {
    BATCH_WAITING,
    BATCH_WRITTEN,
    BATCH_UNCHANGED,
    BATCH_FAILED,
    BATCH_CRASHED
} BatchStatus;

typedef struct BatchEntry {
    const char *name;
    Loc loc; /* in the list */
    Command command;
    const char *folder, *output, *path; /* "/out/", what stands in the list, and both */
    Strings words, plain; /* of its command but -o; plain: without the output folder in them */
    Digest words_digest;
    int64_t memory; /* the most that its process may take; 0: no limit */
    Options options;
    BatchRecord *known; /* that holds; NULL: none */
    BatchStatus status;
    int code; /* of its process, as of a command */
    double seconds;
    Message *message;
    int n_messages;
} BatchEntry;

typedef struct Batch {
    const char *list;
    BatchEntry *entry;
    int n;
    double seconds;
} Batch;

/* Adds the entries of a list and of those that it extends.  False: all mistakes are reported. */
MUST_USE bool batch_read(Files *files, const char *path, const char *folder, Arena *a, Batch *out,
                         Diag *d);

bool record_is_untouched(const BatchRecord *r, const char *folder, Arena *a); /* by times alone */
bool record_is_same(BatchRecord *r, const char *folder, Arena *a); /* reads what was touched */
MUST_USE bool record_make(const Options *o, const char *folder, BatchRecord *r, Arena *a, Diag *d);
void record_put(const BatchRecord *r, Arena *a, FILE *out);
bool record_read(const struct Json *v, Arena *a, BatchRecord *r);

/* Sets `known` of the entries whose commands are as they were. */
void state_read(const char *path, Batch *b, Arena *a, Diag *d);
MUST_USE bool state_write(const char *path, const Batch *b, Diag *d);

void batch_put_line(const BatchEntry *e, Arena *a, FILE *out);
/* Writes the list as a file of ninja.  False: reported. */
MUST_USE bool batch_ninja(const Batch *b, const char *path, Arena *a, Diag *d);
/* The summary, and what --junit, --report and the environment ask for; paths are absolute, or
 * NULL.  False: reported. */
MUST_USE bool batch_report(const Batch *b, const char *junit, const char *page, bool tells,
                           Arena *a, Diag *d);

/* -- batch_page.c -------------------------------------------------------------------------- */

typedef struct Cause {
    const char *text;
    Fault fault;
    Strings models; /* that it stops, each once */
} Cause;

typedef struct Causes {
    Arena *arena;
    Table by_text;
    Cause **item; /* most models first */
    int n;
} Causes;

extern const char *const batch_status_name[];
/* Writes the page of --report to an absolute path.  False: reported. */
MUST_USE bool batch_page(const Batch *b, const Causes *c, const char *totals, const char *path,
                         Arena *a, Diag *d);

/* -- c_program.c: emitted C, built and called --------------------------------------------------- */

typedef struct CProgram CProgram;

/* Builds FILE.c, of the command line, and what emit-c wrote beside it, with $CC and $CFLAGS, in a
 * temporary folder; with --target, the C that is written there of the model.  NULL: reported. */
CProgram *c_program_build(const Options *o, Arena *a, Diag *d);
const Graph *c_program_method(const CProgram *c); /* as it was planned, with --target */
void c_program_end(CProgram *c); /* removes the folder; NULL: nothing */
/* Notes a call of g's method; then runs all that were noted, in one process. */
MUST_USE bool c_program_stage(CProgram *c, const Graph *g, EtcTensor *const *in);
void c_program_stage_words(CProgram *c, const Strings *in); /* the same of --input's */
MUST_USE bool c_program_run(CProgram *c);
/* An output of a call of the last run.  NULL: reported. */
const EtcTensor *c_program_output(const CProgram *c, int call, int output, int dtype, Arena *a);

/* -- shrunk.c ------------------------------------------------------------------------------ */

/* From now on the process ends with a message and exit code 3 when it reads where a mapped file
 * has been cut off. */
void catch_shrunk_files(void);

/* -- text.c: shared by the commands -------------------------------------------------------- */

const char *json_text(Arena *a, const char *s); /* a JSON string with its quotes, valid UTF-8 */
const char *json_finite(double x, Arena *a);    /* "null" for what is no number */
double json_float_at(const struct Json *of, const char *key); /* NAN: there is none */
const char *comma(int i);                       /* before item i of a list: "" or ", " */
const char *tensor_shown(Arena *a, const EtcTensor *t); /* "f32[2,3]" */
const char *type_shown(Arena *a, Type t);               /* "f32[%s31,64]" */
double seconds_now(void);
void say_lines(FILE *out, const char *text, Arena *a); /* each escaped for itself */

bool file_exists(const char *path);
bool ends_in(const char *s, const char *end); /* and is more than that */

void html_put(FILE *f, const char *s);             /* escaped; NULL: nothing */
const char *with_commas(Arena *a, int64_t n);      /* "1,605,632" */
const char *in_units(Arena *a, double bytes);      /* "1.5 MiB" */

/* Reports what runtime-lite says of a file; returns false. */
bool runtime_failed(const char *file, const EtcError *e, Diag *d);

/* -- config.c: YAML ------------------------------------------------------------------------- */

typedef enum YamlKind {
    YAML_SCALAR,
    YAML_LIST,
    YAML_MAP,
    YAML_BROKEN /* was refused; nothing more is to be said of it */
} YamlKind;

typedef struct Yaml Yaml;
struct Yaml {
    YamlKind kind;
    const char *file;
    int line, column;
    const char *text; /* of a scalar */
    bool is_plain;    /* it stands without quotes */
    bool has_lines;   /* it stands in lines of its own, behind '|' */
    const char *key;  /* of a map's item; else NULL */
    int key_line, key_column;
    Yaml *first, *next; /* items of a list or map */
    int n;
};

/* The tree of a text of one document, in `a`, some of which may be YAML_BROKEN; all that was
 * refused is reported.  NULL: there is no telling what else it says. */
const Yaml *yaml_parse(Arena *a, const char *file, const uint8_t *data, size_t n, Diag *d);
Loc yaml_loc(const Yaml *y);
Loc yaml_key_loc(const Yaml *y);
/* Whether y is of that kind, which messages call `want`; reported where not. */
MUST_USE bool yaml_is(const Yaml *y, YamlKind kind, const char *want, Arena *a, Diag *d);
/* found[i]: the value of key i in the map, or NULL.  Other keys are reported. */
MUST_USE bool yaml_map(const Yaml *map, const char *const *key, int n, const Yaml **found, Arena *a,
                       Diag *d);
/* Reports that the map lacks the key where y, its value, is NULL. */
void yaml_need(const Yaml *map, const Yaml *y, const char *key, Diag *d);

/* -- custom.c -------------------------------------------------------------------------------- */

/* Reads the files of --ops; *out is NULL where there are none.  False: all mistakes are reported. */
MUST_USE bool custom_read(const Options *o, Arena *a, const CustomOps **out, Diag *d);
/* Adds the operators that n bytes of such a file describe. */
MUST_USE bool custom_parse(const char *file, const uint8_t *data, size_t n, CustomOps *to, Diag *d);

/* -- manifest.c ------------------------------------------------------------------------------ */

typedef struct Manifest { /* what one build of the runtime has */
    Table names;          /* of kernels and delegates */
    bool has_all_kernels;
} Manifest;

/* Reads the files of --manifest, whose contents add up; *out is NULL where there are none.  False:
 * all mistakes are reported. */
MUST_USE bool manifest_read(const Options *o, Arena *a, Manifest **out, Diag *d);
/* Adds what n bytes of such a file tell; `to` has an arena. */
MUST_USE bool manifest_parse(const char *file, const uint8_t *data, size_t n, Manifest *to, Diag *d);
bool manifest_has(const Manifest *m, const char *name);

/* -- recipes.c ------------------------------------------------------------------------------ */

typedef struct RecipePreset {
    const char *name, *help, *text;
} RecipePreset;

extern const RecipePreset recipe_preset[];
extern const int n_recipe_presets;
bool recipe_is_preset(const char *name);

/* A preset, or a file of a recipe.  False: all its mistakes are reported. */
MUST_USE bool recipe_read(Files *files, const char *name, Arena *a, Recipe *out, Diag *d);
MUST_USE bool recipe_parse(const char *file, const uint8_t *data, size_t n, Arena *a, Recipe *out, Diag *d);
/* Reads the value of --max-drop, METRIC=VALUE, into *out.  False: it has another form. */
bool recipe_set_budget(const char *text, Recipe *out);

/* -- report.c ------------------------------------------------------------------------------ */

/* Adds what --report asks for of a planned program: the picture of its memory as SVG, or the page
 * where its name does not end in ".svg".  q: what quantization costs; NULL: not known.  False:
 * reported. */
MUST_USE bool report_add(const Options *o, const Program *p, const QuantReport *q, OutBatch *out,
                         Arena *a, Diag *d);
void report_svg(FILE *f, const Program *p, Arena *a);

/* -- report_page.c ------------------------------------------------------------------------- */

void page_head(FILE *f, const char *title, const char *what); /* up to its heading */
void page_put(FILE *f, const Program *p, const QuantReport *q, Arena *a); /* of a planned program */

/* -- debug_map.c --------------------------------------------------------------------------- */

typedef struct DebugNode { /* texts are NULL where they are not known */
    const char *node, *op, *module, *source;
} DebugNode;

typedef struct DebugInstruction {
    DebugNode node, *part; /* part: the nodes of a delegate's region */
    int n_parts;
} DebugInstruction;

typedef struct DebugMap { /* of one method */
    DebugInstruction *item;
    int n;
} DebugMap;

/* Adds the file of --debug-map, of a .pte that was emitted.  False: reported. */
MUST_USE bool debug_map_add(const Options *o, const PteStats *s, OutBatch *out, Arena *a, Diag *d);
/* Reads what the file of --map says of the method that --method names.  False: reported. */
MUST_USE bool debug_map_read(const Options *o, DebugMap *out, Arena *a, Diag *d);

/* -- etdump.c ------------------------------------------------------------------------------ */

typedef struct EtEvent { /* those of one name at one instruction */
    const char *name, *delegate; /* delegate: its own name for what ran, or NULL */
    int32_t instruction, number; /* -1: none; number: the delegate's own */
    int64_t calls;
    uint64_t ticks, least, most; /* of all, and of one call */
} EtEvent;

typedef struct EtDump {
    int n_runs, n;
    EtEvent *event; /* by instruction */
} EtDump;

/* Reads an ETDump at an address that is a multiple of 8.  NULL, or what is wrong with it. */
const char *etdump_read(const uint8_t *data, size_t n, Arena *a, EtDump *out);
MUST_USE bool etdump_inspect(const Options *o, Arena *a, Diag *d); /* the command; false: reported */

typedef struct EtRecord EtRecord;

EtRecord *etdump_start(Runner *r); /* of a runner that is initialised: watches its method */
void etdump_begin(EtRecord *x);    /* before each call, and behind it: */
void etdump_end_call(EtRecord *x);
/* Adds the file of --etdump.  False: reported. */
MUST_USE bool etdump_add(EtRecord *x, OutBatch *out, Diag *d);

/* -- quant_report.c ------------------------------------------------------------------------ */

/* Writes the report on what quantization costs: an HTML page without other files, and the same as
 * JSON, whose schema is in docs/quantization.md. */
void quant_report_body(const QuantReport *r, Arena *a, FILE *f); /* without what makes it a page */
void quant_report_html(const QuantReport *r, Arena *a, FILE *f);
void quant_report_json(const QuantReport *r, Arena *a, FILE *f);
/* Adds what --report asks for: the page, or the JSON where its name ends in ".json".  False:
 * reported. */
MUST_USE bool quant_report_add(const Options *o, const QuantReport *r, OutBatch *out, Arena *a, Diag *d);

/* -- partition.c --------------------------------------------------------------------------- */

double partition_percent(const PartitionReport *r); /* of multiply-adds that backends take */
MUST_USE bool partition_gate(const Options *o, const Program *p, Diag *d); /* --require-delegated */
void partition_line(const Program *p, const char *file, Arena *a); /* to standard error */

/* -- quantize.c ----------------------------------------------------------------------------- */

/* Sets the session's `quant` to what --recipe and its kin ask for, by `known` where that is not
 * NULL.  False: reported. */
MUST_USE bool quant_prepare(const Options *o, Program *p, const Statistics *known, Arena *a,
                            Diag *d);
/* Where the recipe has a budget and p is to be built of samples: looks for the layers that stay in
 * floats, as `etc quantize` does, and has the job keep them.  False: reported. */
MUST_USE bool quant_meet_budget(const Options *o, Program *p, Arena *a, Diag *d);
/* The samples of --calibrate, which as many threads run as --threads says. */
Samples quant_samples(const Options *o, Data *data, const char *what, Arena *a);
/* What quantization costs p, which was compiled with samples: these run once more.  False: reported. */
MUST_USE bool quant_remeasure(const Options *o, const Program *p, QuantReport *r, Arena *a, Diag *d);
void quant_finish(const Program *p); /* once its passes have run: lets go of samples */

/* Lets what is seen of the samples be kept beside the statistics. */
void quant_keep(const Options *o, const Program *p, Arena *a);

/* p, which was observed, beside what it becomes by what it has seen.  False: reported. */
MUST_USE bool quant_measure(const Options *o, const Program *p, QuantReport *r, Arena *a, Diag *d);

/* -- checkpoint.c --------------------------------------------------------------------------- */

/* Opens the checkpoint that `etc quantize` writes beside its output, now and then and when it is
 * asked to end (SIGINT, SIGTERM), and reads what an earlier run left there.  NULL: there is no
 * place for it. */
Checkpoint *checkpoint_open(const Options *o, uint64_t id, int n_samples, Arena *a);
/* When all is seen: signals end the process again.  NULL: nothing. */
void checkpoint_close(const Checkpoint *c);
void checkpoint_remove(const Options *o); /* when all is done */
const char *checkpoint_path(const Options *o, Arena *a); /* FILE.part */

/* Reads --labels, i64[N].  False: reported.  mixed.c */
MUST_USE bool labels_read(Files *files, const char *path, Arena *a, const int64_t **label, int64_t *n,
                          Diag *d);

/* -- mixed.c ------------------------------------------------------------------------------- */

/* Finds the layers that have to stay in floats for the recipe's budget.  *keep is NULL where there
 * are none, or no budget.  p was observed with nothing kept.  False: reported. */
MUST_USE bool mixed_search(const Options *o, const Program *p, const Statistics **keep, Arena *a,
                           Diag *d);

/* -- runtime_sources.c ---------------------------------------------------------------------- */

#define RUNTIME_KERNELS "runtime-lite/kernels/kernels.def"

typedef struct SourceFile {
    const char *path; /* from the folder on: "runtime-lite/program.c" */
    const char *text;
    bool is_wanted, is_seen;
} SourceFile;

typedef struct SourceFiles { /* by path; without those of tables of cores */
    const char *folder;
    SourceFile *item;
    int n;
    Table by_path, definer; /* of functions: SourceFile */
} SourceFiles;

/* Reads those of --runtime-dir, or beside etc.  False: reported. */
MUST_USE bool source_files_read(const Options *o, SourceFiles *s, Arena *a, Diag *d);
SourceFile *source_file(const SourceFiles *s, const char *path); /* NULL: none of them */

/* The row of kernels.def, `KERNEL("aten::relu.out", relu, 2, 1, 1)`, and "etc_relu".  False: these
 * are sources of another version; reported. */
MUST_USE bool source_kernel(const SourceFiles *s, const char *kernel, Arena *a, const char **row,
                            const char **function, Diag *d);

/* Sets is_wanted of the core, the definers of the functions, and all that these need. */
MUST_USE bool source_files_choose(SourceFiles *s, const Strings *function, Diag *d);

/* -- commands: false where they failed, which is reported to d ----------------------------- */

bool command_compile(const Options *o, Arena *a, Diag *d);
bool command_emit_c(const Options *o, Arena *a, Diag *d);
bool command_run(const Options *o, Arena *a, Diag *d);
bool command_bench(const Options *o, Arena *a, Diag *d);
bool command_diff(const Options *o, Arena *a, Diag *d);
bool command_check(const Options *o, Arena *a, Diag *d);
bool command_partition(const Options *o, Arena *a, Diag *d);
bool command_quantize(const Options *o, Arena *a, Diag *d);
bool command_inspect(const Options *o, Arena *a, Diag *d);
bool command_opt(const Options *o, Arena *a, Diag *d);
bool command_ops(const Options *o, Arena *a, Diag *d);
bool command_runtime(const Options *o, Arena *a, Diag *d);
bool command_key(const Options *o, Arena *a, Diag *d);
bool command_batch(const Options *o, Arena *a, Diag *d);
bool command_doctor(const Options *o, Arena *a, Diag *d);
bool command_verify(const Options *o, Arena *a, Diag *d);
bool command_gate(const Options *o, Arena *a, Diag *d);
bool command_refit(const Options *o, Arena *a, Diag *d);

#endif
