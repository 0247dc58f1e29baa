/* batch.c -- `etc batch`: compiles the models of a list, each in a process of its own.
 *
 * A process that crashes or runs out of memory does not stop the others.  Each process writes into
 * two files in memory.  Standard output takes the result and a record of what was read and written;
 * standard error takes a line of JSON for each message.  The signals that would end the batch, and
 * SIGCHLD, are blocked and waited for, so there is no handler.
 */
#define _GNU_SOURCE
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "compiler/import/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Job {
    BatchEntry *entry; /* NULL: the job is free */
    pid_t pid;
    int out, err; /* the descriptors of two files in memory */
    double start;
} Job;

typedef struct Run {
    const Options *o;
    Batch *batch;
    Arena *arena;
    Diag *diag;
    const char *state;
    Job *job;
    int n_jobs, next, n_printed; /* next: the next entry to start; n_printed: the next to print */
    double saved;           /* the time when the state was saved */
    sigset_t watched, before;
    int signal; /* the signal that ends the batch; 0: none */
} Run;

/* -- a process of its own ---------------------------------------------------------------------- */

/* Sets the signal mask, standard streams and memory limit of the new process.  It also gets
 * SIGTERM when the batch is killed. */
static void set_up_process(const Run *r, const Job *j)
{
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int null = open("/dev/null", O_RDONLY);
    if (getppid() == 1 || null < 0 || dup2(null, 0) < 0 || dup2(j->out, 1) < 0 ||
        dup2(j->err, 2) < 0)
        _exit(70);
    if (j->entry->memory) {
        rlim_t most = (rlim_t)j->entry->memory;
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
    }
}

static bool make_new(const Run *r, BatchEntry *e, Arena *a, Diag *d)
{
    Options *o = &e->options;
    BatchRecord record = {.name = e->name, .words = e->words_digest};
    o->json = o->quiet = true;
    if (!o->threads && r->n_jobs > 1)
        o->threads = "1";
    if (!(o->command == CMD_EMIT_C ? command_emit_c : command_compile)(o, a, d))
        return diag_missing(d, 0, (Loc){.file = o->model}, "the command", e->words.item[1]);
    if (!record_make(o, e->folder, &record, a, d))
        return false;
    record_put(&record, a, stdout);
    return true;
}

/* Runs an entry in its own process and exits.  If only times and places of files have changed,
 * it prints the known record and compiles nothing. */
static _Noreturn void work(const Run *r, const Job *j)
{
    set_up_process(r, j);
    BatchEntry *e = j->entry;
    Arena *a = arena_new();
    Diag d = {.out = stderr, .is_json = true};
    if (e->known && record_is_same(e->known, e->folder, a))
        record_put(e->known, a, stdout);
    else
        make_new(r, e, a, &d);
    if (fflush(stdout) && !diag_errors(&d))
        diag_io(&d, (Loc){0}, "the result cannot be written: %s", strerror(errno));
    _exit(diag_exit_code(&d));
}

static bool start(Run *r, Job *j, BatchEntry *e)
{
    assert(!j->entry && e->status == BATCH_WAITING);
    *j = (Job){.entry = e, .start = seconds_now(), .out = memfd_create("etc-out", MFD_CLOEXEC),
               .err = memfd_create("etc-err", MFD_CLOEXEC)};
    fflush(stdout);
    j->pid = j->out >= 0 && j->err >= 0 ? fork() : -1;
    if (!j->pid)
        work(r, j);
    if (j->pid > 0)
        return true;
    *j = (Job){0};
    return diag_io(r->diag, e->loc, "no process can be started: %s", strerror(errno));
}

/* -- the result of a process ------------------------------------------------------------------- */

/* Returns the text of a file, in the arena, and closes the file.  *n is 0 if the file is larger
 * than 64 MiB or cannot be read. */
static const char *take_text(Run *r, int fd, size_t *n)
{
    enum { MOST = 64 << 20 };
    struct stat st;
    *n = fstat(fd, &st) || st.st_size > MOST ? 0 : (size_t)st.st_size;
    char *text = NEW(r->arena, char, *n + 1);
    if (*n && !file_read(fd, "the output of a process", text, (int64_t)*n, 0, r->diag))
        *n = 0;
    close(fd);
    return text;
}

/* Reads the result of the command, if it ran, and the record after it, and sets the entry's
 * status.  Does nothing if one of them is wrong. */
