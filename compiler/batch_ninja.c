/* batch_ninja.c -- writes a list as a file for ninja. */
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include <string.h>
#include <sys/stat.h>

/* Writes s with ninja's escapes: '$' is escaped in a value, and blanks and colons also in a
 * path. */
static void put_value(FILE *f, const char *s, bool is_path)
{
    for (; *s; s++) {
        if (*s == '$' || (is_path && (*s == ' ' || *s == ':')))
            putc('$', f);
        putc(*s, f);
    }
}

/* Writes a word that is quoted for the shell and escaped for a value of ninja's. */
static void put_word(FILE *f, const char *s)
{
    fputs(" '", f);
    for (; *s; s++)
        if (*s == '\'')
            fputs("'\\''", f);
        else
            fprintf(f, *s == '$' ? "$%c" : "%c", *s);
    putc('\'', f);
}

static bool has_line_end(const BatchEntry *e)
{
    bool has = strchr(e->path, '\n') || strchr(e->options.model ? e->options.model : "", '\n');
    for (int i = 0; i < e->words.n; i++)
        has = has || strchr(e->words.item[i], '\n');
    return has;
}

/* Writes the model and, if samples come from a folder, that folder: a depfile does not tell
 * which files appear in it. */
static void put_inputs(FILE *f, const Options *o)
{
    struct stat st;
    putc(' ', f);
    put_value(f, o->model, true);
    if (o->calibrate && stat(o->calibrate, &st) == 0 && S_ISDIR(st.st_mode)) {
        fputs(" | ", f);
        put_value(f, o->calibrate, true);
    }
}

static void put_entry(FILE *f, const BatchEntry *e)
{
    fputs("\nbuild ", f);
    put_value(f, e->path, true);
    fputs(": etc", f);
    put_inputs(f, &e->options);
    fputs("\n  words =", f);
    for (int i = 1; i < e->words.n; i++) {
        if (i == 2) {
            fputs(" -MD -q -o", f);
            put_word(f, e->path);
        }
        put_word(f, e->words.item[i]);
    }
    fputs("\n  depfile = ", f);
    put_value(f, e->path, false);
    fputs(".d\n", f);
}

bool batch_ninja(const Batch *b, const char *path, Arena *a, Diag *d)
{
    Text t;
    for (int i = 0; i < b->n; i++)
        if (has_line_end(&b->entry[i]))
            return diag_error(d, b->entry[i].loc,
                              "ninja cannot take a name that contains a line break");
    if (text_open(&t)) {
        fputs("# Made by `etc batch --ninja`; paths count from the folder of the list.\n"
              "etc = etc\nrule etc\n  command = $etc $words\n  deps = gcc\n", t.f);
        for (int i = 0; i < b->n; i++)
            put_entry(t.f, &b->entry[i]);
    }
    return text_write(&t, path, a, d);
}
