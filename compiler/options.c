/* options.c -- reads argv into Options, with a table of commands and a table of flags. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/quantize.h"
#include <float.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COMPILE = 1 << CMD_COMPILE,
    EMIT_C = 1 << CMD_EMIT_C,
    RUN = 1 << CMD_RUN,
    BENCH = 1 << CMD_BENCH,
    DIFF = 1 << CMD_DIFF,
    CHECKS = 1 << CMD_CHECK,
    PARTITION = 1 << CMD_PARTITION,
    INSPECT = 1 << CMD_INSPECT,
    OPT = 1 << CMD_OPT,
    QUANTIZE = 1 << CMD_QUANTIZE,
    OPS = 1 << CMD_OPS,
    RUNTIME = 1 << CMD_RUNTIME,
    BATCH = 1 << CMD_BATCH,
    DOCTOR = 1 << CMD_DOCTOR,
    VERIFY = 1 << CMD_VERIFY,
    GATE = 1 << CMD_GATE,
    REFIT = 1 << CMD_REFIT,
    BUILDS = COMPILE | EMIT_C,
    READS = BUILDS | RUN | BENCH | DIFF | VERIFY | CHECKS | PARTITION | INSPECT | OPT | QUANTIZE,
    ALL = READS | OPS | RUNTIME | DOCTOR,
    EVERY = ALL | BATCH | GATE | REFIT,
    SAME = 1 << N_COMMANDS, /* the flag changes neither the bytes of an output nor its existence */
    OWN = SAME << 1         /* each of several models has its own value */
};

static const struct {
    const char *name, *use, *example, *help;
} command_row[N_COMMANDS] = {
    [CMD_COMPILE] = {"compile", "MODEL -o OUT.pte", "etc compile model.pt2 -o model.pte",
                     "compile a model to a .pte that the ExecuTorch runtime runs"},
    [CMD_EMIT_C] = {"emit-c", "MODEL -o OUT.c", "etc emit-c model.pt2 -o model.c --main",
                    "compile a model to C source that needs nothing but a C compiler"},
    [CMD_RUN] = {"run", "MODEL --input FILE.npy ...",
                 "etc run model.pte --input x.npy --output-dir out",
                 "run a .pte, or a model, which is compiled first"},
    [CMD_BENCH] = {"bench", "MODEL [--input FILE.npy ...]",
                   "etc bench model.pte --threads 2 --trace trace.json",
                   "time loading and running, and show where the time goes"},
    [CMD_DIFF] = {"diff", "A B [--input FILE.npy ...]",
                  "etc diff model.pt2 model.etir --input x.npy",
                  "compare two models node by node on the same inputs"},
    [CMD_CHECK] = {"check", "MODEL", "etc check model.pt2",
                   "list everything that would stop a compile"},
    [CMD_PARTITION] = {"partition", "MODEL --backend NAME,...",
                       "etc partition model.pt2 --backend xnnpack",
                       "show which backend takes which node, and why not"},
    [CMD_QUANTIZE] = {"quantize", "MODEL --recipe PRESET|FILE --calibrate DATA --statistics OUT",
                      "etc quantize model.pt2 --recipe int8 --calibrate samples --statistics s.txt",
                      "run samples and write the ranges of values"},
    [CMD_INSPECT] = {"inspect", "FILE | --etdump FILE.etdp [--map FILE.json]",
                     "etc inspect model.pte",
                     "show methods, operators, sizes and plan of a .pte, .pt2, .onnx or .etir"},
    [CMD_OPT] = {"opt", "MODEL --passes=A,B", "etc opt --passes=dce,cse graph.etir",
                 "run passes on textual IR"},
    [CMD_OPS] = {"ops", "[TEXT]", "etc ops conv",
                 "print which outputs support the operators whose names contain TEXT"},
    [CMD_RUNTIME] = {"runtime", "MODEL.pte ... -o DIR", "etc runtime model.pte -o runtime",
                     "write the sources of a runtime that has only what these .pte files need"},
    [CMD_BATCH] = {"batch", "LIST.yaml [-j N] [-o DIR]", "etc batch nightly.yaml -j 4 -o out",
                   "compile the models of a list that have changed"},
    [CMD_DOCTOR] = {"doctor", "FILE.pte [--runtime VERSION] [--manifest FILE]",
                    "etc doctor model.pte --runtime 1.2",
                    "list what a .pte needs from the runtime, and what a runtime would refuse"},
    [CMD_VERIFY] =
        {"verify", "FILE.pte|FILE.c --model MODEL [--calibrate DATA | --input FILE.npy ...]",
         "etc verify model.pte --model model.pt2 --calibrate samples",
         "run a finished file, and compare its outputs with those of the model in float"},
    [CMD_GATE] =
        {"gate",
         "NEW.pte --baseline OLD.json [--verified FILE.json] [--compiled FILE.json] [--runs N]",
         "etc gate model.pte --baseline model.json --tolerances gate.yaml",
         "fail if the size, memory, delegation, time or accuracy of a .pte got worse"},
    [CMD_REFIT] = {"refit", "OLD.pte --weights NEW.pt2|NEW.safetensors -o NEW.pte",
                   "etc refit old.pte --weights new.safetensors -o new.pte",
                   "put new weights into a .pte and keep its plan"},
    [CMD_KEY] = {"key", "[compile|emit-c] MODEL ...", "etc key compile model.pt2 --backend xnnpack",
                 "print a digest of everything that the output of a command depends on"},
};

typedef enum FlagKind {
    FLAG_BOOL,
    FLAG_TEXT,
    FLAG_IN,  /* the name of a file to read, or of a folder with such files */
    FLAG_OUT, /* the name of a file to write */
    FLAG_LIST,
    FLAG_NEXT,
    FLAG_MODEL /* begins the flags of one model of several */
} FlagKind;

typedef struct Parser {
    Options *o;
    Arena *arena;
    Diag *diag;
    char **argv;
    int argc, at;
} Parser;

typedef struct Flag Flag;

