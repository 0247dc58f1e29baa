/* refit.c -- `etc refit`: puts new weights into a .pte that was compiled with --refittable.
 *
 * Such a file has a record with the name "etc.refit", see refit_record.c.  It holds the graph as it was loaded, the
 * flags that the bytes of the file depend on, the recipe, the statistics of samples, the custom
 * operators, and the constants that no state_dict has.  A refit compiles that graph again with the
 * new weights.  So the result has the same bytes as a compile of the new model: weights are folded,
 * quantized and packed as before, no sample is run, and the code need not know which byte belongs
 * to which parameter.  Compiling takes hardly longer than writing the file.
 *
 * If a file has no such record, a whole model is compiled, for the backend that the file has.  The
 * result is accepted if only constants and weights of delegates have other bytes than the file. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/run.h"
#include "compiler/etc_sources.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct Section {
    const char *kind;
    const uint8_t *data;
    size_t n;
} Section;

typedef struct Refit {
    const Options *o;
    EtcProgram old;
    Section *section;
    int n;
    Options with; /* the options of the compile */
    Arena *arena;
    Diag *diag;
} Refit;

/* -- reading the record ------------------------------------------------------------------------ */

static bool refuse(const Refit *r, const char *why)
{
    return diag_error(r->diag, (Loc){.file = r->o->model}, "%s", why);
}

static bool malformed(const Refit *r)
{
    return refuse(r, "its record for refit is damaged");
}

/* Reads a section, "KIND N\n", N bytes and "\n", and moves *at past it. */
static bool read_section(Refit *r, const uint8_t *data, size_t n, size_t *at)
{
    enum { MOST_KIND = 24 };
    size_t word = *at, bytes = 0;
    while (word < n && data[word] > ' ' && word - *at < MOST_KIND)
        word++;
    size_t digit = word + 1;
    for (; digit < n && data[digit] >= '0' && data[digit] <= '9' && bytes <= n; digit++)
        bytes = bytes * 10 + (size_t)(data[digit] - '0');
    if (word == *at || digit >= n || data[word] != ' ' || digit == word + 1 ||
        data[digit] != '\n' || bytes >= n - digit - 1 || data[digit + 1 + bytes] != '\n')
        return malformed(r);
    const char *kind = arena_str(r->arena, (const char *)data + *at, word - *at);
    Section s = {kind, data + digit + 1, bytes};
    PUSH(r->arena, r->section, r->n, s);
    *at = digit + 1 + bytes + 1;
    return true;
}

static bool read_record(Refit *r, const EtcNamed *row)
{
    const size_t n = (size_t)row->n_bytes, n_magic = strlen(REFIT_MAGIC), head = n_magic + 33;
    size_t at = head;
    const char *text = (const char *)row->data;
    if (!text || n < head || memcmp(text, REFIT_MAGIC, n_magic) != 0 || text[head - 1] != '\n')
        return malformed(r);
    if (memcmp(text + n_magic, ETC_SOURCES, 32) != 0)
        return refuse(r, "was compiled by another build of etc, which may plan otherwise than this "
                         "one: compile the new model");
    while (at < n)
        if (!read_section(r, row->data, n, &at))
            return false;
    return true;
}

/* Finds the record of the file and reads it.  Sets *has to whether there is one. */
static bool find_record(Refit *r, bool *has)
{
    for (uint32_t i = 0; i < etc_program_n_named(&r->old); i++) {
        EtcNamed row = etc_program_named(&r->old, i);
        *has = row.n_key == strlen(PTE_REFIT_KEY) && !memcmp(row.key, PTE_REFIT_KEY, row.n_key);
        if (*has)
            return read_record(r, &row);
    }
    return true;
}

static const Section *find(const Refit *r, const char *kind)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->section[i].kind, kind))
            return &r->section[i];
    return NULL;
}

/* -- compiling again ------------------------------------------------------------------------- */

typedef struct Words {
    char **item;
    int n;
} Words;

static void add_word(const Refit *r, Words *w, const char *word)
{
    PUSH(r->arena, w->item, w->n, (char *)(uintptr_t)word);
}

static void add_flag(const Refit *r, Words *w, const char *flag, const Section *s)
{
    const char *value = arena_str(r->arena, (const char *)s->data, s->n);
    add_word(r, w, s->n ? arena_printf(r->arena, "%s=%s", flag, value) : flag);
}

