/* options.c -- argv to Options: one table of commands, one of flags. */
#include "compiler/compiler.h"
#include <stddef.h>
#include <string.h>

enum {
    COMPILE = 1 << CMD_COMPILE,
    EMIT_C = 1 << CMD_EMIT_C,
    RUN = 1 << CMD_RUN,
    CHECKS = 1 << CMD_CHECK,
    INSPECT = 1 << CMD_INSPECT,
    OPT = 1 << CMD_OPT,
    OPS = 1 << CMD_OPS,
    BUILDS = COMPILE | EMIT_C,
    LOADS = BUILDS | RUN | CHECKS,
    ALL = LOADS | INSPECT | OPT | OPS
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
                 "run a .pte, or a model compiled on the fly"},
    [CMD_CHECK] = {"check", "MODEL", "etc check model.pt2",
                   "list everything that would stop a compile"},
    [CMD_INSPECT] = {"inspect", "FILE", "etc inspect model.pte",
                     "show methods, operators, sizes and plan of a .pte, .pt2 or .etir"},
    [CMD_OPT] = {"opt", "FILE.etir --passes=A,B", "etc opt --passes=dce,cse graph.etir",
                 "run passes on textual IR"},
    [CMD_OPS] = {"ops", "", "etc ops", "print the support matrix"},
};

typedef enum FlagKind { FLAG_BOOL, FLAG_TEXT, FLAG_LIST, FLAG_NEXT } FlagKind;

typedef struct Flag {
    const char *name;
    char letter;
    FlagKind kind;
    size_t at; /* in Options */
    int commands;
    const char *value, *help;
} Flag;

#define AT(member) offsetof(Options, member)

static const Flag flag_row[] = {
    {"output", 'o', FLAG_TEXT, AT(output), BUILDS | OPT, "FILE", "write here; - is stdout"},
    {"dim", 0, FLAG_LIST, AT(dims), LOADS, "NAME=LO..HI", "bound a symbolic size"},
    {"weights-dir", 0, FLAG_TEXT, AT(weights_dir), LOADS, "DIR", "where a model.json's weights lie"},
    {"backend", 0, FLAG_TEXT, AT(backend), COMPILE | CHECKS, "NAME,...", "who may take regions"},
    {"require-delegated", 0, FLAG_TEXT, AT(require_delegated), COMPILE, "PERCENT",
     "exit 5 when less of the work is delegated"},
    {"target", 0, FLAG_TEXT, AT(target), EMIT_C, "NAME", "generic"},
    {"math", 0, FLAG_TEXT, AT(math), EMIT_C, "KIND", "strict: the same bits on every CPU"},
    {"weights-as", 0, FLAG_TEXT, AT(weights_as), EMIT_C, "array|incbin", "how weights are stored"},
    {"main", 0, FLAG_BOOL, AT(main), EMIT_C, NULL, "also write OUT_main.c, a program to run it"},
    {"tail", 0, FLAG_TEXT, AT(tail), CHECKS | OPT, "pte|c", "what to check or rewrite for"},
    {"verify", 0, FLAG_BOOL, AT(verify), BUILDS | OPT, NULL,
     "evaluate before and after every pass and compare"},
    {"check-ir", 0, FLAG_BOOL, AT(check_ir), BUILDS | OPT, NULL,
     "print and parse the program after every pass"},
    {"dump-ir", 0, FLAG_TEXT, AT(dump_ir), BUILDS | OPT, "after:PASS|all",
     "print the program to stdout after a pass"},
    {"dump-data", 0, FLAG_TEXT, AT(dump_data), BUILDS | OPT, "FILE",
     "write the bytes that the compiler made"},
    {"data", 0, FLAG_TEXT, AT(data), LOADS | OPT, "FILE", "those bytes, for an .etir"},
    {"dry-run", 0, FLAG_BOOL, AT(dry_run), BUILDS, NULL, "do everything but write files"},
    {"depfile", 0, FLAG_BOOL, AT(depfile), BUILDS, NULL, "write OUT.d for make and ninja (-MD)"},
    {"passes", 0, FLAG_TEXT, AT(passes), OPT, "A,B,...", "the passes, in order"},
    {"list", 0, FLAG_BOOL, AT(list), OPT, NULL, "list all passes"},
    {"input", 0, FLAG_LIST, AT(inputs), RUN | BUILDS, "FILE.npy|value:JSON",
     "next input, in order (of compile: for --verify)"},
    {"next", 0, FLAG_NEXT, AT(inputs), RUN, NULL, "the inputs that follow are a further call"},
    {"output-dir", 0, FLAG_TEXT, AT(output_dir), RUN, "DIR", "write output_0.npy ... there"},
    {"method", 0, FLAG_TEXT, AT(method), RUN, "NAME", "the method to run (forward)"},
    {"json", 0, FLAG_BOOL, AT(json), ALL, NULL, "print the result as JSON to stdout"},
    {"quiet", 'q', FLAG_BOOL, AT(quiet), ALL, NULL, "print nothing on success"},
    {"verbose", 'v', FLAG_BOOL, AT(verbose), ALL, NULL, "print every stage with its time"},
};

