/* compiler.h -- the command line: options, pipelines, commands. */
#ifndef ETC_COMPILER_H
#define ETC_COMPILER_H

#include "ir/ir.h"
#include "passes/passes.h"

#define ETC_VERSION "0.1.0"

/* -- options.c --------------------------------------------------------------------------- */

typedef enum Command {
    CMD_COMPILE,
    CMD_EMIT_C,
    CMD_RUN,
    CMD_CHECK,
    CMD_INSPECT,
    CMD_OPT,
    CMD_OPS,
    N_COMMANDS
} Command;

typedef struct Strings {
    const char **item;
    int n;
} Strings;

typedef struct Options {
    Command command;
    const char *model;  /* "-" is standard input */
    const char *output; /* -o; "-" is standard output */
    const char *weights_dir, *dump_ir, *dump_data, *data, *backend, *target, *math, *weights_as;
    const char *passes, *tail, *method, *output_dir, *require_delegated;
    Strings dims, inputs; /* inputs: files and "value:JSON"; NULL stands for --next */
    bool verify, check_ir, dry_run, depfile, json, quiet, verbose, main, list;
} Options;

/* What argv asked for.  OPTIONS_RUN: go on.  OPTIONS_DONE: help or version was printed, exit 0.
 * OPTIONS_BAD: the mistake was reported to err, exit 2. */
typedef enum OptionsResult { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_BAD } OptionsResult;
OptionsResult options_parse(Options *o, Arena *a, int argc, char **argv, FILE *out, FILE *err);

/* -- pipeline.c -------------------------------------------------------------------------- */

typedef struct Pipeline {
    const char *const *pass;
    int n;
} Pipeline;

/* The passes from `stage` to a planned program; all of a tail for STAGE_ATEN. */
Pipeline pipeline_of(Tail tail, Stage stage);

/* -- model.c ----------------------------------------------------------------------------- */

/* Reads a .pt2, a folder, a model.json or an .etir (stage as written there), and applies --dim.
 * NULL: reported. */
Program *model_load(const Options *o, Arena *a, Diag *d);

/* Loads and runs the tail's passes.  NULL: reported. */
Program *model_compile(const Options *o, Tail tail, Arena *a, Diag *d);

/* The passes, with what --verify, --check-ir, --dump-ir, --dump-data and -v ask for. */
bool model_run_passes(const Options *o, Program *p, const char *const *pass, int n, Arena *a,
                      Diag *d);

double seconds_now(void);

/* -- npy.c ------------------------------------------------------------------------------- */

/* A tensor from a .npy file of version 1 or 2, little-endian, C order; its data is in `a`.
 * bfloat16 and float8 travel as uint16 and uint8 and are taken as `want` when sizes agree; give
 * -1 for no wish.  NULL: reported. */
EtcTensor *npy_read(Arena *a, const char *path, int want, Diag *d);

/* An --input argument: a .npy file, or value:JSON as a scalar value.  `like` (may be NULL) is
 * what the program expects: a number becomes a 0-d tensor where it wants one. */
bool input_read(Arena *a, const char *text, const EtcValue *like, EtcValue *out, Diag *d);

bool npy_write(const char *path, const EtcTensor *t, Diag *d);

/* -- shared by the commands ---------------------------------------------------------------- */

const char *json_text(Arena *a, const char *s); /* a JSON string with its quotes */

/* Maps a regular file read-only, for as long as the process lives.  False: reported. */
bool map_file(const char *path, const uint8_t **data, size_t *n, Diag *d);

/* Reports what runtime-lite says of a file; returns false. */
bool runtime_failed(const char *file, const EtcError *e, Diag *d);

/* -- commands: each returns after reporting to d ------------------------------------------- */

void command_compile(const Options *o, Arena *a, Diag *d);
void command_emit_c(const Options *o, Arena *a, Diag *d);
void command_run(const Options *o, Arena *a, Diag *d);
void command_check(const Options *o, Arena *a, Diag *d);
void command_inspect(const Options *o, Arena *a, Diag *d);
void command_opt(const Options *o, Arena *a, Diag *d);
void command_ops(const Options *o, Arena *a, Diag *d);

#endif