static Words words_new(const Refit *r)
{
    Words w = {0};
    add_word(r, &w, "etc");
    add_word(r, &w, "compile");
    if (r->o->output)
        add_word(r, &w, arena_printf(r->arena, "--output=%s", r->o->output));
    if (r->o->dry_run)
        add_word(r, &w, "--dry-run");
    return w;
}

static bool parse_words(Refit *r, Words *w)
{
    const Options *o = r->o;
    Diag quiet = {0};
    add_word(r, w, "--");
    add_word(r, w, o->weights);
    bool ok = options_parse(&r->with, r->arena, w->n, w->item, stdout, &quiet) == OPTIONS_RUN;
    r->with.files = o->files;
    r->with.is_refit = true;
    r->with.json = o->json;
    r->with.quiet = o->quiet;
    r->with.verbose = o->verbose;
    return ok;
}

/* Parses the flags of the record and those of this run as one command line. */
static bool parse_flags(Refit *r)
{
    Words w = words_new(r);
    const Section *preset = find(r, "preset");
    add_word(r, &w, "--refittable");
    for (int i = 0; i < r->n; i++)
        if (refit_keeps_flag(r->section[i].kind))
            add_flag(r, &w, r->section[i].kind, &r->section[i]);
    if (preset)
        add_flag(r, &w, "--recipe", preset);
    bool ok = parse_words(r, &w) && (!preset || recipe_is_preset(r->with.recipe));
    return ok || malformed(r);
}

static const char *give(const Refit *r, const Section *s)
{
    const char *name = arena_printf(r->arena, "%s.%s", PTE_REFIT_KEY, s->kind);
    if (!strcmp(s->kind, "ops"))
        name = arena_printf(r->arena, "%s%d", name, (int)(s - r->section));
    file_give(r->o->files, name, s->data, s->n);
    return name;
}

static void give_files(Refit *r)
{
    const Section *recipe = find(r, "recipe"), *statistics = find(r, "statistics");
    if (recipe)
        r->with.recipe = give(r, recipe);
    if (statistics)
        r->with.statistics = give(r, statistics);
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->section[i].kind, "ops"))
            PUSH(r->arena, r->with.ops.item, r->with.ops.n, give(r, &r->section[i]));
}

/* -- differences between graphs ---------------------------------------------------------------- */

enum { MOST_PRINTED = 100 };

typedef struct Lines {
    char **item;
    int n;
    Table by_key; /* from the part of a line before " = ", or the whole line, to the item */
} Lines;

static const char *key_of_line(Arena *a, const char *line)
{
    const char *end = strstr(line, " = ");
    return end ? arena_str(a, line, (size_t)(end - line)) : line;
}

static Lines split_lines(Arena *a, const char *text)
{
    Lines l = {.by_key = {.arena = a}};
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        char *line = arena_str(a, text, n);
        line += strspn(line, " ");
        PUSH(a, l.item, l.n, line);
        table_at_text(&l.by_key, key_of_line(a, line))->ptr = line;
    }
    return l;
}

/* Reports the lines of a text whose keys the other text lacks.  If `both` is set, it reports
 * instead the lines whose keys the other text has with another line.  Returns n_printed plus the
 * number of these lines; no line is printed if MOST_PRINTED were printed before. */
static int print_lines(const Refit *r, const Lines *of, const Lines *other, bool both,
                       int n_printed)
{
    Loc loc = {.file = r->o->weights};
    for (int i = 0; i < of->n; i++) {
        const char *line = of->item[i];
        const char *was = table_find_text(&other->by_key, key_of_line(r->arena, line));
        if (both ? !was || !strcmp(was, line) : was != NULL)
            continue;
        if (n_printed++ >= MOST_PRINTED)
            continue;
        if (both)
            diag_error(r->diag, loc, "is not the same model: %s; it was: %s", line, was);
        else
            diag_error(r->diag, loc, "is not the same model: %s%s", line,
                       of < other ? " is gone" : " is new");
    }
    return n_printed;
}