/* Checks that a value is well-formed, as far as argv alone shows it, and reports it if not. */
typedef bool CheckFn(const Parser *p, const Flag *f, const char *value);
static CheckFn any, is_amount, is_backends, is_bank, is_bind, is_choice, is_dim, is_drop, is_dump,
    is_method, is_bundle, is_passes, is_percent, is_report, is_runs, is_target, is_threads,
    is_tolerance, is_version, is_runtime;

struct Flag {
    const char *name;
    char letter;
    FlagKind kind;
    size_t at;    /* the offset of the member in Options */
    int commands; /* a bit for each command that takes the flag; also SAME and OWN */
    CheckFn *check;
    const char *value; /* the text for the value in the help; for is_choice, the choices */
    const char *help;
};

#define AT(member) offsetof(Options, member)

static const Flag flag_row[] = {
    {"output", 'o', FLAG_OUT, AT(output), BUILDS | OPT | REFIT | SAME, any, "FILE",
     "write here; - is stdout"},
    {"output", 'o', FLAG_TEXT, AT(output), RUNTIME, any, "DIR", "write into this folder"},
    {"output", 'o', FLAG_TEXT, AT(output), BATCH, any, "DIR",
     "the folder for outputs (that of the list)"},
    {"jobs", 'j', FLAG_TEXT, AT(jobs), BATCH, is_threads, "N",
     "how many processes run at once (one per core)"},
    {"junit", 0, FLAG_OUT, AT(junit), BATCH, any, "FILE.xml", "write the results as JUnit XML"},
    {"report", 0, FLAG_OUT, AT(report), BATCH, is_report, "FILE.html",
     "write the results as a page, with links to the pages of models"},
    {"ninja", 0, FLAG_OUT, AT(ninja), BATCH, any, "FILE",
     "compile nothing; write a file for ninja that does"},
    {"runtime-dir", 0, FLAG_TEXT, AT(runtime_dir), RUNTIME, any, "DIR",
     "where runtime-lite's sources lie (beside etc)"},
    {"method", 0, FLAG_LIST, AT(methods), COMPILE, is_method, "NAME=FILE",
     "one of several methods, in place of MODEL"},
    {"dim", 0, FLAG_LIST, AT(dims), READS | OWN, is_dim, "NAME|INPUT.AXIS=LO..HI",
     "give a symbolic size its range, or its value"},
    {"bind", 0, FLAG_LIST, AT(binds), READS | OWN, is_bind, "INPUT=NUMBER|FILE.npy",
     "make an input of an ONNX file a constant"},
    {"weights-dir", 0, FLAG_IN, AT(weights_dir), READS | OWN, any, "DIR",
     "the folder with the data of an unpacked model or an .onnx"},
    {"weights", 0, FLAG_IN, AT(weights), READS | OWN, any, "FILE",
     "the .pt2 or folder with the weights of an .etir"},
    {"weights", 0, FLAG_IN, AT(weights), REFIT, any, "FILE",
     "the same model with other weights, or a .safetensors"},
    {"bundle", 0, FLAG_TEXT, AT(bundle), COMPILE, is_bundle, "INPUTS[,OUTPUTS]",
     "write a .bpte: the .pte with sample inputs and expected outputs"},
    {"borrow-inputs", 0, FLAG_BOOL, AT(borrow_inputs), COMPILE, any, NULL,
     "read inputs where the caller has them, instead of copying them into planned memory"},
    {"refittable", 0, FLAG_BOOL, AT(refittable), COMPILE, any, NULL,
     "store in the file what `etc refit` needs"},
    {"data", 0, FLAG_IN, AT(data), READS | OWN, any, "FILE",
     "the file of --dump-data that belongs to an .etir"},
    {"ops", 0, FLAG_LIST, AT(ops), ALL | OWN, any, "FILE.yaml",
     "describe your own operators, which the model calls"},
    {"backend", 0, FLAG_TEXT, AT(backend), COMPILE | CHECKS | PARTITION | BENCH | QUANTIZE,
     is_backends, "NAME,...",
     "offer the nodes to these backends, in this order: "
#define BACKEND(name) #name ", "
#include "partition/backends.def"
#undef BACKEND
     "or portable"},
    {"recipe", 0, FLAG_IN, AT(recipe), BUILDS | RUN | BENCH | CHECKS | QUANTIZE | OWN, any, "PRESET|FILE.yaml",
     "quantize as this recipe says"},
    {"baseline", 0, FLAG_TEXT, AT(baseline), GATE, any, "OLD.json",
     "the numbers of an earlier file"},
    {"write-baseline", 0, FLAG_BOOL, AT(write_baseline), GATE, any, NULL,
     "write the numbers of this file there instead"},
    {"verified", 0, FLAG_IN, AT(verified), GATE, any, "FILE.json",
     "what `etc verify --json` printed for this file"},
    {"compiled", 0, FLAG_IN, AT(compiled), GATE, any, "FILE.json",
     "what `etc compile --json` printed for this file"},
    {"tolerances", 0, FLAG_IN, AT(tolerances), GATE, any, "FILE.yaml",
     "how much worse each number may get (0)"},
    {"model", 0, FLAG_TEXT, AT(other), VERIFY, any, "MODEL",
     "the model from which the file was made"},
    {"calibrate", 0, FLAG_IN, AT(calibrate), VERIFY, any, "DATA", "sample inputs to run both on"},
    {"calibrate", 0, FLAG_IN, AT(calibrate), BUILDS | RUN | BENCH | CHECKS | QUANTIZE | OWN, any, "DATA",
     "sample inputs, which give the ranges of values"},
    {"statistics", 0, FLAG_IN, AT(statistics), BUILDS | RUN | BENCH | CHECKS | OWN, any, "FILE",
     "the ranges of values, as `etc quantize` wrote them"},
    {"statistics", 0, FLAG_OUT, AT(statistics), QUANTIZE, any, "FILE",
     "write the ranges here, for compile, emit-c and check"},
    {"objective", 0, FLAG_TEXT, AT(objective), BUILDS | RUN | BENCH | CHECKS | QUANTIZE | OWN, is_choice,
     "size|latency", "quantize everything possible (size), or only what gets faster (latency)"},
    {"io", 0, FLAG_TEXT, AT(io), BUILDS | RUN | BENCH | CHECKS | QUANTIZE | OWN, is_choice, "float|int8|uint8",
     "the type of inputs and outputs that are quantized (float)"},
    {"fast-calibrate", 0, FLAG_BOOL, AT(fast_calibrate), BUILDS | RUN | BENCH | CHECKS | QUANTIZE | OWN, any,
     NULL, "calibrate with OpenBLAS; the output depends on the machine and says so"},
    {"max-drop", 0, FLAG_TEXT, AT(max_drop), QUANTIZE | BUILDS | RUN | BENCH | OWN, is_drop,
     "METRIC[:OUTPUT]=VALUE", "keep as few layers in float as this bound allows: top1, cosine, sqnr or max_abs_error"},
    {"max-drop", 0, FLAG_TEXT, AT(max_drop), VERIFY, is_drop, "METRIC[:OUTPUT]=VALUE",
     "exit 5 if the outputs are worse, in place of tolerances: top1, cosine, sqnr or max_abs_error"},
    {"labels", 0, FLAG_IN, AT(labels), QUANTIZE | BUILDS | RUN | BENCH | VERIFY | OWN, any, "FILE.npy",
     "the index of the right class for each sample, for top1"},
    {"delegate", 0, FLAG_TEXT, AT(delegate), COMPILE | CHECKS | PARTITION | BENCH, is_choice,
     "worth|all", "delegate what gets faster by it (worth), or all that a backend takes"},
    {"require-delegated", 0, FLAG_TEXT, AT(require_delegated), COMPILE | PARTITION, is_percent,
     "PERCENT", "exit 5 if less of the work is delegated"},
    {"simulate", 0, FLAG_BOOL, AT(simulate), PARTITION, any, NULL,
     "compare no backend, each backend alone, and all of them"},
    {"target-runtime", 0, FLAG_TEXT, AT(target_runtime), COMPILE | CHECKS | PARTITION | QUANTIZE,
     is_runtime, "VERSION", "use only what this version of ExecuTorch has; lite: all that runtime-lite has"},
    {"runtime", 0, FLAG_TEXT, AT(target_runtime), DOCTOR, is_version, "VERSION",
     "the version of ExecuTorch that will run it (" RUNTIME_NEWEST ")"},
    {"manifest", 0, FLAG_LIST, AT(manifests), DOCTOR, any, "FILE",
     "what your build of the runtime has: selected_operators.yaml, or a list of names"},
    {"target", 0, FLAG_TEXT, AT(target), EMIT_C | RUN | BENCH | QUANTIZE, is_target, "NAME",
     "the CPU of C: generic (any), host (this one), or a name such as x86-64-v3"},
    {"math", 0, FLAG_TEXT, AT(math), EMIT_C | RUN, is_choice, "exact|bf16|fast",
     "bf16: products round their operands to bfloat16; fast: Winograd's transforms where they pay"},
    {"bank", 0, FLAG_LIST, AT(banks), EMIT_C, is_bank, "NAME=SIZE[:const[,section=NAME]]",
     "a memory of the device, the fastest first, for values or (const) constants"},
    {"share-io", 0, FLAG_BOOL, AT(share_io), EMIT_C | BENCH | OWN, any, NULL,
     "put inputs and outputs into the arena, where other values may overwrite them"},
    {"weights-as", 0, FLAG_TEXT, AT(weights_as), EMIT_C, is_choice, "array|incbin",
     "how weights are stored"},
    {"parallel", 0, FLAG_TEXT, AT(parallel), EMIT_C, is_threads, "N",
     "split the work into up to N parts, which threads of the caller may run at once"},
    {"main", 0, FLAG_BOOL, AT(main), EMIT_C, any, NULL, "also write OUT_main.c, a program"},
    {"freestanding", 0, FLAG_BOOL, AT(freestanding), EMIT_C, any, NULL,
     "write C that needs only mem* functions and the compiler's library"},
    {"model", 0, FLAG_MODEL, AT(part), EMIT_C, is_method, "NAME=FILE",
     "one of several models in OUT.c, in place of MODEL; its own flags follow"},
    {"build-files", 0, FLAG_TEXT, AT(build_files), EMIT_C, is_choice, "cmake|meson|zephyr|arduino",
     "also write the files that this build system needs"},
    {"weights-b", 0, FLAG_IN, AT(other_weights), DIFF, any, "FILE", "--weights of B alone"},
    {"data-b", 0, FLAG_IN, AT(other_data), DIFF, any, "FILE", "--data of B alone"},
    {"atol", 0, FLAG_TEXT, AT(atol), DIFF, is_tolerance, "NUMBER",
     "elements may differ by this much (1e-5)"},
    {"rtol", 0, FLAG_TEXT, AT(rtol), DIFF, is_tolerance, "NUMBER",
     "plus this fraction of A's element (1e-4)"},
    {"atol", 0, FLAG_TEXT, AT(atol), VERIFY, is_tolerance, "NUMBER",
     "elements may differ by this much (1e-4)"},
    {"rtol", 0, FLAG_TEXT, AT(rtol), VERIFY, is_tolerance, "NUMBER",
     "plus this fraction of the model's element (1e-3)"},
    {"all", 0, FLAG_BOOL, AT(all), DIFF, any, NULL, "list every pair, not only those that differ"},
    {"all", 0, FLAG_BOOL, AT(all), BENCH, any, NULL, "list all rows, in the order of execution"},
    {"runs", 0, FLAG_TEXT, AT(runs), BENCH, is_runs, "N",
     "how many runs are timed and profiled (20)"},
    {"runs", 0, FLAG_TEXT, AT(runs), GATE, is_runs, "N",
     "run the file N times, and compare the median"},
    {"warmup", 0, FLAG_TEXT, AT(warmup), BENCH, is_runs, "N",
     "how many untimed runs follow the first one (3)"},
    {"trace", 0, FLAG_OUT, AT(trace), BENCH, any, "FILE.json",
     "write a run for chrome://tracing or Perfetto"},
    {"tail", 0, FLAG_TEXT, AT(tail), CHECKS | OPT | DIFF | QUANTIZE, is_choice, "pte|c",
     "check or rewrite for a .pte, or for C (pte)"},
    {"verify", 0, FLAG_BOOL, AT(verify), BUILDS | OPT, any, NULL,
     "evaluate before and after every pass, and compare"},
    {"check-ir", 0, FLAG_BOOL, AT(check_ir), BUILDS | OPT, any, NULL,
     "verify, print and parse the program after every pass"},
    {"dump-ir", 0, FLAG_TEXT, AT(dump_ir), BUILDS | OPT | SAME, is_dump, "after:PASS|all",
     "print the program to stdout after a pass"},
    {"dump-data", 0, FLAG_OUT, AT(dump_data), BUILDS | OPT, any, "FILE",
     "write the constants that are in no model file"},
    {"dry-run", 0, FLAG_BOOL, AT(dry_run), BUILDS | REFIT | SAME, any, NULL,
     "do everything but write files"},
    {"report", 0, FLAG_OUT, AT(report), BUILDS, is_report, "FILE.html|FILE.svg",
     "draw the memory plan; a page also shows layers, backends and quantization"},
    {"report", 0, FLAG_OUT, AT(report), QUANTIZE, is_report, "FILE.html|FILE.json",
     "write how much accuracy each layer costs"},
    {"debug-map", 0, FLAG_OUT, AT(debug_map), COMPILE, any, "FILE.json",
     "write the node and source line of each instruction"},
    {"etdump", 0, FLAG_OUT, AT(etdump), RUN, any, "FILE.etdp",
     "write how long each instruction took, for ExecuTorch's tools"},
    {"etdump", 0, FLAG_IN, AT(etdump), INSPECT, any, "FILE.etdp",
     "print the profile in this file, in place of MODEL"},
    {"map", 0, FLAG_IN, AT(map), INSPECT, any, "FILE.json",
     "the file that --debug-map wrote for the .pte that ran"},
    {"method", 0, FLAG_TEXT, AT(method), INSPECT, any, "NAME",
     "the method that ran, if the map has several"},
    {"depfile", 0, FLAG_BOOL, AT(depfile), BUILDS, any, NULL,
     "write OUT.d for make and ninja (-MD)"},
    {"passes", 0, FLAG_TEXT, AT(passes), OPT, is_passes, "A,B,...", "the passes, in order"},
    {"list", 0, FLAG_BOOL, AT(list), OPT, any, NULL, "list all passes"},
    {"input", 0, FLAG_LIST, AT(inputs), RUN | BENCH | DIFF | VERIFY | BUILDS | SAME | OWN, any,
     "FILE.npy|value:JSON", "the next input, in order (of compile and emit-c: for --verify)"},
    {"next", 0, FLAG_NEXT, AT(inputs), RUN | DIFF | VERIFY, any, NULL,
     "start another call of the same program"},
    {"output-dir", 0, FLAG_TEXT, AT(output_dir), RUN, any, "DIR", "write output_0.npy ... there"},
    {"method", 0, FLAG_TEXT, AT(method), RUN | BENCH | DIFF | VERIFY | GATE, any, "NAME",
     "the method to run (forward)"},
    {"threads", 0, FLAG_TEXT, AT(threads), RUN | BENCH | VERIFY | GATE, is_threads, "N",
     "how many threads a delegate may use (1)"},
    {"threads", 0, FLAG_TEXT, AT(threads), BUILDS | CHECKS | QUANTIZE | SAME, is_threads, "N",
     "how many threads run samples (one per core); the result is the same"},
    {"memory-limit", 0, FLAG_TEXT, AT(memory_limit), RUN | BENCH | VERIFY, is_amount, "BYTES",
     "the most memory that the program may take, for example 4G (the machine's)"},
    {"work-limit", 0, FLAG_TEXT, AT(work_limit), RUN | BENCH | VERIFY, is_amount, "N",
     "the most element operations per call, for example 2G (10T)"},
    {"error-format", 0, FLAG_TEXT, AT(error_format), EVERY | SAME, is_choice, MESSAGE_FORMATS,
     "the format of messages on stderr (human)"},
    {"json", 0, FLAG_BOOL, AT(json), EVERY | SAME, any, NULL, "print the result as JSON to stdout"},
    {"quiet", 'q', FLAG_BOOL, AT(quiet), EVERY | SAME, any, NULL, "no message on success"},
    {"verbose", 'v', FLAG_BOOL, AT(verbose), ALL | REFIT | SAME, any, NULL,
     "print every stage with its time"},
};

