/* c_kernels.c -- the kernel text that a model's file needs: of the pieces that emit/embed.c made
 * those whose names it uses, and those that they use. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Wanted {
    bool *chunk, *header;
    int *todo, n_todo;
} Wanted;

/* OUT_main.c's text, which no model's file wants. */
static bool is_program(int chunk)
{
    return !strcmp(c_header[c_chunk[chunk].header], "main_program.h");
}

static void want(Wanted *w, int i)
{
    if (!w->chunk[i] && !is_program(i)) {
        w->chunk[i] = true;
        w->todo[w->n_todo++] = i;
    }
}

/* Whoever uses one piece of a header gets what has no name of its own: includes, pragmas. */
static void want_header(Wanted *w, int header)
{
    if (w->header[header])
        return;
    w->header[header] = true;
    for (int i = 0; i < c_n_chunks; i++)
        if (c_chunk[i].header == header && !c_chunk[i].is_optional)
            want(w, i);
}

typedef struct Word {
    const char *s;
    size_t n;
} Word;

static int by_word(const void *key, const void *row)
{
    const Word *w = key;
    const char *name = ((const CName *)row)->name;
    int order = strncmp(w->s, name, w->n);
    return order ? order : -(name[w->n] != '\0');
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Behind a comment that starts at s; else s. */
static const char *skip_comment(const char *s)
{
    if (s[0] != '/' || s[1] != '*')
        return s;
    const char *end = strstr(s + 2, "*/");
    return end ? end + 2 : s + strlen(s);
}

/* The chunk that defines a name; -1: none does. */
static int chunk_of(const char *s, size_t n)
{
    Word word = {s, n};
    const CName *name = bsearch(&word, c_name, (size_t)c_n_names, sizeof *c_name, by_word);
    return name ? name->chunk : -1;
}

/* Marks the chunks that define a name of the text. */
static void want_names(Wanted *w, const char *s)
{
    while (*(s = skip_comment(s))) {
        Word word = {s, 0};
        while (is_word(s[word.n]))
            word.n++;
        int chunk = word.n ? chunk_of(s, word.n) : -1;
        if (chunk >= 0)
            want(w, chunk);
        s += word.n ? word.n : 1;
    }
}

static bool is_rule(const char *s)
{
    return !strncmp(s, "/* -- ", 6);
}

/* The kernels' one parameter, which the file that they stand in defines. */
static const char work_macro[] = "ETC_WORK_BYTES";

void put_chunks(Text *t, const Text *code, int64_t work_bytes)
{
    Wanted w = {NEW(t->a, bool, c_n_chunks), NEW(t->a, bool, c_n_headers),
                NEW(t->a, int, c_n_chunks), 0};
    want_header(&w, 0);
    want_names(&w, code->s);
    while (w.n_todo) {
        int i = w.todo[--w.n_todo];
        want_header(&w, c_chunk[i].header);
        want_names(&w, c_chunk[i].text);
    }
    int parameter = chunk_of(work_macro, strlen(work_macro));
    for (int i = 0; i < c_n_chunks; i++)
        if (w.chunk[i] && i == parameter)
            put(t, "/* Bytes at `work` of a core that takes one; 64-byte aligned. */\n"
                "#define %s %" PRId64 "\n\n", work_macro, work_bytes);
        else if (w.chunk[i] && !is_rule(c_chunk[i].text))
            put(t, "%s\n", c_chunk[i].text);
}