static bool print_differences(const Refit *r, const char *was, const char *is)
{
    const Lines text[] = {split_lines(r->arena, was), split_lines(r->arena, is)};
    int n_printed = print_lines(r, &text[1], &text[0], true, 0);
    n_printed = print_lines(r, &text[0], &text[1], false, n_printed);
    n_printed = print_lines(r, &text[1], &text[0], false, n_printed);
    if (n_printed > MOST_PRINTED)
        diag_note(r->diag, "and %d more differences", n_printed - MOST_PRINTED);
    return n_printed ? false
                     : diag_error(r->diag, (Loc){.file = r->o->weights},
                                  "is not the same model: its nodes are in another order");
}

/* -- the new weights --------------------------------------------------------------------------- */

static bool is_bits(const Section *s)
{
    bool ok = true;
    for (size_t i = 0; ok && i < s->n; i++)
        ok = s->data[i] <= 1;
    return ok;
}

/* Gives the bytes of a section "fixed:I" to state I.  They are copied, since passes may write into
 * the bytes of states. */
static bool take_fixed(const Refit *r, const Program *p, const Section *s)
{
    char *end;
    long i = strtol(s->kind + strlen("fixed:"), &end, 10);
    State *to = !*end && i >= 0 && i < p->n_states ? p->state[i] : NULL;
    if (!to || to->data || refit_extent(to->type) != (int64_t)s->n ||
        (to->type.dtype == ETC_BOOL && !is_bits(s)))
        return malformed(r);
    to->data = arena_alloc(p->arena, s->n + 1, 16);
    memcpy(to->data, s->data, s->n);
    to->n_bytes = (int64_t)s->n;
    to->is_fixed = true;
    return true;
}

/* Returns the program of the recorded graph, with the weights that a .safetensors has under their
 * names. */
static Program *with_tensors(const Refit *r, const char *graph)
{
    Source src = {.file = r->o->model, .text = graph, .line = 1};
    Program *p = custom_read(&r->with, r->arena, &src.custom, r->diag)
                     ? program_parse(r->arena, &src, r->diag) : NULL;
    bool ok = p && program_verify(p, r->diag);
    for (int i = 0; i < r->n && ok; i++)
        if (!strncmp(r->section[i].kind, "fixed:", 6))
            ok = take_fixed(r, p, &r->section[i]);
    return ok && import_safetensors(p, r->o->weights, r->o->files, r->diag) ? p : NULL;
}

static Program *with_model(const Refit *r, const char *graph)
{
    Program *p = model_load(&r->with, r->arena, r->diag);
    const char *is = p ? refit_graph(&r->with, p, r->arena, r->diag) : NULL;
    return is && (!strcmp(is, graph) || print_differences(r, graph, is)) ? p : NULL;
}

static Program *load_new(const Refit *r)
{
    const Section *s = find(r, "graph");
    if (!s || !s->n || memchr(s->data, 0, s->n)) {
        malformed(r);
        return NULL;
    }
    const char *graph = arena_str(r->arena, (const char *)s->data, s->n);
    return ends_in(r->o->weights, ".safetensors") ? with_tensors(r, graph) : with_model(r, graph);
}

/* -- the plan ---------------------------------------------------------------------------------- */

static bool moved(const Refit *r, const char *method, const char *what, int64_t is, int64_t was)
{
    return is == was || diag_error(r->diag, (Loc){.file = r->o->weights},
                                   "these weights need another plan, so compile the new model: "
                                   "method '%s': %s: %" PRId64 ", was %" PRId64, method, what, is,
                                   was);
}

static bool same_method(const Refit *r, const PteMethod *is, const PteMethod *was)
{
    bool ok = moved(r, was->name, "pools", is->n_pools, was->n_pools) &&
              moved(r, was->name, "operators", is->n_ops, was->n_ops) &&
              moved(r, was->name, "calls of delegates", is->n_delegates, was->n_delegates);
    for (int i = 0; ok && i < is->n_pools; i++)
        ok = moved(r, was->name, "planned bytes", is->pool[i], was->pool[i]);
    for (int i = 0; ok && i < is->n_ops; i++) {
        bool same = !strcmp(is->op[i].name, was->op[i].name);
        ok = moved(r, was->name, was->op[i].name, same ? is->op[i].calls : 0, was->op[i].calls);
    }
    for (int i = 0; ok && i < is->n_delegates; i++)
        ok = moved(r, was->name, was->delegate[i].id,
                   !strcmp(is->delegate[i].id, was->delegate[i].id), 1);
    return ok;
}

