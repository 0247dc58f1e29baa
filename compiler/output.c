/* output.c -- the files that a run writes, which appear all together or not at all. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "compiler/compiler.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_file(const Options *o, OutBatch *b, const OutFile *f, const char *path, Diag *d)
{
    return file_take(o->files, path, d) && out_add(b, f, path, d);
}

bool output_bytes(const Options *o, OutBatch *b, const void *bytes, int64_t n, const char *path,
                  Diag *d)
{
    OutPiece *piece = NEW(b->arena, OutPiece, 1);
    *piece = (OutPiece){.data = bytes, .n = n};
    return output_file(o, b, &(OutFile){piece, 1}, path, d);
}

FILE *text_open(Text *t)
{
    *t = (Text){0};
    return t->f = open_memstream(&t->data, &t->n);
}

const char *text_close(Text *t, Arena *a)
{
    bool ok = t->f && fclose(t->f) == 0;
    const char *text = ok ? arena_str(a, t->data, t->n) : NULL;
    free(t->data);
    return text;
}

bool output_text(const Options *o, OutBatch *b, Text *t, const char *path, Diag *d)
{
    const char *text = text_close(t, b->arena);
    return text ? output_bytes(o, b, text, (int64_t)t->n, path, d)
                : diag_io(d, (Loc){.file = path}, "no memory to write it");
}

bool text_write(Text *t, const char *path, Arena *a, Diag *d)
{
    const char *text = text_close(t, a);
    OutPiece piece = {.data = text, .n = (int64_t)t->n};
    return text ? out_write(&(OutFile){&piece, 1}, path, d)
                : diag_io(d, (Loc){.file = path}, "no memory to write it");
}

bool output_folder(const char *path, Strings *made, Arena *a, Diag *d)
{
    struct stat st;
    if (mkdir(path, 0777) == 0) {
        PUSH(a, made->item, made->n, path);
        return true;
    }
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return true;
    return diag_io(d, (Loc){.file = path}, "cannot be made a folder: %s", strerror(errno));
}

void remove_folders(Strings *made)
{
    while (made->n > 0)
        rmdir(made->item[--made->n]); /* a folder that is not empty stays */
}

bool finish_files(const Options *o, OutBatch *b, Diag *d)
{
    files_check(o->files, d);
    if (fflush(stdout) || ferror(stdout))
        diag_io(d, (Loc){0}, "standard output cannot be written");
    if (!diag_errors(d))
        return out_commit(b, d);
    out_discard(b);
    return false;
}