enum { N_FLAGS = sizeof flag_row / sizeof *flag_row };

/* -- help -------------------------------------------------------------------------------- */

static void print_commands(FILE *out)
{
    fputs("example: etc compile model.pt2 -o model.pte\n\nusage: etc COMMAND ...\n\n", out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", command_row[i].name, command_row[i].help);
    fputs("\netc COMMAND --help says more; exit codes: 0 done, 1 the model or data is at fault,\n"
          "2 wrong usage, 3 a file cannot be read or written, 4 unsupported operator or dtype,\n"
          "5 a gate failed, 70 a bug of etc.\n", out);
}

static void print_help(Command c, FILE *out)
{
    fprintf(out, "example: %s\n\nusage: etc %s %s [flags]\n%s\n\n", command_row[c].example,
            command_row[c].name, command_row[c].use, command_row[c].help);
    for (int i = 0; i < N_FLAGS; i++) {
        const Flag *f = &flag_row[i];
        if (!(f->commands >> c & 1))
            continue;
        char name[64];
        snprintf(name, sizeof name, "--%s%s%s", f->name, f->value ? " " : "",
                 f->value ? f->value : "");
        fprintf(out, "  %c%c %-28s %s\n", f->letter ? '-' : ' ', f->letter ? f->letter : ' ', name,
                f->help);
    }
}

/* -- parsing ----------------------------------------------------------------------------- */

typedef struct Parser {
    Options *o;
    Arena *arena;
    FILE *err;
    char **argv;
    int argc, at;
} Parser;

static bool usage(const Parser *p, const char *what, const char *word, const char *near)
{
    fprintf(p->err, "etc: error: %s '%s'", what, word);
    fprintf(p->err, near ? "; did you mean '%s'?\n" : "\n", near);
    return false;
}

static const char *nearest_command(const char *word)
{
    const char *best = NULL;
    int least = 4;
    for (int i = 0; i < N_COMMANDS; i++) {
        int dist = text_distance(word, command_row[i].name, least);
        if (dist < least) {
            least = dist;
            best = command_row[i].name;
        }
    }
    return best;
}

static const char *nearest_flag(const Parser *p, const char *word)
{
    const Flag *best = NULL;
    int least = 4;
    for (int i = 0; i < N_FLAGS; i++) {
        int dist = text_distance(word, flag_row[i].name, least);
        if (flag_row[i].commands >> p->o->command & 1 && dist < least) {
            least = dist;
            best = &flag_row[i];
        }
    }
    return best ? arena_printf(p->arena, "--%s", best->name) : NULL;
}

static const Flag *find_flag(const Parser *p, const char *name, size_t len)
{
    for (int i = 0; i < N_FLAGS; i++) {
        const Flag *f = &flag_row[i];
        bool is_letter = len == 1 && f->letter && *name == f->letter;
        bool is_name = strlen(f->name) == len && !memcmp(f->name, name, len);
        if ((is_letter || is_name) && f->commands >> p->o->command & 1)
            return f;
    }
    return NULL;
}

static void push(const Parser *p, Strings *list, const char *item)
{
    PUSH(p->arena, list->item, list->n, item);
}

static bool set_flag(Parser *p, const Flag *f, const char *value)
{
    void *to = (char *)p->o + f->at;
    if (f->kind == FLAG_BOOL || f->kind == FLAG_NEXT) {
        if (value)
            return usage(p, "no value expected for", f->name, NULL);
        if (f->kind == FLAG_BOOL)
            *(bool *)to = true;
        else
            push(p, to, NULL);
        return true;
    }
    if (!value && ++p->at < p->argc)
        value = p->argv[p->at];
    if (!value)
        return usage(p, "a value is missing after", p->argv[p->at - 1], NULL);
    if (f->kind == FLAG_LIST)
        push(p, to, value);
    else
        *(const char **)to = value;
    return true;
}

static bool parse_flag(Parser *p, const char *word)
{
    bool is_long = word[1] == '-';
    const char *name = word + 1 + is_long;
    size_t len = strcspn(name, "=");
    if (!strcmp(word, "-MD"))
        return set_flag(p, find_flag(p, "depfile", 7), NULL);
    const Flag *f = is_long == (len > 1) ? find_flag(p, name, len) : NULL;
    if (!f)
        return usage(p, "unknown flag", word, nearest_flag(p, arena_str(p->arena, name, len)));
    return set_flag(p, f, name[len] ? name + len + 1 : NULL);
}

static bool parse_word(Parser *p, const char *word, bool only_names)
{
    if (!only_names && word[0] == '-' && word[1])
        return parse_flag(p, word);
    if (p->o->model)
        return usage(p, "one model at a time; unexpected", word, NULL);
    p->o->model = word;
    return true;
}

static bool is_complete(const Parser *p)
{
    const Options *o = p->o;
    bool needs_model = o->command != CMD_OPS && !o->list;
    if (needs_model && !o->model)
        return usage(p, "a model is missing; usage: etc", command_row[o->command].use, NULL);
    if ((1 << o->command) & BUILDS && !o->output && !o->dry_run)
        return usage(p, "where to? usage: etc", command_row[o->command].use, NULL);
    if (o->command == CMD_OPT && !o->passes && !o->list)
        return usage(p, "which passes? usage: etc opt", command_row[o->command].use, NULL);
    return true;
}

OptionsResult options_parse(Options *o, Arena *a, int argc, char **argv, FILE *out, FILE *err)
{
    Parser p = {.o = o, .arena = a, .err = err, .argv = argv, .argc = argc, .at = 2};
    const char *word = argc > 1 ? argv[1] : "--help";
    int command = 0;
    if (!strcmp(word, "--version")) {
        fputs("etc " ETC_VERSION "\n", out);
        return OPTIONS_DONE;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        print_commands(argc > 1 ? out : err);
        return argc > 1 ? OPTIONS_DONE : OPTIONS_BAD;
    }
    while (command < N_COMMANDS && strcmp(word, command_row[command].name) != 0)
        command++;
    if (command == N_COMMANDS) {
        usage(&p, "unknown command", word, nearest_command(word));
        return OPTIONS_BAD;
    }
    o->command = (Command)command;
    bool only_names = false;
    for (; p.at < argc; p.at++) {
        word = argv[p.at];
        if (!only_names && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
            print_help(o->command, out);
            return OPTIONS_DONE;
        }
        if (!only_names && !strcmp(word, "--"))
            only_names = true;
        else if (!parse_word(&p, word, only_names))
            return OPTIONS_BAD;
    }
    return is_complete(&p) ? OPTIONS_RUN : OPTIONS_BAD;
}
