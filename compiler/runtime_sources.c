/* runtime_sources.c -- finds the sources of runtime-lite that some kernels need.
 *
 * The sources were installed with etc, or lie where it was built.  Their text shows which files
 * they need: a file needs those that it includes, and those that define functions whose names it
 * contains.  This gives a few files too many but never one too few.  The linker leaves out what
 * nobody calls. */
#define _GNU_SOURCE
#include "compiler/compiler.h"
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* -- finding the sources ------------------------------------------------------------------- */

static bool has_sources(const char *folder, Arena *a)
{
    return !access(arena_printf(a, "%s/" RUNTIME_KERNELS, folder), R_OK);
}

/* Returns the folder of --runtime-dir, or the one beside the program: PREFIX/share/etc for
 * PREFIX/bin/etc, or the source tree for a program in a build folder. */
static const char *find_folder(const Options *o, Arena *a, Diag *d)
{
    static const char *const beside[] = {"../share/etc", ".."};
    char *self = realpath("/proc/self/exe", NULL);
    const char *slash = self ? strrchr(self, '/') : NULL, *found = o->runtime_dir;
    for (size_t i = 0; slash && !found && i < sizeof beside / sizeof *beside; i++) {
        const char *folder = arena_printf(a, "%.*s/%s", (int)(slash - self), self, beside[i]);
        found = has_sources(folder, a) ? folder : NULL;
    }
    free(self);
    if (found && has_sources(found, a))
        return found;
    diag_io(d, (Loc){.file = found}, "the sources of runtime-lite are not %s; --runtime-dir DIR "
            "names the folder that has " RUNTIME_KERNELS, found ? "there" : "beside etc");
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const SourceFile *)a)->path, ((const SourceFile *)b)->path);
}

/* Returns whether a build for one instruction set may need the file.  Of the cores it needs only
 * the headers. */
static bool is_source(const char *name)
{
    bool is_table = !strncmp(name, "isa_", 4) || !strcmp(name, "cores.c");
    return ends_with(name, ".h") || ends_with(name, ".def") || (ends_with(name, ".c") && !is_table);
}

static bool list_folder(SourceFiles *s, const char *under, Arena *a, Diag *d)
{
    const char *path = arena_printf(a, "%s/%s", s->folder, under);
    DIR *dir = opendir(path);
    if (!dir)
        return file_unreadable(path, d);
    for (const struct dirent *e; (e = readdir(dir));)
        if (is_source(e->d_name)) {
            SourceFile one = {.path = arena_printf(a, "%s/%s", under, e->d_name)};
            PUSH(a, s->item, s->n, one);
        }
    closedir(dir);
    return true;
}

static bool read_source(const Options *o, const SourceFiles *s, SourceFile *to, Arena *a, Diag *d)
{
    const uint8_t *data;
    size_t n;
    if (!file_map(o->files, arena_printf(a, "%s/%s", s->folder, to->path), &data, &n, d))
        return false;
    to->text = n ? arena_str(a, (const char *)data, n) : "";
    return true;
}

/* -- definitions --------------------------------------------------------------------------- */

static bool is_ident(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void define(Table *t, Arena *a, const char *name, int n, SourceFile *s)
{
    const char *key = arena_str(a, name, (size_t)n);
    if (!table_find_text(t, key))
        table_at_text(t, key)->ptr = s;
}

/* Records the function that a line like "EtcStatus etc_linear(const EtcCall *c)" defines: words
 * of a type stand before the name, and it is no call and no declaration.  For "void
 * etc_row_f64_##name(" in a macro, it records the part before the pasted name. */
static void define_function(Table *t, Arena *a, const char *line, size_t n, SourceFile *s)
{
    size_t end = strcspn(line, "(\n"), start;
    bool is_declared = n && line[n - 1] == ';', is_open = end < n;
    for (start = end; start && is_ident(line[start - 1]);)
        start--;
    bool is_pasted = start > 2 && !strncmp(line + start - 2, "##", 2) && strncmp(line, "Etc", 3);
    for (end = is_pasted ? start - 2 : end, start = end; start && is_ident(line[start - 1]);)
        start--;
    bool is_ours = is_open && start && !strncmp(line + start, "etc_", 4);
    if (is_ours && !is_declared && isalpha((unsigned char)*line) && strncmp(line, "return", 6))
        define(t, a, line + start, (int)(end - start), s);
}

/* Records each kernel that a macro of this file may define for a name, as in
 * "EtcStatus etc_##name##_scalar(". */
static void define_kernels(Table *t, Arena *a, const char *name, int n, SourceFile *s)
{
    static const char kernel[] = "EtcStatus etc_";
    for (const char *at = s->text; (at = strstr(at, kernel));) {
        at += sizeof kernel - 1;
        int head = (int)strcspn(at, "#(\n");
        if (at[head] != '#')
            continue;
        const char *tail = at + head + 2;
        while (is_ident(*tail))
            tail++;
        tail += 2 * (*tail == '#');
        const char *key = arena_printf(a, "etc_%.*s%.*s%.*s", head, at, n, name,
                                       (int)strcspn(tail, "("), tail);
        define(t, a, key, (int)strlen(key), s);
    }
}

/* Records the kernels that a line like "KEEPING(relu)" may define. */
static void define_pasted(Table *t, Arena *a, const char *line, SourceFile *s)
{
    size_t word = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), n = 0;
    if (!word || line[word] != '(')
        return;
    while (is_ident(line[word + 1 + n]))
        n++;
    define_kernels(t, a, line + word + 1, (int)n, s);
}

