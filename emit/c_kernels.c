/* c_kernels.c -- prints the text of the kernels that a model's file needs: the chunks made by
 * emit/embed.c whose names the file uses, and the chunks that these use.  The code for instruction
 * sets comes from the header of the target's set.  For a target without a set it comes from the
 * headers of all sets, each under its condition. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Returns the text of a header.  `text` has those that were unpacked before, or NULL.  All but the
 * last need that as a dictionary. */
static const char *unpack_header(Arena *a, const char **text, int header)
{
    const CHeader *h = &c_header[header];
    if (text[header])
        return text[header];
    char *to = arena_bytes(a, h->n);
    z_stream s = {.next_in = (Bytef *)(uintptr_t)h->packed, .avail_in = h->n_packed,
                  .next_out = (Bytef *)to, .avail_out = h->n};
    int status = inflateInit2(&s, -MAX_WBITS);
    if (status == Z_OK && header < c_n_headers)
        status = inflateSetDictionary(&s, (const Bytef *)unpack_header(a, text, c_n_headers),
                                      c_header[c_n_headers].n);
    if (status == Z_OK)
        status = inflate(&s, Z_FINISH);
    assert(status == Z_STREAM_END && !s.avail_out);
    inflateEnd(&s);
    return text[header] = to;
}

static const char **nothing_unpacked(Arena *a)
{
    return NEW(a, const char *, c_n_headers + 1);
}

static const char *unpack_chunk(Arena *a, const char **text, int chunk)
{
    return unpack_header(a, text, c_chunk[chunk].header) + c_chunk[chunk].at;
}

typedef struct Wanted {
    Arena *arena;
    const char **text; /* by header: its unpacked text, or NULL */
    bool *chunk, *header;
    int *todo, n_todo;
    int isa; /* the index of the target's set in c_isa; -1: all sets, each under its condition */
    const char *mcu; /* the target's set of steps, or NULL */
} Wanted;

static const char *header_of(int chunk)
{
    return c_header[c_chunk[chunk].header].name;
}

/* Returns whether a chunk is text of OUT_main.c or OUT_threads.c, which no model's file uses. */
static bool is_program(int chunk)
{
    return strstr(header_of(chunk), "_program.h");
}

void put_program(Text *t, const char *header)
{
    const char **text = nothing_unpacked(t->a);
    for (int i = 0; i < c_n_chunks; i++)
        if (!strcmp(header_of(i), header))
            put(t, "%s\n", unpack_chunk(t->a, text, i));
}

static bool is_of_isa(const Wanted *w, int chunk)
{
    const CHeader *h = &c_header[c_chunk[chunk].header];
    if (!strncmp(h->name, "mcu_", 4)) {
        size_t n = strlen(h->name) - 6; /* without "mcu_" and ".h" */
        return w->mcu && strlen(w->mcu) == n && !strncmp(h->name + 4, w->mcu, n);
    }
    return w->isa < 0 || (h->first <= w->isa && w->isa <= h->last);
}

static void want(Wanted *w, int i)
{
    if (!w->chunk[i] && !is_program(i) && is_of_isa(w, i)) {
        w->chunk[i] = true;
        w->todo[w->n_todo++] = i;
    }
}

/* Marks the chunks of a header that have no name of their own, such as includes and pragmas.
 * Everything that uses a chunk of the header needs them. */
static void want_header(Wanted *w, int header)
{
    if (w->header[header])
        return;
    w->header[header] = true;
    for (int i = 0; i < c_n_chunks; i++)
        if ((int)c_chunk[i].header == header && !c_chunk[i].is_optional)
            want(w, i);
}

typedef struct Word {
    const char *s;
    size_t n;
} Word;