enum { N_FLAGS = sizeof flag_row / sizeof *flag_row };

/* -- help -------------------------------------------------------------------------------- */

static void print_commands(FILE *out)
{
    fputs("example: etc compile model.pt2 -o model.pte\n\nusage: etc COMMAND ...\n\n", out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", command_row[i].name, command_row[i].help);
    fputs("\netc COMMAND --help lists its flags; exit codes: 0 done, 1 the model or data is at fault,\n"
          "2 wrong usage, 3 a file cannot be read or written, 4 unsupported operator or dtype,\n"
          "5 a gate failed, 70 a bug of etc.\n",
          out);
}

static void print_help(Command c, FILE *out)
{
    fprintf(out, "example: %s\n\nusage: etc %s %s [flags]\n%s\n\n", command_row[c].example,
            command_row[c].name, command_row[c].use, command_row[c].help);
    if (c == CMD_KEY)
        fputs("  takes the flags of `etc compile`, or of `etc emit-c` if that is the command\n", out);
    for (int i = 0; i < N_FLAGS; i++) {
        const Flag *f = &flag_row[i];
        if (!(f->commands >> c & 1))
            continue;
        char name[64];
        snprintf(name, sizeof name, "--%s%s%s", f->name, f->value ? " " : "",
                 f->value ? f->value : "");
        const char *between = strlen(name) > 28 ? "\n                                  " : " ";
        fprintf(out, "  %c%c %-28s%s%s\n", f->letter ? '-' : ' ', f->letter ? f->letter : ' ', name,
                between, f->help);
    }
}

/* -- mistakes ---------------------------------------------------------------------------- */

#define usage(p, ...) diag_fault((p)->diag, FAULT_USAGE, (Loc){0}, __VA_ARGS__)

static const char *did_you_mean(const Parser *p, const Near *n, const char *prefix)
{
    return n->best ? arena_printf(p->arena, "; did you mean '%s%s'?", prefix, n->best) : "";
}

/* -- values ------------------------------------------------------------------------------ */

static bool any(const Parser *p, const Flag *f, const char *value)
{
    (void)p, (void)f, (void)value;
    return true;
}

/* Cuts the first item off a list and returns it; NULL: the list is empty. */
static const char *next_item(Arena *a, const char **list, const char *separator)
{
    if (!**list)
        return NULL;
    size_t n = strcspn(*list, separator);
    const char *item = arena_str(a, *list, n);
    *list += n + ((*list)[n] != '\0');
    return item;
}

static bool is_amount(const Parser *p, const Flag *f, const char *value)
{
    int64_t n;
    return (parse_amount(value, 1024, &n) && n > 0) ||
           usage(p,
                 "--%s expects a number from 1 on, optionally with K, M, G or T after it, not '%s'",
                 f->name, value);
}

/* Checks the names of backends; "portable" stands for none. */
static bool is_backends(const Parser *p, const Flag *f, const char *value)
{
    const char *item;
    while ((item = next_item(p->arena, &value, ","))) {
        Near n = near_word(item);
        near_consider(&n, "portable");
        for (const Backend *const *b = all_backends; *b; b++)
            near_consider(&n, (*b)->name);
        if (strcmp(item, "portable") != 0 && !backend_find(item, strlen(item)))
            return usage(p, "--%s: there is no backend '%s'%s", f->name, item,
                         did_you_mean(p, &n, ""));
    }
    return true;
}

static bool is_choice(const Parser *p, const Flag *f, const char *value)
{
    const char *list = f->value, *item;
    Near n = near_word(value);
    while ((item = next_item(p->arena, &list, "|"))) {
        if (!strcmp(item, value))
            return true;
        near_consider(&n, item);
    }
    return usage(p, "--%s expects %s, not '%s'%s", f->name, f->value, value, did_you_mean(p, &n, ""));
}

static bool is_target(const Parser *p, const Flag *f, const char *value)
{
    Near n = near_word(value);
    const char *all = "host";
    near_consider(&n, all);
    for (int i = 0; i < n_targets; i++) {
        near_consider(&n, target_row[i].name);
        all = arena_printf(p->arena, "%s|%s", target_row[i].name, all);
    }
    return !strcmp(value, "host") || target_find(value) ||
           usage(p, "--%s expects %s, not '%s'%s", f->name, all, value, did_you_mean(p, &n, ""));
}

static bool is_dim(const Parser *p, const Flag *f, const char *value)
{
    const char *s = strchr(value, '=');
    int64_t lo, hi;
    (void)f;
    return (s && s > value && parse_range(s + 1, &lo, &hi)) ||
           usage(p, "--dim %s is not NAME=LO..HI with 0 <= LO <= HI", value);
}

static bool is_bank(const Parser *p, const Flag *f, const char *value)
{
    MemoryBank b;
    bool is_const;
    const char *why;
    return bank_parse(value, p->arena, &b, &is_const, &why) ||
           usage(p, "--%s %s: %s", f->name, value, why);
}

static bool is_bind(const Parser *p, const Flag *f, const char *value)
{
    const char *s = strchr(value, '=');
    (void)f;
    return (s && s > value && s[1]) || usage(p, "--bind %s is not INPUT=VALUE", value);
}

static bool is_pass(const Parser *p, const Flag *f, const char *name)
{
    Near n = near_word(name);
    for (int i = 0; i < n_passes; i++) {
        if (!strcmp(name, pass_info[i].name))
            return true;
        near_consider(&n, pass_info[i].name);
    }
    return usage(p, "--%s: there is no pass '%s'%s (etc opt --list lists them)", f->name, name,
                 did_you_mean(p, &n, ""));
}

static bool is_passes(const Parser *p, const Flag *f, const char *value)
{
    const char *item;
    bool ok = *value || usage(p, "--passes expects names");
    while ((item = next_item(p->arena, &value, ",")))
        ok = is_pass(p, f, item) && ok;
    return ok;
}

static bool is_dump(const Parser *p, const Flag *f, const char *value)
{
    if (!strcmp(value, "all"))
        return true;
    if (strncmp(value, "after:", 6) != 0)
        return usage(p, "--dump-ir expects after:PASS or all, not '%s'", value);
    return is_pass(p, f, value + 6);
}

/* Checks the name of a report: it ends in .html, or in the other ending that the command writes. */
static bool is_report(const Parser *p, const Flag *f, const char *value)
{
    const char *other = strchr(f->value, '|'), *end = other ? strrchr(other, '.') : ".html";
    return ends_in(value, ".html") || ends_in(value, end) ||
           usage(p, "--report expects a name that ends in .html%s%s, not '%s'", other ? " or " : "",
                 other ? end : "", value);
}

static bool is_drop(const Parser *p, const Flag *f, const char *value)
{
    Recipe r = {.metric = METRIC_NONE};
    return recipe_set_budget(value, &r) ||
           usage(p,
                 "--%s expects top1=, cosine=, sqnr= or max_abs_error= and a number from 0 on, "
                 "not '%s'",
                 f->name, value);
}

static bool is_method(const Parser *p, const Flag *f, const char *value)
{
    size_t n = strcspn(value, "=");
    return (n && value[n] && value[n + 1]) ||
           usage(p, "--%s %s is not NAME=FILE", f->name, value);
}

/* Checks that neither name of INPUTS[,OUTPUTS] is empty. */
static bool is_bundle(const Parser *p, const Flag *f, const char *value)
{
    const char *comma = strchr(value, ',');
    return !comma || (comma > value && comma[1]) ||
           usage(p, "--%s expects %s, not '%s'", f->name, f->value, value);
}

static bool is_percent(const Parser *p, const Flag *f, const char *value)
{
    char *end;
    double percent = strtod(value, &end);
    return (end != value && !*end && percent >= 0 && percent <= 100) ||
           usage(p, "--%s expects a percentage from 0 to 100, not '%s'", f->name, value);
}

static bool is_threads(const Parser *p, const Flag *f, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);
    return (end != value && !*end && n >= 1 && n <= 1024) ||
           usage(p, "--%s expects a number from 1 to 1024, not '%s'", f->name, value);
}