static void take_result(Run *r, BatchEntry *e, const char *text, size_t n)
{
    JsonDoc doc;
    Diag quiet = {0};
    BatchRecord *record = NEW(r->arena, BatchRecord, 1);
    const char *line = memchr(text, '\n', n);
    size_t first = line ? (size_t)(line + 1 - text) : 0;
    int64_t bytes = 0, arena = 0;
    double delegated = NAN, predicted = NAN, cosine = NAN;
    bool is_new = first && json_parse(r->arena, "", (const uint8_t *)text, first, &quiet, &doc);
    if (is_new && (!json_int(json_get(doc.root, "bytes"), &bytes) ||
                   !json_int(json_get(doc.root, "arena"), &arena)))
        return;
    if (is_new) {
        delegated = json_float_at(doc.root, "delegated_percent");
        predicted = json_float_at(doc.root, "predicted_seconds");
        cosine = json_float_at(doc.root, "cosine");
    }
    if (n == first ||
        !json_parse(r->arena, "", (const uint8_t *)text + first, n - first, &quiet, &doc) ||
        !record_read(doc.root, r->arena, record))
        return;
    if (is_new) {
        record->bytes = bytes;
        record->arena = arena;
        record->delegated = delegated;
        record->predicted = predicted;
        record->cosine = cosine;
    }
    e->status = is_new ? BATCH_WRITTEN : BATCH_UNCHANGED;
    e->known = record;
}

static void add_message(Run *r, BatchEntry *e, const char *text)
{
    Message m = {MESSAGE_BUG, FAULT_BUG, {.file = e->options.model}, text};
    PUSH(r->arena, e->message, e->n_messages, m);
    e->code = 70;
}

static void judge(Run *r, BatchEntry *e, int status)
{
    e->code = WIFEXITED(status) ? WEXITSTATUS(status) : 70;
    if (e->code && e->status != BATCH_CRASHED)
        e->status = BATCH_FAILED;
    if (WIFSIGNALED(status)) {
        e->status = BATCH_CRASHED;
        add_message(r, e, arena_printf(r->arena, "the process was ended by signal %d, %s",
                                       WTERMSIG(status), strsignal(WTERMSIG(status))));
    } else if (!e->code && e->status != BATCH_WRITTEN && e->status != BATCH_UNCHANGED) {
        e->status = BATCH_FAILED;
        add_message(r, e, "the process left no result");
    }
    if (e->code)
        e->known = NULL;
}

static void finish(Run *r, Job *j, int status)
{
    size_t n_out, n_err;
    BatchEntry *e = j->entry;
    assert(e && j->pid > 0);
    e->seconds = seconds_now() - j->start;
    const char *out = take_text(r, j->out, &n_out), *err = take_text(r, j->err, &n_err);
    e->message = messages_read(err, n_err, r->arena, &e->n_messages);
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        take_result(r, e, out, n_out);
    judge(r, e, status);
    j->entry = NULL;
}

/* -- printing ---------------------------------------------------------------------------------- */

static void count_fault(Run *r, int code)
{
    static const struct {
        int code;
        Fault fault;
    } row[] = {{0, N_FAULTS},          {1, FAULT_MODEL}, {2, FAULT_USAGE}, {3, FAULT_IO},
               {4, FAULT_UNSUPPORTED}, {5, FAULT_GATE}};
    Fault f = FAULT_BUG;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        f = row[i].code == code ? row[i].fault : f;
    if (f < N_FAULTS)
        r->diag->n[f]++;
}

static void print_messages(Run *r, const BatchEntry *e)
{
    Diag *d = r->diag;
    if (e->code && !d->is_json)
        say(d->out, "%s: failed, exit %d\n", e->name, e->code);
    for (int i = 0; i < e->n_messages; i++)
        (d->is_json ? message_put_json : message_put)(d->out, &e->message[i]);
    count_fault(r, e->code);
}

/* Prints the entries that are done in the order of the list, each as soon as all entries before
 * it are done. */
static void print_done(Run *r)
{
    const Batch *b = r->batch;
    assert(r->n_printed <= r->next && r->next <= b->n);
    for (; r->n_printed < b->n && b->entry[r->n_printed].status != BATCH_WAITING; r->n_printed++) {
        batch_put_line(&b->entry[r->n_printed], r->arena, stdout);
        print_messages(r, &b->entry[r->n_printed]);
    }
    fflush(stdout);
}

/* -- the loop ---------------------------------------------------------------------------------- */

static void watch_signals(Run *r)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction is;
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&r->watched);
    sigaddset(&r->watched, SIGCHLD);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (!sigaction(ending[i], NULL, &is) && is.sa_handler == SIG_DFL)
            sigaddset(&r->watched, ending[i]);
    sigprocmask(SIG_BLOCK, &r->watched, &r->before);
}

/* Handles the processes that have ended.  Returns whether there were any. */
static bool reap(Run *r)
{
    bool any = false;
    int status;
    for (int i = 0; i < r->n_jobs; i++)
        if (r->job[i].entry && waitpid(r->job[i].pid, &status, WNOHANG) == r->job[i].pid) {
            finish(r, &r->job[i], status);
            any = true;
        }
    return any;
}