/* Returns the bytes of the file with its first two pieces, which hold the header and the
 * FlatBuffer.  Zeros replace the segments; these are fresh pages, which cost nothing. */
static const uint8_t *without_segments(const OutFile *f, Arena *a, size_t *n)
{
    size_t at = 0;
    *n = 0;
    for (int i = 0; i < f->n; i++)
        *n += (size_t)(f->piece[i].n + f->piece[i].zeros);
    uint8_t *bytes = arena_pages(a, *n);
    for (int i = 0; i < f->n && i < 2; i++) {
        memcpy(bytes + at, f->piece[i].data, (size_t)f->piece[i].n);
        at += (size_t)(f->piece[i].n + f->piece[i].zeros);
    }
    return bytes;
}

/* Checks that a compiled file has the same plan as the old one.  The plan follows from the
 * graph, except that a few rewrites look at the elements of constants, for example whether all
 * are zero. */
static bool plan_is_same(const OutFile *f, void *ctx)
{
    const Refit *r = ctx;
    EtcProgram new;
    EtcError e = {.index = -1};
    size_t n;
    const uint8_t *bytes = without_segments(f, r->arena, &n);
    if (etc_program_open(&new, bytes, n, &e))
        return runtime_failed(r->o->output, &e, r->diag);
    bool ok = moved(r, "", "methods", etc_program_n_methods(&new), etc_program_n_methods(&r->old));
    for (int32_t i = 0; ok && i < etc_program_n_methods(&new); i++) {
        const PteMethod is = pte_method(&new, i, r->arena), was = pte_method(&r->old, i, r->arena);
        ok = same_method(r, &is, &was);
    }
    return ok;
}

/* -- files without a record -------------------------------------------------------------------- */

static bool has_delegate(const Refit *r, const char *id)
{
    for (int32_t i = 0; i < etc_program_n_methods(&r->old); i++) {
        const PteMethod m = pte_method(&r->old, i, r->arena);
        for (int k = 0; k < m.n_delegates; k++)
            if (!strcmp(m.delegate[k].id, id))
                return true;
    }
    return false;
}

static bool take_flags(Refit *r)
{
    Words w = words_new(r);
    if (has_delegate(r, "XnnpackBackend"))
        add_word(r, &w, "--backend=xnnpack");
    return parse_words(r, &w);
}

/* Checks that a compiled file has the same plan and the same bytes in front of its segments.  These
 * are the program: methods, values with sizes and places, instructions, and places of constants. */
static bool program_is_same(const OutFile *f, void *ctx)
{
    const Refit *r = ctx;
    const uint8_t *old;
    size_t n_old, n;
    if (!plan_is_same(f, ctx) || !file_map(r->o->files, r->o->model, &old, &n_old, r->diag))
        return false;
    const uint8_t *new = without_segments(f, r->arena, &n);
    assert(f->n >= 2);
    const size_t front = (size_t)(f->piece[0].n + f->piece[0].zeros + f->piece[1].n);
    return (n == n_old && front <= n && !memcmp(old, new, front)) ||
           diag_error(r->diag, (Loc){.file = r->o->weights},
                      "gives another program than that of '%s': it is another model, or that was "
                      "compiled with other flags; --refittable keeps them in the file",
                      r->o->model);
}

static bool refit_bare(Refit *r)
{
    if (ends_in(r->o->weights, ".safetensors"))
        return refuse(r, "keeps no graph, which a .safetensors needs: compile it with --refittable");
    Program *p = take_flags(r) ? model_load(&r->with, r->arena, r->diag) : NULL;
    return p && build_loaded(&r->with, p, program_is_same, r, r->arena, r->diag);
}

bool command_refit(const Options *o, Arena *a, Diag *d)
{
    Refit r = {.o = o, .arena = a, .diag = d};
    bool has_record = false;
    if (!pte_open(o->files, o->model, &r.old, d) || !find_record(&r, &has_record))
        return false;
    if (!has_record)
        return refit_bare(&r);
    if (!parse_flags(&r))
        return false;
    give_files(&r);
    Program *p = load_new(&r);
    return p && build_loaded(&r.with, p, plan_is_same, &r, a, d);
}