/* Checks a number of runs.  Only --warmup may be 0. */
static bool is_runs(const Parser *p, const Flag *f, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10), least = f->at == AT(warmup) ? 0 : 1;
    return (end != value && !*end && n >= least && n <= 100000) ||
           usage(p, "--%s expects a number from %ld to 100000, not '%s'", f->name, least, value);
}

static bool is_tolerance(const Parser *p, const Flag *f, const char *value)
{
    char *end;
    double v = strtod(value, &end);
    return (end != value && !*end && v >= 0 && v <= DBL_MAX) ||
           usage(p, "--%s expects a number from 0 on, not '%s'", f->name, value);
}

static bool is_version(const Parser *p, const Flag *f, const char *value)
{
    int version = runtime_version(value);
    return (version > 0 && version != RUNTIME_LITE) ||
           usage(p, "--%s expects a version from " RUNTIME_FIRST " on, like 1.2 or 1.2.0, not '%s'", f->name, value);
}

static bool is_runtime(const Parser *p, const Flag *f, const char *value)
{
    return runtime_version(value) == RUNTIME_LITE || is_version(p, f, value);
}

/* -- parsing ----------------------------------------------------------------------------- */

static const char *near_command(const Parser *p, const char *word)
{
    Near n = near_word(word);
    for (int i = 0; i < N_COMMANDS; i++)
        near_consider(&n, command_row[i].name);
    return did_you_mean(p, &n, "");
}