static int n_running(const Run *r)
{
    int n = 0;
    for (int i = 0; i < r->n_jobs; i++)
        n += r->job[i].entry != NULL;
    return n;
}

/* Returns the next entry that needs a process; NULL: there is none.  An entry whose files are
 * untouched needs no process and is marked as unchanged. */
static BatchEntry *next_entry(Run *r)
{
    while (r->next < r->batch->n) {
        BatchEntry *e = &r->batch->entry[r->next++];
        if (!e->known || !record_is_untouched(e->known, e->folder, r->arena))
            return e;
        e->status = BATCH_UNCHANGED;
    }
    return NULL;
}

static bool start_more(Run *r)
{
    for (int i = 0; i < r->n_jobs; i++) {
        BatchEntry *e = r->job[i].entry ? NULL : next_entry(r);
        if (e && !start(r, &r->job[i], e)) {
            e->status = BATCH_FAILED;
            e->code = 3;
            return false;
        }
    }
    return true;
}

/* Saves the state, at most once a second unless `now` is set, so that little is lost when the
 * batch is killed. */
static void save(Run *r, bool now)
{
    double t = seconds_now();
    if (!now && t - r->saved < 1)
        return;
    r->saved = t;
    if (!state_write(r->state, r->batch, r->diag))
        r->saved = t + 1e9; /* the error is reported only once */
}

static void stop_all(Run *r)
{
    int status;
    for (int i = 0; i < r->n_jobs; i++)
        if (r->job[i].entry)
            kill(r->job[i].pid, SIGTERM);
    for (int i = 0; i < r->n_jobs; i++)
        if (r->job[i].entry && waitpid(r->job[i].pid, &status, 0) == r->job[i].pid) {
            close(r->job[i].out);
            close(r->job[i].err);
            r->job[i].entry->known = NULL;
        }
}

static void run_all(Run *r)
{
    bool ok = true;
    while ((ok = ok && start_more(r)), print_done(r), n_running(r)) {
        int got = sigwaitinfo(&r->watched, NULL);
        if (got > 0 && got != SIGCHLD) {
            r->signal = got;
            break;
        }
        if (reap(r))
            save(r, false);
    }
    if (r->signal)
        stop_all(r);
}

/* Ends the process as the signal would have ended it. */
static void end_by_signal(const Run *r)
{
    fflush(stdout);
    signal(r->signal, SIG_DFL);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    raise(r->signal);
}

/* -- preparing the entries --------------------------------------------------------------------- */

/* Claims the files that emit-c may write beside OUT.c. */
static bool claim_beside(const BatchEntry *e, Files *files, Arena *a, Diag *d)
{
    static const char *const suffix[] = {".h", "_main.c", "_weights.S", "_weights.S.bin"};
    size_t n = strlen(e->path) - 2;
    bool ok = true;
    for (size_t i = 0; e->command == CMD_EMIT_C && ok && i < sizeof suffix / sizeof *suffix; i++)
        ok = file_will_be_written(
            files, arena_join(a, arena_str(a, e->path, n), suffix[i]), d);
    return ok;
}

/* Claims the files that an entry reads and writes, so that no entry writes a file that another
 * reads or writes, even under another name. */
static bool claim_files(const BatchEntry *e, Files *files, Arena *a, Diag *d)
{
    const Files *own = e->options.files;
    bool ok = true;
    for (int i = 0; i < own->n && ok; i++)
        ok = own->file[i]->is_read ? file_will_be_read(files, own->file[i]->path, d)
                                   : file_will_be_written(files, own->file[i]->path, d);
    return ok && claim_beside(e, files, a, d);
}

/* Makes the folders between the output folder and a path beneath it. */
static bool make_folders(const BatchEntry *e, const char *path, Strings *made, Arena *a, Diag *d)
{
    size_t n = strlen(e->folder);
    bool ok = true;
    if (!path || strncmp(path, e->folder, n) != 0)
        return true;
    for (const char *s = path + n; ok && (s = strchr(s, '/')); s++)
        ok = output_folder(arena_str(a, path, (size_t)(s - path)), made, a, d);
    return ok;
}

static void note_entry(const BatchEntry *e, Diag *d)
{
    diag_note(d, "in the entry '%s', %s:%d", e->name, e->loc.file, e->loc.line);
}

/* Sets the digest of an entry's words and output, without the output folder, and of the CPU that
 * --target stands for on this machine. */