static int by_word(const void *key, const void *row)
{
    const Word *w = key;
    const char *name = c_names + ((const CName *)row)->name;
    int order = strncmp(w->s, name, w->n);
    return order ? order : -(name[w->n] != '\0');
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns the end of the comment that starts at s; if there is none, s. */
static const char *skip_comment(const char *s)
{
    if (s[0] != '/' || s[1] != '*')
        return s;
    const char *end = strstr(s + 2, "*/");
    return end ? end + 2 : s + strlen(s);
}

/* Returns the first row of c_name that has this name; NULL: there is none. */
static const CName *find_name(const Word *word)
{
    const CName *name = bsearch(word, c_name, (size_t)c_n_names, sizeof *c_name, by_word);
    while (name && name > c_name && !by_word(word, name - 1))
        name--;
    return name;
}

/* Marks the chunks that define a name that the text uses. */
static void want_names(Wanted *w, const char *s)
{
    while (*(s = skip_comment(s))) {
        Word word = {s, 0};
        while (is_word(s[word.n]))
            word.n++;
        const CName *name = word.n ? find_name(&word) : NULL;
        for (; name && name < c_name + c_n_names && !by_word(&word, name); name++)
            want(w, name->chunk);
        s += word.n ? word.n : 1;
    }
}

static bool is_rule(const char *s)
{
    return !strncmp(s, "/* -- ", 6);
}

/* The only parameter of the kernels.  The file that contains them defines it. */
static const char work_macro[] = "ETC_WORK_BYTES";

static int isa_of(const Target *target)
{
    int i = 0;
    if (!target->isa)
        return -1;
    while (i < c_n_isas && strcmp(c_isa[i].name, target->isa))
        i++;
    assert(i < c_n_isas);
    return i;
}

static void put_chunk(Text *t, const Wanted *w, int i, int64_t work_bytes)
{
    const char *text = unpack_chunk(w->arena, w->text, i);
    static const Word parameter = {work_macro, sizeof work_macro - 1};
    if (i == find_name(&parameter)->chunk)
        put(t, "/* Bytes at `work` of a core that takes one; 64-byte aligned. */\n"
            "#define %s %" PRId64 "\n\n", work_macro, work_bytes);
    else if (!is_rule(text))
        put(t, "%s\n", text);
}

/* -- instruction sets -------------------------------------------------------------------------- */

static bool is_of_some(const CHeader *h)
{
    return h->first > 0 || h->last < c_n_isas - 1;
}

/* Prints "#if"; after the branches of other sets, "#elif" or "#else". */
static void put_condition(Text *t, const CHeader *h)
{
    if (h->last == c_n_isas - 1) {
        put(t, "#else\n\n");
        return;
    }
    put(t, h->first ? "#elif " : "#if ");
    for (int i = h->first; i <= h->last; i++)
        put(t, h->first < h->last ? "%s(%s)" : "%s%s", i > h->first ? " || " : "",
            c_isa[i].condition);
    put(t, "\n\n");
}

/* Prints chunks from i on, each in the branch of its sets, until all sets have had a branch.
 * Returns the last of these chunks. */
static int put_branches(Text *t, const Wanted *w, int i, int64_t work_bytes)
{
    const CHeader *open = NULL;
    int end = i, next = i;
    for (; next < c_n_chunks; next++) {
        const CHeader *h = &c_header[c_chunk[next].header];
        if (!is_of_some(h) || (next > i && !h->first && h != &c_header[c_chunk[i].header]))
            break;
        end = w->chunk[next] ? next + 1 : end;
    }
    for (; i < end; i++) {
        const CHeader *h = &c_header[c_chunk[i].header];
        if (h != open)
            put_condition(t, h);
        open = h;
        if (w->chunk[i])
            put_chunk(t, w, i, work_bytes);
    }
    if (open)
        put(t, "#endif\n\n");
    return next - 1;
}

void put_chunks(Text *t, const Text *code, const Target *target, int64_t work_bytes)
{
    Wanted w = {.arena = t->a, .text = nothing_unpacked(t->a),
                .chunk = NEW(t->a, bool, c_n_chunks), .header = NEW(t->a, bool, c_n_headers),
                .todo = NEW(t->a, int, c_n_chunks), .isa = isa_of(target), .mcu = target->mcu};
    want_header(&w, 0);
    want_names(&w, code->s);
    while (w.n_todo) {
        int i = w.todo[--w.n_todo];
        want_header(&w, c_chunk[i].header);
        want_names(&w, unpack_chunk(t->a, w.text, i));
    }
    for (int i = 0; i < c_n_chunks; i++)
        if (w.isa < 0 && is_of_some(&c_header[c_chunk[i].header]))
            i = put_branches(t, &w, i, work_bytes);
        else if (w.chunk[i])
            put_chunk(t, &w, i, work_bytes);
}