static bool takes(const Parser *p, const Flag *f)
{
    return f->commands >> p->o->command & 1;
}

static const char *near_flag(const Parser *p, const char *word)
{
    Near n = near_word(word);
    for (int i = 0; i < N_FLAGS; i++)
        if (takes(p, &flag_row[i]))
            near_consider(&n, flag_row[i].name);
    return did_you_mean(p, &n, "--");
}

/* Returns whether a flag has this name, or without is_long, this letter. */
static bool is_named(const Flag *f, const char *name, bool is_long)
{
    return is_long ? !strcmp(f->name, name) : *name && f->letter == *name && !name[1];
}

static const Flag *find_flag(const Parser *p, const char *name, bool is_long)
{
    for (int i = 0; i < N_FLAGS; i++)
        if (is_named(&flag_row[i], name, is_long) && takes(p, &flag_row[i]))
            return &flag_row[i];
    return NULL;
}

static bool unknown_flag(const Parser *p, const char *word, const char *name, bool is_long)
{
    for (int i = 0; i < N_FLAGS; i++)
        if (is_named(&flag_row[i], name, is_long))
            return usage(p, "etc %s takes no flag '%s'", command_row[p->o->command].name, word);
    return usage(p, "unknown flag '%s'%s", word, near_flag(p, name));
}