static bool digest_words(BatchEntry *e, Arena *a)
{
    Text t;
    const Target *target = e->command == CMD_EMIT_C ? c_target(&e->options) : NULL;
    if (text_open(&t)) {
        for (int i = 0; i < e->plain.n; i++)
            fprintf(t.f, "%s\n", escape(a, ESCAPE_IR, e->plain.item[i]));
        fprintf(t.f, "%s\n%s\n", escape(a, ESCAPE_IR, e->output), target ? target->name : "");
    }
    const char *text = text_close(&t, a);
    if (text)
        e->words_digest = digest_bytes(text, strlen(text));
    return text != NULL;
}

/* Reads the flags of an entry as a command line. */
static bool parse_entry(BatchEntry *e, Arena *a, Diag *d)
{
    const char *const output[] = {"-o", e->path};
    char **argv = NEW(a, char *, e->words.n + 3);
    int argc = 0;
    for (int i = 0; i < e->words.n; i++) {
        for (int k = 0; i == 2 && k < 2; k++)
            argv[argc++] = (char *)(uintptr_t)output[k];
        argv[argc++] = (char *)(uintptr_t)e->words.item[i];
    }
    return options_parse(&e->options, a, argc, argv, stderr, d) == OPTIONS_RUN &&
           (digest_words(e, a) || diag_io(d, e->loc, "no memory for its words"));
}

static bool prepare(Batch *b, Files *files, Strings *made, Arena *a, Diag *d)
{
    bool ok = true;
    for (int k = 0; k < 2 * b->n; k++) { /* all folders first: an entry may read what another writes there */
        BatchEntry *e = &b->entry[k % b->n];
        bool is = k < b->n ? make_folders(e, e->path, made, a, d)
                           : parse_entry(e, a, d) && make_folders(e, e->options.report, made, a, d) &&
                                 claim_files(e, files, a, d);
        if (!is)
            note_entry(e, d);
        ok = ok && is;
    }
    return ok;
}

/* Returns the real path of a folder with a slash at its end.  Returns NULL if it cannot be
 * resolved, which is reported. */
static const char *full_path(const char *path, Arena *a, Diag *d)
{
    char *real = realpath(path, NULL);
    const char *full = real ? arena_join(a, real, "/") : NULL;
    free(real);
    if (!full)
        diag_io(d, (Loc){.file = path}, "cannot be used: %s", strerror(errno));
    return full;
}

static const char *folder_of(const char *path, Arena *a)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_str(a, path, (size_t)(slash + 1 - path)) : "./";
}

static int n_jobs(const Options *o)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return o->jobs ? atoi(o->jobs) : cores;
}

/* Returns the absolute path of a path that is relative to the current folder.  NULL and "-" stay.
 */
static const char *from_here(const char *path, Arena *a, Diag *d)
{
    const char *here = path && *path != '/' && strcmp(path, "-") ? full_path(".", a, d) : "";
    return path && here ? arena_join(a, here, path) : path;
}

static bool go(Run *r, const char *junit, const char *page)
{
    Batch *b = r->batch;
    double start = seconds_now();
    state_read(r->state, b, r->arena, r->diag);
    r->job = NEW(r->arena, Job, r->n_jobs);
    r->saved = start;
    watch_signals(r);
    run_all(r);
    save(r, true);
    if (r->signal)
        end_by_signal(r);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    b->seconds = seconds_now() - start;
    return batch_report(b, junit, page, !r->o->quiet, r->arena, r->diag) && !diag_errors(r->diag);
}

bool command_batch(const Options *o, Arena *a, Diag *d)
{
    Batch b = {.list = o->model};
    Strings made = {0};
    const char *slash = strrchr(o->model, '/'), *base = slash ? slash + 1 : o->model;
    const char *folder = o->output ? o->output : folder_of(o->model, a);
    const char *junit = from_here(o->junit, a, d), *ninja = from_here(o->ninja, a, d),
               *page = from_here(o->report, a, d);
    if (!output_folder(folder, &made, a, d) || !(folder = full_path(folder, a, d)))
        return false;
    if (chdir(folder_of(o->model, a)))
        return file_unreadable(o->model, d);
    Run r = {.o = o, .batch = &b, .arena = a, .diag = d, .n_jobs = n_jobs(o),
             .state = arena_printf(a, "%s.etc-batch-%s.json", folder, base)};
    const char *const own[] = {r.state, junit, ninja, page};
    bool ok = batch_read(o->files, base, folder, a, &b, d);
    for (size_t i = 0; i < sizeof own / sizeof *own && ok; i++)
        ok = !own[i] || file_take(o->files, own[i], d);
    ok = ok && prepare(&b, o->files, &made, a, d) &&
         (ninja ? batch_ninja(&b, ninja, a, d) : go(&r, junit, page));
    if (!ok && !r.next)
        remove_folders(&made);
    return ok;
}
