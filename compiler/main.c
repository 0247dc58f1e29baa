/* main.c -- `etc`: one command, one exit code. */
#include "compiler/compiler.h"
#include <malloc.h>
#include <signal.h>

static bool (*const command[N_COMMANDS])(const Options *o, Arena *a, Diag *d) = {
    [CMD_COMPILE] = command_compile, [CMD_EMIT_C] = command_emit_c,
    [CMD_RUN] = command_run,         [CMD_BENCH] = command_bench,
    [CMD_DIFF] = command_diff,
    [CMD_CHECK] = command_check,     [CMD_INSPECT] = command_inspect,
    [CMD_OPT] = command_opt,         [CMD_PARTITION] = command_partition,
    [CMD_QUANTIZE] = command_quantize, [CMD_OPS] = command_ops,
    [CMD_RUNTIME] = command_runtime, [CMD_BATCH] = command_batch,
    [CMD_DOCTOR] = command_doctor,   [CMD_VERIFY] = command_verify,
    [CMD_GATE] = command_gate,       [CMD_REFIT] = command_refit,
};

/* Makes malloc keep freed memory and use it again.  In a small model, new pages from the system
 * cost more than all work on their contents. */
static void keep_memory(void)
{
#ifdef M_TOP_PAD
    enum { MIB = 1 << 20 };
    mallopt(M_MMAP_THRESHOLD, 16 * MIB);
    mallopt(M_TRIM_THRESHOLD, 1024 * MIB);
    mallopt(M_TOP_PAD, MIB);
#endif
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe becomes a write error, which is reported below */
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit becomes a write error too */
    catch_shrunk_files();
    keep_memory();
    Arena *a = arena_new();
    Options o = {0};
    Messages m;
    messages_start(&m, argc, argv);
    Diag *d = &m.diag;
    OptionsResult r = options_parse(&o, a, argc, argv, stdout, d);
    if (r == OPTIONS_RUN) {
        if (!(o.wants_key ? command_key : command[o.command])(&o, a, d))
            diag_missing(d, 0, (Loc){.file = o.model}, "the command", argv[1]);
        files_check(o.files, d);
    }
    if ((fflush(stdout) || ferror(stdout)) && !d->n[FAULT_IO])
        diag_io(d, (Loc){0}, "standard output cannot be written");
    arena_free(a);
    messages_end(&m);
    return r == OPTIONS_BAD ? 2 : diag_exit_code(d);
}