static void push(const Parser *p, Strings *list, const char *item)
{
    PUSH(p->arena, list->item, list->n, item);
}

/* Returns where the value of a flag is stored: in the options of the last model that has begun, if
 * each model has its own value, else in those of the command. */
static void *place_of(const Parser *p, const Flag *f)
{
    Options *o = p->o;
    return (char *)(f->commands & OWN && o->part ? &o->part[o->n_parts - 1] : o) + f->at;
}

/* Gives a model its own copies of the lists for all models, so that they can grow independently. */
static void copy_lists(const Parser *p, Options *o)
{
    for (int i = 0; i < N_FLAGS; i++) {
        const Flag *f = &flag_row[i];
        if (f->kind != FLAG_LIST || !(f->commands & OWN) || !takes(p, f))
            continue;
        Strings *list = (void *)((char *)o + f->at), all = *list;
        *list = (Strings){0};
        for (int k = 0; k < all.n; k++)
            push(p, list, all.item[k]);
    }
}

/* Starts the model of --model NAME=FILE. */
static void begin_model(const Parser *p, const char *value)
{
    Options *o = p->o, part = *o;
    size_t n = strcspn(value, "=");
    part.name = arena_str(p->arena, value, n);
    part.model = value + n + 1;
    part.part = NULL;
    copy_lists(p, &part);
    PUSH(p->arena, o->part, o->n_parts, part);
}

/* Gives a model the values of the flags for all models, which may also follow it on the command
 * line. */
static void finish_model(const Parser *p, Options *part)
{
    const Options was = *part;
    *part = *p->o;
    part->name = was.name;
    part->model = was.model;
    part->part = NULL;
    for (int i = 0; i < N_FLAGS; i++) {
        const Flag *f = &flag_row[i];
        size_t bytes = f->kind == FLAG_BOOL   ? sizeof(bool)
                       : f->kind == FLAG_LIST ? sizeof(Strings)
                                              : sizeof(char *);
        if (f->commands & OWN && takes(p, f))
            memcpy((char *)part + f->at, (const char *)&was + f->at, bytes);
    }
}

static bool set_switch(const Parser *p, const Flag *f, const char *value)
{
    void *to = place_of(p, f);
    if (value)
        return usage(p, "--%s takes no value", f->name);
    if (f->kind == FLAG_BOOL)
        *(bool *)to = true;
    else
        push(p, to, NULL);
    return true;
}

