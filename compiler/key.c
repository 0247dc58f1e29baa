/* key.c -- `etc key`: one digest of everything that a compile depends on.
 *
 * The command reads the model and all other files as a compile reads them, so the key covers the
 * files that a compile opens, whether a flag, a folder or an ONNX file names them.  It covers
 * their contents, in the order in which they are opened.  It covers all flags, except those that
 * the table of flags marks as SAME, and the sources of etc as a whole. */
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include "compiler/quantize.h"
#include "compiler/etc_sources.h"
#include <string.h>

/* Returns the name of a file within the folder of samples, or within those of a bundle, or "".  The
 * key covers these names, because they decide which sample belongs to which input, and which output
 * to which sample.  A folder may be written with a final slash. */
static const char *name_of_sample(const Options *o, const char *path, Arena *a)
{
    const char *folder[] = {o->calibrate, o->bundle ? bundle_inputs(o, a) : NULL,
                            o->bundle ? bundle_outputs(o) : NULL};
    for (int i = 0; i < 3; i++) {
        size_t n = folder[i] ? strlen(folder[i]) : 0;
        if (n && !strncmp(path, folder[i], n) && (path[n] == '/' || folder[i][n - 1] == '/'))
            return path + n + (path[n] == '/');
    }
    return "";
}

/* Returns whether the file is an input of --verify.  Such files do not change an output. */
static bool is_input(const Options *o, const char *path)
{
    for (int i = 0; i < o->inputs.n; i++)
        if (o->inputs.item[i] && !strcmp(o->inputs.item[i], path))
            return true;
    return false;
}

/* Adds the digest of a file that was read.  Fails if the file has changed since then. */
static bool add_file(const Options *o, const File *file, ContentKey *k, Arena *a, Diag *d)
{
    const File was = *file;
    KeyFile f = {.path = was.path, .counts = !is_input(o, was.path)};
    if (!digest_file(o->files, was.path, &f.digest, &f.file, d))
        return false;
    if (was.size != f.file->size || was.seconds != f.file->seconds ||
        was.nanoseconds != f.file->nanoseconds || was.inode != f.file->inode)
        return file_changed(was.path, d);
    PUSH(a, k->file, k->n_files, f);
    return true;
}

static bool put_library(FILE *f, Arena *a, Diag *d)
{
    const Blas *blas = blas_open(a, d);
    if (blas)
        fprintf(f, "library %s\n", escape(a, ESCAPE_IR, blas_name(blas)));
    return blas != NULL;
}

static bool put_key(const Options *o, ContentKey *k, FILE *f, Arena *a, Diag *d)
{
    fprintf(f, "etc " ETC_SOURCES "\n");
    options_for_key(o, a, f);
    if (o->fast_calibrate && !put_library(f, a, d))
        return false;
    for (int i = 0; i < k->n_files; i++)
        if (k->file[i].counts)
            fprintf(f, "file %s %s\n", k->file[i].digest.hex,
                    escape(a, ESCAPE_IR, name_of_sample(o, k->file[i].path, a)));
    return true;
}

bool key_of(const Options *o, Arena *a, ContentKey *k, Diag *d)
{
    Text t;
    bool ok = true;
    int n = o->files->n;
    *k = (ContentKey){.text = ""};
    for (int i = 0; i < n && ok; i++)
        if (o->files->file[i]->is_opened)
            ok = add_file(o, o->files->file[i], k, a, d);
    if (!ok)
        return false;
    ok = text_open(&t) && put_key(o, k, t.f, a, d);
    k->text = text_close(&t, a);
    if (!k->text)
        return diag_io(d, (Loc){0}, "no memory for a key");
    k->digest = digest_bytes(k->text, strlen(k->text));
    return ok;
}

static void print_json(const Options *o, const ContentKey *k, Arena *a)
{
    printf("{\"schema\": 1, \"model\": %s, \"key\": \"%s\", \"sources\": \"" ETC_SOURCES
           "\", \"files\": [",
           o->model ? json_text(a, o->model) : "null", k->digest.hex);
    for (int i = 0, n = 0; i < k->n_files; i++)
        if (k->file[i].counts)
            printf("%s{\"path\": %s, \"digest\": \"%s\"}", comma(n++),
                   json_text(a, k->file[i].path), k->file[i].digest.hex);
    puts("]}");
}

/* Opens the file of --labels, which a build opens only when it starts trials. */
static bool open_labels(const Options *o, Diag *d)
{
    const uint8_t *data;
    size_t n;
    return !o->labels || file_map(o->files, o->labels, &data, &n, d);
}

bool command_key(const Options *o, Arena *a, Diag *d)
{
    ContentKey k;
    const Program *p = model_prepare(o, o->command == CMD_EMIT_C ? &tail_c : &tail_pte, a, d);
    if (p)
        quant_finish(p);
    Bundle bundle;
    if (!p || !open_labels(o, d) || (o->bundle && !bundle_make(o, a, &bundle, d)) || !key_of(o, a, &k, d))
        return false;
    if (o->verbose)
        say_lines(stderr, k.text, a);
    if (o->json)
        print_json(o, &k, a);
    else
        puts(k.digest.hex);
    return true;
}