static void find_definitions(Table *t, Arena *a, SourceFile *s)
{
    for (const char *line = s->text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *last = end - line > 2 && end[-1] == '\\' ? line + strspn(line, " ") : line;
        define_function(t, a, last, (size_t)(end - last), s); /* lines of macros are indented */
        define_pasted(t, a, line, s);
    }
}

/* -- needs --------------------------------------------------------------------------------- */

static void want(SourceFile *s)
{
    if (s)
        s->is_wanted = true;
}

static void want_included(const SourceFiles *s, const char *text)
{
    static const char include[] = "#include \"";
    for (const char *at = text; (at = strstr(at, include));) {
        at += sizeof include - 1;
        want(table_find(&s->by_path, at, strcspn(at, "\"")));
    }
}

/* Marks the files whose functions the text names anywhere, which includes comments. */
static void want_called(const SourceFiles *s, const char *text)
{
    for (const char *at = text; (at = strstr(at, "etc_"));) {
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
        if (at == text || !is_ident(at[-1]))
            want(table_find(&s->definer, at, n));
        at += n;
    }
}

static bool want_more(const SourceFiles *s)
{
    bool is_more = false;
    for (int i = 0; i < s->n; i++) {
        SourceFile *one = &s->item[i];
        if (!one->is_wanted || one->is_seen)
            continue;
        one->is_seen = is_more = true;
        want_included(s, one->text);
        if (!ends_with(one->path, "/kernels.h")) /* this file names all kernels */
            want_called(s, one->text);
    }
    return is_more;
}

bool source_files_choose(SourceFiles *s, const Strings *function, Diag *d)
{
    for (int i = 0; i < s->n; i++)
        s->item[i].is_wanted = strchr(s->item[i].path, '/') == strrchr(s->item[i].path, '/') &&
                               ends_with(s->item[i].path, ".c");
    for (int i = 0; i < function->n; i++) {
        SourceFile *found = table_find_text(&s->definer, function->item[i]);
        if (!found)
            return diag_fault(d, FAULT_BUG, (Loc){.file = s->folder}, "no source defines %s",
                              function->item[i]);
        found->is_wanted = true;
    }
    while (want_more(s))
        continue;
    return true;
}

SourceFile *source_file(const SourceFiles *s, const char *path)
{
    return table_find_text(&s->by_path, path);
}

bool source_kernel(const SourceFiles *s, const char *kernel, Arena *a, const char **row,
                   const char **function, Diag *d)
{
    const char *table = source_file(s, RUNTIME_KERNELS)->text;
    const char *start = strstr(table, arena_printf(a, "KERNEL(\"%s\",", kernel));
    const char *end = start ? strchr(start, ')') : NULL, *name = end ? strchr(start, ',') : NULL;
    if (!name)
        return diag_io(d, (Loc){.file = s->folder},
                       "the sources there lack %s: they are of another version than etc", kernel);
    name += 1 + strspn(name + 1, " \n");
    *row = arena_str(a, start, (size_t)(end + 1 - start));
    *function = arena_printf(a, "etc_%.*s", (int)strcspn(name, ","), name);
    return true;
}

bool source_files_read(const Options *o, SourceFiles *s, Arena *a, Diag *d)
{
    *s = (SourceFiles){.folder = find_folder(o, a, d), .by_path.arena = a, .definer.arena = a};
    if (!s->folder || !list_folder(s, "runtime-lite", a, d) ||
        !list_folder(s, "runtime-lite/kernels", a, d))
        return false;
    qsort(s->item, (size_t)s->n, sizeof *s->item, by_name);
    for (int i = 0; i < s->n; i++) {
        if (!read_source(o, s, &s->item[i], a, d))
            return false;
        table_at_text(&s->by_path, s->item[i].path)->ptr = &s->item[i];
        if (ends_with(s->item[i].path, ".c"))
            find_definitions(&s->definer, a, &s->item[i]);
    }
    return true;
}