/* Returns the word after the flag.  NULL: there is none, or it looks like a flag itself; such a
 * value has to be written as --name=-value. */
static const char *next_word(Parser *p)
{
    const char *word = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
    if (!word || (word[0] == '-' && word[1]))
        return NULL;
    p->at++;
    return word;
}

static bool set_flag(Parser *p, const Flag *f, const char *value)
{
    void *to = place_of(p, f);
    if (f->kind == FLAG_BOOL || f->kind == FLAG_NEXT)
        return set_switch(p, f, value);
    if (!value)
        value = next_word(p);
    if (!value || !*value)
        return usage(p, "--%s expects a value: --%s=%s", f->name, f->name, f->value);
    if (!f->check(p, f, value))
        return false;
    if (f->kind == FLAG_MODEL)
        begin_model(p, value);
    else if (f->kind == FLAG_LIST)
        push(p, to, value);
    else
        *(const char **)to = value;
    return true;
}

static bool parse_flag(Parser *p, const char *word)
{
    bool is_long = word[1] == '-';
    const char *rest = word + 1 + is_long;
    size_t len = strcspn(rest, "=");
    const char *name = arena_str(p->arena, rest, len);
    if (!strcmp(word, "-MD"))
        name = "depfile", is_long = true;
    if (!is_long && rest[0] && strspn(rest + 1, "0123456789") + 1 == strlen(rest) && rest[1]) {
        len = 0; /* the word is like "-j4" */
        name = arena_str(p->arena, rest, 1);
    }
    const Flag *f = find_flag(p, name, is_long);
    const char *value = !len || rest[len] ? rest + len + 1 : NULL;
    return f ? set_flag(p, f, value) : unknown_flag(p, word, name, is_long);
}

static bool parse_word(Parser *p, const char *word, bool only_names)
{
    if (!only_names && word[0] == '-' && word[1])
        return parse_flag(p, word);
    if (!*word)
        return usage(p, "an empty word where a name is expected");
    if (p->o->command == CMD_DIFF && p->o->model && !p->o->other) {
        p->o->other = word;
        return true;
    }
    if (p->o->command == CMD_RUNTIME)
        push(p, &p->o->models, word);
    else if (p->o->model)
        return usage(p, "one at a time, not '%s' and '%s'", p->o->model, word);
    p->o->model = word;
    return true;
}

/* -- the whole command line -------------------------------------------------------------- */

/* Records the files that flags of a kind name as files to read or to write. */
static bool name_files(const Parser *p, FlagKind kind, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < N_FLAGS && ok; i++) {
        const Flag *f = &flag_row[i];
        const char *name = NULL;
        if (f->kind == kind && takes(p, f))
            name = *(const char **)(void *)((char *)p->o + f->at);
        if (name && !(f->at == AT(recipe) && recipe_is_preset(name)))
            ok = kind == FLAG_IN ? file_will_be_read(p->o->files, name, d)
                                 : file_will_be_written(p->o->files, name, d);
    }
    return ok;
}

static bool name_inputs(const Parser *p, Diag *d)
{
    Options *o = p->o;
    Files *f = o->files;
    const char *model = o->model && !strcmp(o->model, "-") ? "/dev/stdin" : o->model;
    bool ok = (!model || file_will_be_read(f, model, d)) &&
              (!o->other || file_will_be_read(f, o->other, d));
    for (int i = 0; i < o->models.n && ok; i++)
        ok = file_will_be_read(f, o->models.item[i], d);
    for (int i = 0; i < o->methods.n && ok; i++)
        ok = file_will_be_read(f, strchr(o->methods.item[i], '=') + 1, d);
    for (int i = 0; i < o->ops.n && ok; i++)
        ok = file_will_be_read(f, o->ops.item[i], d);
    for (int i = 0; i < o->manifests.n && ok; i++)
        ok = file_will_be_read(f, o->manifests.item[i], d);
    for (int i = 0; i < o->inputs.n && ok; i++)
        ok = !o->inputs.item[i] || file_will_be_read(f, o->inputs.item[i], d);
    if (ok && o->bundle)
        ok = file_will_be_read(f, bundle_inputs(o, p->arena), d) &&
             (!bundle_outputs(o) || file_will_be_read(f, bundle_outputs(o), d));
    return ok && name_files(p, FLAG_IN, d);
}

/* Checks that no file is both read and written, as far as the command line alone shows it.  Other
 * cases are found later. */
static bool files_differ(const Parser *p)
{
    Options *o = p->o;
    o->files = files_new(p->arena);
    if (o->command == CMD_OPS)
        return true;
    bool ok = true;
    for (int i = 0; i < n_models(o) && ok; i++) {
        Parser of_model = *p;
        of_model.o = o->part ? &o->part[i] : o;
        of_model.o->files = o->files;
        ok = name_inputs(&of_model, p->diag);
    }
    ok = ok && name_files(p, FLAG_OUT, p->diag);
    if (ok && o->command == CMD_QUANTIZE)
        ok = file_will_be_written(o->files, checkpoint_path(o, p->arena), p->diag);
    if (ok && o->depfile && o->output)
        ok = file_will_be_written(o->files, depfile_path(o, p->arena), p->diag);
    return ok;
}

static bool parse_words(Parser *p, FILE *out, bool *helped)
{
    bool only_names = false;
    for (; p->at < p->argc; p->at++) {
        const char *word = p->argv[p->at];
        if (!only_names && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
            print_help(p->o->wants_key ? CMD_KEY : p->o->command, out);
            *helped = true;
            return true;
        }
        if (!only_names && !strcmp(word, "--"))
            only_names = true;
        else if (!parse_word(p, word, only_names))
            return false;
    }
    for (int i = 0; i < p->o->n_parts; i++)
        finish_model(p, &p->o->part[i]);
    const Command c = p->o->wants_key ? CMD_KEY : p->o->command;
    return options_agree(p->o, command_row[c].name, command_row[c].use,
                         p->arena, p->diag) &&
           files_differ(p);
}

