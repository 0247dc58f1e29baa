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

/* In this header and those beside it, a function that returns false or NULL has reported why,
 * unless its comment says otherwise. */

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
    CMD_KEY, /* only while flags are read; afterwards `command` is the command that has the key */
    N_COMMANDS
} Command;

typedef struct Strings {
    const char **item;
    int n;
} Strings;

typedef struct Options {
    Command command;
    Files *files;            /* all files that the run reads or writes */
    const char *model;       /* "-" is standard input */
    const char *output;      /* -o; "-" is standard output */
    Strings models;          /* all files of `etc runtime` */
    const char *runtime_dir; /* the folder with the sources for `etc runtime` */
    const char *weights_dir, *weights, *data, *dump_ir, *dump_data;
    const char *backend, *delegate, *target, *weights_as, *build_files, *target_runtime,
        *require_delegated;
    const char *recipe, *calibrate, *statistics; /* quantize writes `statistics` */
    const char *objective, *io, *error_format, *bundle;
    const char *max_drop, *labels; /* for quantize */
    const char *passes, *tail, *method, *output_dir, *report, *threads;
    const char *parallel, *math;                                  /* for C */
    const char *memory_limit, *work_limit;                        /* for run and bench */
    const char *jobs, *junit, *ninja;                             /* for batch */
    const char *runs, *warmup, *trace;                            /* for bench */
    const char *other, *other_weights, *other_data, *atol, *rtol; /* for diff: the files of B */
    char **argv;                                             /* all words of the command line */
    const char *baseline, *tolerances, *verified, *compiled; /* for gate */
    const char *debug_map, *etdump, *map; /* compile writes debug_map, run writes etdump */
    Strings methods;                      /* NAME=FILE */
    Strings ops;                          /* files that describe operators */
    Strings manifests;                    /* for doctor */
    Strings binds;                        /* INPUT=VALUE, for ONNX files */
    Strings banks;                        /* NAME=SIZE and attributes, for emit-c */
    Strings dims, inputs; /* inputs: files and "value:JSON"; NULL stands for --next */
    bool verify, check_ir, dry_run, depfile, json, quiet, verbose, main, share_io, borrow_inputs,
        freestanding, list, all, simulate, fast_calibrate, write_baseline;
    bool refittable, is_refit; /* is_refit: `etc refit` compiles a record again */
    bool wants_key;            /* print the key of the command and do nothing else */
    const char *name;          /* of one model among several: NAME of --model NAME=FILE */
    struct Options *part;      /* the options of each of several models; NULL: one model */
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

/* The result of reading argv.  OPTIONS_RUN: run the command.  OPTIONS_DONE: help or version was
 * printed; exit with 0.  OPTIONS_BAD: a mistake was reported; exit with 2. */
typedef enum OptionsResult { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_BAD } OptionsResult;
OptionsResult options_parse(Options *o, Arena *a, int argc, char **argv, FILE *out, Diag *d);

/* Prints the command and a line for each flag that may change an output, in an order that does not
 * depend on that of the flags.  Files are given by numbers, in the order of their first mention. */
void options_for_key(const Options *o, Arena *a, FILE *out);

/* Checks the flags of a command, whose name and use these are, against each other.  False:
 * reported. */
MUST_USE bool options_agree(const Options *o, const char *name, const char *use, Arena *a, Diag *d);
bool options_writes(Command c, const char *flag); /* the flag of this command names an output */

/* -- banks.c ------------------------------------------------------------------------------- */

/* Parses the value of --bank; the name becomes small letters.  If it is wrong, *why says so. */
bool bank_parse(const char *text, Arena *a, MemoryBank *b, bool *is_const, const char **why);
/* Reads the banks of the command line into the session. */
MUST_USE bool banks_read(const Options *o, Session *s, Diag *d);
int64_t banks_missing(const CFiles *f); /* how many bytes banks of values are too small */
/* Reports banks that are too small, with the size that would be enough. */
MUST_USE bool banks_suffice(const CFiles *f, const Program *p, Diag *d);

/* -- output.c: texts ------------------------------------------------------------------------ */

/* A text that is printed into memory first. */
typedef struct Text {
    FILE *f;
    char *data;
    size_t n;
} Text;

FILE *text_open(Text *t);                  /* NULL: no memory; text_close then returns NULL too */
const char *text_close(Text *t, Arena *a); /* the text, in a; NULL: there is no memory */
/* Closes the text and writes it to a file. */
MUST_USE bool text_write(Text *t, const char *path, Arena *a, Diag *d);

/* -- messages.c --------------------------------------------------------------------------- */

#define MESSAGE_FORMATS "human|json|github|sarif"

/* The messages of a run in the format of --error-format. */
typedef struct Messages {
    const char *format;
    Text text; /* messages that are printed together at the end */
    Diag diag;
} Messages;

void messages_start(Messages *m, int argc, char **argv); /* to standard error */
void messages_end(Messages *m);

/* Reads lines that message_put_json wrote.  Any other line becomes an error with this text. */
Message *messages_read(const char *lines, size_t n, Arena *a, int *count);

/* -- pipeline.c -------------------------------------------------------------------------- */

typedef struct Pipeline {
    const char *const *pass;
    int n;
} Pipeline;

/* Returns the passes from p's stage to a planned program of its tail.  Fails if the stage
 * belongs to the other tail. */
MUST_USE bool pipeline_of(const Program *p, Pipeline *out, Diag *d);

/* Returns the passes of the pte tail up to partition.  Fails if p is past it. */
MUST_USE bool pipeline_to_partition(const Program *p, Pipeline *out, Diag *d);

/* Returns the passes up to quantize.  Fails if p is past it. */
MUST_USE bool pipeline_to_quantize(const Program *p, Pipeline *out, Diag *d);

/* Returns the first passes, which turn an export into core. */
Pipeline pipeline_to_core(void);

/* Checks that each of the passes, in this order, can run at the stage that it meets. */
MUST_USE bool passes_follow(const Program *p, const char *const *pass, int n, Diag *d);

/* -- model.c ----------------------------------------------------------------------------- */

/* Returns the kind of the file MODEL; "-" is textual IR.  IMPORT_UNKNOWN: an error was reported. */
ImportKind model_kind(const Options *o, Diag *d);

/* Reads a .pt2, a folder, a model.json, an .onnx or an .etir (at the stage that it names), or
 * the models of --method, and applies --dim. */
Program *model_load(const Options *o, Arena *a, Diag *d);

/* Loads the model, and reads everything else that the passes of the tail need. */
Program *model_prepare(const Options *o, const Tail *tail, Arena *a, Diag *d);

/* Runs the passes of the tail on a loaded program. */
Program *model_compile_loaded(const Options *o, Program *p, const Tail *tail, Arena *a,
                              OutBatch *out, Diag *d);

/* Loads a program and does the same. */
Program *model_compile(const Options *o, const Tail *tail, Arena *a, OutBatch *out, Diag *d);

/* Loads a program and runs the passes up to partition, with the backends of --backend.  The
 * decisions are in the session's `partition`. */
Program *model_partition(const Options *o, Arena *a, Diag *d);

/* Loads a program and runs the passes up to quantize, which only observes.  The nodes in `keep`
 * stay float; `keep` may be NULL. */
Program *model_observe(const Options *o, const Statistics *keep, Arena *a, Diag *d);

/* Loads a program and runs the passes up to quantize, with these statistics. */
Program *model_quantize(const Options *o, const Statistics *known, Arena *a, Diag *d);

/* Loads and checks a program.  If it is at stage aten, makes it core, so that the evaluator can
 * run it. */
Program *model_evaluable(const Options *o, Arena *a, Diag *d);

/* Stores the states that a call of the evaluator has updated for the next call, in `a`. */
void states_carry(const Graph *g, EtcTensor **update, Arena *a);

/* Returns whether a tensor can be a value of this type; values of symbols are checked when it is
 * evaluated. */
bool tensor_is_of_type(const EtcTensor *t, Type want);

/* Reads an --input argument as input i of g, and checks that a tensor can be this input. */
MUST_USE bool model_input(const Options *o, const char *text, const Graph *g, int i, Arena *a,
                          EtcTensor **out, Diag *d);
MUST_USE bool model_input_fits(const Options *o, const Graph *g, int i, const EtcTensor *t,
                               Arena *a, Diag *d);

/* Runs passes as --verify, --check-ir, --dump-ir and -v ask.  The file of --dump-data is added
 * to `out`, which may be NULL. */
MUST_USE bool model_run_passes(const Options *o, Program *p, const char *const *pass, int n,
                               Arena *a, OutBatch *out, Diag *d);

/* -- build.c ----------------------------------------------------------------------------- */

const char *depfile_path(const Options *o, Arena *a); /* OUT.d */

/* Compiles a model to C as `etc emit-c` does, but writes no files. */
MUST_USE bool build_c_layers(const Options *o, Arena *a, CFiles *files, Diag *d);
/* `etc bench --target`: prints what the functions of a model cost on a microcontroller. */
bool command_forecast(const Options *o, Arena *a, Diag *d);
/* Compiles a model to C and writes its files, as `etc emit-c` does.  NULL: reported. */
const Program *build_c_program(const Options *o, Arena *a, Diag *d);

/* Compiles a loaded program to a .pte and writes it, if `agrees` accepts the file.  False:
 * reported. */
MUST_USE bool build_loaded(const Options *o, Program *p,
                           bool (*agrees)(const OutFile *f, void *ctx), void *ctx, Arena *a,
                           Diag *d);

/* -- bundle.c ------------------------------------------------------------------------------- */

/* The two parts of --bundle INPUTS[,OUTPUTS]; the second may be NULL. */
const char *bundle_inputs(const Options *o, Arena *a);
const char *bundle_outputs(const Options *o);
/* Reads the inputs of --bundle, and reads or computes the outputs. */
MUST_USE bool bundle_make(const Options *o, Arena *a, Bundle *out, Diag *d);

/* -- refit_record.c ------------------------------------------------------------------------ */

#define REFIT_MAGIC "etc.refit 1 "

/* For --refittable: the first stores the loaded graph in the session's record, the second
 * completes the record after the passes. */
MUST_USE bool refit_keep_graph(const Options *o, const Program *p, Arena *a, Diag *d);
MUST_USE bool refit_keep(const Options *o, const Program *p, Arena *a, Diag *d);

/* Returns the text of a program without the parts that may differ between files of the same
 * model: its name, source lines, and the files with the weights.  These are replaced by numbers,
 * which show which weights share bytes. */
const char *refit_graph(const Options *o, const Program *p, Arena *a, Diag *d);
/* Returns the number of bytes from the first element of a tensor to the end of its last one; -1: it
 * overflows. */
int64_t refit_extent(Type t);
bool refit_keeps_flag(const char *name); /* the record may hold the flag */

/* -- output.c ---------------------------------------------------------------------------- */

/* Each adds a file to the batch, unless the run reads or writes this file already.  The bytes
 * must outlive the batch; the text is closed. */
MUST_USE bool output_file(const Options *o, OutBatch *b, const OutFile *f, const char *path,
                          Diag *d);
MUST_USE bool output_bytes(const Options *o, OutBatch *b, const void *bytes, int64_t n,
                           const char *path, Diag *d);
MUST_USE bool output_text(const Options *o, OutBatch *b, Text *t, const char *path, Diag *d);

/* Makes a folder if it does not exist, and records it in `made`. */
MUST_USE bool output_folder(const char *path, Strings *made, Arena *a, Diag *d);
void remove_folders(Strings *made); /* removes empty ones after a failure */

/* Ends a run: renames all staged files to their places, if standard output could be written, no
 * mapped file has changed and nothing failed.  Otherwise no file appears. */
MUST_USE bool finish_files(const Options *o, OutBatch *b, Diag *d);

/* -- run.c: the inputs of each call ---------------------------------------------------------- */

Strings *split_calls(const Options *o, Arena *a, int *n);
/* Returns an output as a tensor.  NULL without a report: it is a string, none or a list, which
 * no .npy file can hold. */
const EtcTensor *value_tensor(Arena *a, const EtcValue *v);

/* -- npy.c ------------------------------------------------------------------------------- */

/* Reads a tensor from a .npy file of version 1 to 3, little-endian, in C order; its data lies in
 * `a`.  bfloat16 and float8 are stored as uint16 and uint8, and are taken as `want` if the sizes
 * of elements agree; -1: no dtype is wanted. */
EtcTensor *npy_read(Files *files, Arena *a, const char *path, int want, Diag *d);

enum { NPY_HEADER = 64 * 1024 }; /* more than the longest header that is read */

typedef struct NpyHeader {
    EtcDtype dtype;
    int rank;
    int64_t dim[ETC_MAX_RANK];
    int64_t start, bytes; /* the position and the size of the elements */
} NpyHeader;

/* Reads the header of an .npy file of `size` bytes that begins with head[0..n); n is `size` or at
 * least NPY_HEADER. */
MUST_USE bool npy_header(const char *name, const uint8_t *head, size_t n, int64_t size,
                         NpyHeader *h, Diag *d);
EtcDtype npy_dtype(EtcDtype is, EtcDtype want); /* the dtype that a file's elements are taken as */
MUST_USE bool npy_check(const EtcTensor *t, const char *name, Diag *d); /* bools are 0 or 1 */

/* -- data.c: samples of a model's inputs ---------------------------------------------------- */

typedef struct Data Data;

/* Opens samples for graph g: a folder of .npy and .npz files, or one such file.  An array is one
 * sample if it fits as it is; else its first axis counts samples, or is a multiple of the fixed
 * batch.  The headers of all files are read, and all mistakes are reported. */
Data *data_open(Files *files, const char *path, const Graph *g, Arena *a, Diag *d);
/* Returns the samples, which are valid until data_close.  Only one thread may read at a time. */
Samples data_samples(Data *data);
uint64_t data_id(const Data *data); /* a hash of names, sizes and times of the files */
void data_close(Data *data);        /* may be NULL */

/* Reads an --input argument: a .npy file, or value:JSON, which is a number.  `like` is what the
 * program expects, or NULL: if it is a tensor, a number becomes a tensor of rank 0. */
MUST_USE bool input_read(Files *files, Arena *a, const char *text, const EtcValue *like,
                         EtcValue *out, Diag *d);

/* Returns a tensor as a .npy file; its pieces point into `a` and to the tensor's data. */
OutFile npy_file(Arena *a, const EtcTensor *t);

/* -- target.c ------------------------------------------------------------------------------ */

const Target *c_target(const Options *o); /* the row for --target; NULL: generic */

#define RUNTIME_FIRST "1.0.1"
#define RUNTIME_NEWEST "1.4.1" /* the newest version in the tables */

/* Parses a version as RUNTIME_VERSION; 0: it is none, or older than RUNTIME_FIRST. */
int runtime_version(const char *text);
/* The version that brought a node of XNNPACK, an XnnKind. */
int runtime_since_node(int kind);
/* Tells the passes which kernels and nodes --target-runtime lacks. */
void target_prepare(const Options *o, Program *p);
/* The version that brought a kernel; 0: no published runtime has it. */
int runtime_since(const char *kernel);
const char *runtime_text(Arena *a, int version); /* "1.4.1" */
/* Returns whether a file of --ops says that the user's runtime registers the kernel; `own` may
 * be NULL. */
bool custom_registers(const CustomOps *own, const char *kernel);

/* Checks that --target-runtime, if given, has every operator that the file calls.  Reports all
 * others, each with the nodes that need it. */
MUST_USE bool target_has_operators(const Options *o, const Program *p, const OutFile *f, Arena *a,
                                   Diag *d);

/* -- shrunk.c ------------------------------------------------------------------------------ */

/* From now on, the process ends with a message and exit code 3 if it reads a mapped page that lies
 * after the end of a truncated file. */
void catch_shrunk_files(void);

/* -- text.c: shared by the commands -------------------------------------------------------- */

const char *json_text(Arena *a, const char *s); /* a JSON string with its quotes, valid UTF-8 */
const char *json_finite(double x, Arena *a);    /* "null" for infinities and NaN */
double json_float_at(const struct Json *of, const char *key); /* NAN: there is no number */
const char *comma(int i);                               /* before item i of a list: "" or ", " */
const char *tensor_shown(Arena *a, const EtcTensor *t); /* "f32[2,3]" */
const char *type_shown(Arena *a, Type t);               /* "f32[%s31,64]" */
double seconds_now(void);
void say_lines(FILE *out, const char *text, Arena *a); /* escapes each line */

bool file_exists(const char *path); /* "-", standard input, does */
bool ends_in(const char *s, const char *end); /* and s is longer than `end` */

/* These parse an integer at the start of s, "LO..HI" with 0 <= LO <= HI, and "4096" or "4K" with K, M,
 * G or T, each of which is `step` times the one before.  They report nothing. */
bool parse_bound(const char *s, const char **end, int64_t *v);
bool parse_range(const char *s, int64_t *lo, int64_t *hi);
bool parse_amount(const char *s, int64_t step, int64_t *n);

void page_head(FILE *f, const char *title, const char *what); /* a page in HTML up to its heading */
void html_put(FILE *f, const char *s);        /* escapes s, which may be NULL */
const char *with_commas(Arena *a, int64_t n); /* "1,605,632" */
const char *in_units(Arena *a, double bytes); /* "1.5 MiB" */

/* Reports an error of runtime-lite about a file; returns false. */
bool runtime_failed(const char *file, const EtcError *e, Diag *d);

/* -- report.c ------------------------------------------------------------------------------ */

/* Adds the file of --report for a planned program: a picture of its memory if the name ends in
 * ".svg", else the page.  q: the cost of quantization, or NULL. */
MUST_USE bool report_add(const Options *o, const Program *p, const QuantReport *q, OutBatch *out,
                         Arena *a, Diag *d);
void report_svg(FILE *f, const Program *p, Arena *a);

/* -- report_page.c ------------------------------------------------------------------------- */

void page_put(FILE *f, const Program *p, const QuantReport *q, Arena *a); /* p is planned */

/* -- partition.c --------------------------------------------------------------------------- */

double partition_percent(const PartitionReport *r); /* multiply-adds in backends, in percent */
/* Returns the region whose body a node delegates, or NULL.  p and n may be NULL. */
const RegionReport *partition_region(const Program *p, const Node *n);
/* Estimates the time of all methods by the cost models: kernels, and delegates with their calls. */
double predicted_seconds(const Program *p);
MUST_USE bool partition_gate(const Options *o, const Program *p, Diag *d); /* --require-delegated */
void partition_line(const Program *p, const char *file, Arena *a); /* prints to standard error */

/* -- runtime_sources.c ---------------------------------------------------------------------- */

#define RUNTIME_KERNELS "runtime-lite/kernels/kernels.def"

typedef struct SourceFile {
    const char *path; /* relative to the folder: "runtime-lite/program.c" */
    const char *text;
    bool is_wanted, is_seen;
} SourceFile;

typedef struct SourceFiles { /* sorted by path */
    const char *folder;
    SourceFile *item;
    int n;
    Table by_path, definer; /* definer: from functions to SourceFile */
} SourceFiles;

/* Reads the sources of --runtime-dir, or those beside etc. */
MUST_USE bool source_files_read(const Options *o, SourceFiles *s, Arena *a, Diag *d);
SourceFile *source_file(const SourceFiles *s, const char *path); /* NULL: there is no such file */

/* Returns the row of kernels.def, `KERNEL("aten::relu.out", relu, 2, 1, 1)`, and "etc_relu".  Fails
 * if the sources are of another version. */
MUST_USE bool source_kernel(const SourceFiles *s, const char *kernel, Arena *a, const char **row,
                            const char **function, Diag *d);

/* Sets is_wanted of the core, of the files that define the functions, and of all that they need. */
MUST_USE bool source_files_choose(SourceFiles *s, const Strings *function, Diag *d);

/* -- commands ------------------------------------------------------------------------------ */

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