static int find_command(const char *word)
{
    int i = 0;
    while (i < N_COMMANDS && strcmp(word, command_row[i].name) != 0)
        i++;
    return i;
}

/* Sets the command whose key is wanted: the one that the next word names, or else compile. */
static void find_keyed(Parser *p)
{
    int command = p->at < p->argc ? find_command(p->argv[p->at]) : N_COMMANDS;
    bool is_named = command == CMD_COMPILE || command == CMD_EMIT_C;
    p->o->wants_key = true;
    p->o->command = is_named ? (Command)command : CMD_COMPILE;
    p->at += is_named;
}

/* -- keys -------------------------------------------------------------------------------- */

typedef struct KeyNames {
    const Options *o;
    Arena *arena;
    FILE *out;
    Strings seen; /* the names of files, which appear in the key as numbers */
} KeyNames;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *file_number(KeyNames *k, const char *name)
{
    int i = 0;
    while (i < k->seen.n && strcmp(k->seen.item[i], name) != 0)
        i++;
    if (i == k->seen.n)
        PUSH(k->arena, k->seen.item, k->seen.n, name);
    return arena_printf(k->arena, "#%d", i);
}

/* Returns NAME=FILE with the number of the file instead of its name. */
static const char *named_file(KeyNames *k, const char *value)
{
    size_t n = strcspn(value, "=");
    return arena_printf(k->arena, "%s=%s", arena_str(k->arena, value, n),
                        file_number(k, value + n + 1));
}

static const char *bundle_numbers(KeyNames *k)
{
    const char *in = file_number(k, bundle_inputs(k->o, k->arena)), *out = bundle_outputs(k->o);
    return out ? arena_printf(k->arena, "%s,%s", in, file_number(k, out)) : in;
}

static const char *key_value(KeyNames *k, const Flag *f, const char *value)
{
    const Target *target = f->at == AT(target) ? c_target(k->o) : NULL;
    if (target)
        return target->name;
    if (f->kind == FLAG_OUT)
        return base_name(value);
    if (f->at == AT(bundle))
        return bundle_numbers(k);
    if (f->at == AT(methods) || (f->at == AT(binds) && ends_in(value, ".npy")))
        return named_file(k, value);
    bool is_file = f->kind == FLAG_IN || f->at == AT(ops);
    return is_file && !(f->at == AT(recipe) && recipe_is_preset(value)) ? file_number(k, value)
                                                                        : value;
}

static void put_flag(KeyNames *k, const Flag *f)
{
    const void *at = (const char *)k->o + f->at;
    const Strings one = {(const char **)(uintptr_t)at, 1}, *all = f->kind == FLAG_LIST ? at : &one;
    if (f->kind == FLAG_BOOL) {
        if (*(const bool *)at)
            fprintf(k->out, "%s\n", f->name);
        return;
    }
    for (int i = 0; i < all->n; i++)
        if (all->item[i])
            fprintf(k->out, "%s %s\n", f->name,
                    escape(k->arena, ESCAPE_IR, key_value(k, f, all->item[i])));
}

/* Prints the names and paths on which an output depends.  The functions of emitted C are named
 * after the file. */
static void put_names(KeyNames *k)
{
    const Options *o = k->o;
    bool is_c = o->command == CMD_EMIT_C;
    if (o->model && (is_c || o->report))
        fprintf(k->out, "model %s\n", escape(k->arena, ESCAPE_IR, base_name(o->model)));
    if (o->output && (is_c || o->report || o->depfile))
        fprintf(k->out, "output %s\n",
                escape(k->arena, ESCAPE_IR, o->depfile ? o->output : base_name(o->output)));
    if (o->depfile)
        for (int i = 0; i < o->files->n; i++)
            if (o->files->file[i]->is_opened)
                fprintf(k->out, "path %s\n", escape(k->arena, ESCAPE_IR, o->files->file[i]->path));
}

bool options_writes(Command c, const char *flag)
{
    for (int i = 0; i < N_FLAGS; i++)
        if (flag_row[i].kind == FLAG_OUT && flag_row[i].commands >> c & 1 &&
            !strcmp(flag_row[i].name, flag))
            return true;
    return false;
}

void options_for_key(const Options *o, Arena *a, FILE *out)
{
    KeyNames k = {.o = o, .arena = a, .out = out};
    Parser p = {.o = (Options *)(uintptr_t)o};
    fprintf(out, "command %s\n", command_row[o->command].name);
    put_names(&k);
    for (int i = 0; i < N_FLAGS; i++)
        if (!(flag_row[i].commands & SAME) && takes(&p, &flag_row[i]))
            put_flag(&k, &flag_row[i]);
}

OptionsResult options_parse(Options *o, Arena *a, int argc, char **argv, FILE *out, Diag *d)
{
    Parser p = {.o = o, .arena = a, .diag = d, .argv = argv, .argc = argc, .at = 2};
    const char *word = argc > 1 ? argv[1] : "";
    bool helped = false;
    if (argc < 2) {
        print_commands(d->out);
        return OPTIONS_BAD;
    }
    if (!strcmp(word, "--version")) {
        fputs("etc " ETC_VERSION "\n", out);
        return OPTIONS_DONE;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        print_commands(out);
        return OPTIONS_DONE;
    }
    int command = find_command(word);
    if (command == N_COMMANDS) {
        usage(&p, "unknown command '%s'%s", word, near_command(&p, word));
        return OPTIONS_BAD;
    }
    o->command = (Command)command;
    o->argv = argv;
    if (o->command == CMD_KEY)
        find_keyed(&p);
    if (!parse_words(&p, out, &helped))
        return OPTIONS_BAD;
    if (o->error_format && strcmp(o->error_format, "human") != 0)
        o->quiet = true; /* nothing else may be printed between the messages */
    return helped ? OPTIONS_DONE : OPTIONS_RUN;
}
