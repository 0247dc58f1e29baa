/* model.c -- loads a program from files and runs the passes of a tail. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/quantize.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 30 };

/* -- textual IR -------------------------------------------------------------------------- */

static bool is_stdin(const char *path)
{
    return !strcmp(path, "-");
}

/* Reads the model, which is a text, and appends a NUL. */
static char *read_text(const Options *o, Arena *a, Diag *d)
{
    const uint8_t *bytes;
    size_t n;
    if (!file_map(o->files, o->model, &bytes, &n, d))
        return NULL;
    if (n > MAX_TEXT || (n && memchr(bytes, 0, n))) {
        diag_error(d, (Loc){.file = o->model},
                   "contains a NUL byte, or is larger than 1 GiB: not a text");
        return NULL;
    }
    return arena_str(a, n ? (const char *)bytes : "", n);
}

static bool read_side_file(const Options *o, Program *p, Diag *d)
{
    const uint8_t *bytes;
    size_t n;
    return !o->data || (file_map(o->files, o->data, &bytes, &n, d) &&
                        program_read_data(p, bytes, (int64_t)n, d));
}

static bool read_weights(const Options *o, Program *p, Diag *d)
{
    ImportOptions import = {.files = o->files, .weights_dir = o->weights_dir};
    return !o->weights || import_weights(p, o->weights, &import, d);
}

static void warn_of_more(const Source *src, Diag *d)
{
    const char *s = src->text;
    int line = src->line;
    for (; *s; s += strcspn(s, "\n"), s += *s == '\n', line++) {
        const char *word = s + strspn(s, " \t\r\n");
        if (!strncmp(word, "program", 7)) {
            diag_warn(d, (Loc){.file = src->file, .line = line},
                      "another program follows; the first is taken");
            return;
        }
    }
}

static Program *load_etir(const Options *o, const CustomOps *custom, Arena *a, Diag *d)
{
    char *text = read_text(o, a, d);
    Source src = {.file = is_stdin(o->model) ? "<stdin>" : o->model, .text = text, .line = 1,
                  .custom = custom};
    Program *p = text ? program_parse(a, &src, d) : NULL;
    if (!p || !program_verify(p, d) || !read_side_file(o, p, d) || !read_weights(o, p, d))
        return NULL;
    warn_of_more(&src, d);
    return p;
}

/* Checks that the bytes of all states are there.  A text may name bytes that it does not hold. */
static bool has_all_bytes(const Options *o, const Program *p, Diag *d)
{
    const State *made = NULL, *member = NULL;
    for (int i = 0; i < p->n_states; i++) {
        const State *s = p->state[i];
        if (!s->data && type_bytes(s->type) && !strcmp(s->file, "-"))
            made = made ? made : s;
        else if (!s->data && type_bytes(s->type))
            member = member ? member : s;
    }
    Loc loc = {.file = o->model};
    bool ok = !made || diag_error(d, loc,
                                  "the bytes of %%%s lie in the file that --dump-data "
                                  "wrote: give it as --data FILE",
                                  made->name);
    return (!member || diag_error(d, loc,
                                  "the bytes of %%%s (\"%s\") lie in the model, in '%s': "
                                  "give it as --weights FILE.pt2",
                                  member->name, member->fqn, member->file)) &&
           ok;
}

/* -- bounds ------------------------------------------------------------------------------ */

static Symbol *find_symbol(const Program *p, const char *name, size_t len)
{
    for (int i = 0; i < p->n_syms; i++)
        if (!strncmp(p->sym[i]->name, name, len) && !p->sym[i]->name[len])
            return p->sym[i];
    return NULL;
}

static void list_symbols(const Program *p, Diag *d)
{
    for (int i = 0; i < p->n_syms; i++) {
        const Symbol *s = p->sym[i];
        const char *axis = program_axis(p, s);
        if (s->hi == INT64_MAX)
            diag_note(d, "the model has the symbolic size '%s'%s, %lld or more", s->name, axis,
                      (long long)s->lo);
        else
            diag_note(d, "the model has the symbolic size '%s'%s in %lld..%lld", s->name, axis,
                      (long long)s->lo, (long long)s->hi);
    }
    if (!p->n_syms)
        diag_note(d, "the model has no symbolic sizes");
}

static bool unknown_symbol(const Program *p, Loc loc, const char *text, size_t len, Diag *d)
{
    Near near = near_word(arena_str(p->arena, text, len));
    for (int i = 0; i < p->n_syms; i++)
        near_consider(&near, p->sym[i]->name);
    diag_error(d, loc, "--dim %s: the model has no such symbolic size%s", text,
               near_text(p->arena, &near));
    list_symbols(p, d);
    return false;
}

/* Returns the size of the input axis with the name "input.axis"; NULL: there is no such axis. */
static const Dim *find_axis(const Program *p, const char *text, size_t len)
{
    size_t at = len;
    int64_t axis;
    while (at && text[at - 1] != '.')
        at--;
    const char *end = text + at;
    if (!at || !parse_bound(end, &end, &axis) || end != text + len)
        return NULL;
    for (int m = 0; m < p->n_methods; m++)
        for (int i = 0; i < p->method[m]->n_in; i++) {
            const Value *v = p->method[m]->in[i];
            if (!strncmp(v->name, text, at - 1) && !v->name[at - 1] && axis >= 0 &&
                axis < v->type.rank)
                return &v->type.dim[axis];
        }
    return NULL;
}

/* Returns the symbol that NAME or INPUT.AXIS stands for.  Converts bounds of the axis to bounds of
 * the symbol.  NULL: an error was reported. */
static Symbol *find_size(Program *p, Loc loc, const char *text, int64_t *lo, int64_t *hi, Diag *d)
{
    size_t len = strcspn(text, "=");
    int64_t scale, offset;
    const Symbol *s;
    Symbol *named = find_symbol(p, text, len);
    const Dim *size = named ? NULL : find_axis(p, text, len);
    if (!size) {
        if (!named)
            unknown_symbol(p, loc, text, len, d);
        return named;
    }
    if (!dim_is_linear(*size, &s, &scale, &offset) || scale < 1) {
        diag_error(d, loc, "--dim %s: the size of this axis is %s, not one that the export left open",
                   text, dim_text(p, *size));
        return NULL;
    }
    if (offset == INT64_MIN || !add_ok(*lo, -offset, lo) || !add_ok(*lo, scale - 1, lo) ||
        !add_ok(*hi, -offset, hi)) {
        diag_error(d, loc, "--dim %s: the sizes of this axis overflow", text);
        return NULL;
    }
    *lo = *lo < 0 ? 0 : *lo / scale;
    *hi /= scale;
    return p->sym[s->index];
}

/* Narrows the range of a symbol, as NAME=LO..HI or INPUT.AXIS=LO..HI says.  *of becomes the symbol, or
 * NULL if the axis has the size already. */
static bool apply_dim(const Options *o, Program *p, const char *text, const Symbol **of, Diag *d)
{
    Loc loc = {.file = o->model};
    size_t len = strcspn(text, "=");
    int64_t lo, hi;
    *of = NULL;
    if (!parse_range(text + len + 1, &lo, &hi))
        return diag_error(d, loc, "--dim %s is not NAME=LO..HI", text);
    const Dim *axis = find_axis(p, text, len);
    if (axis && lo == hi && dim_equal(*axis, DIM(lo))) /* it has this size already */
        return true;
    Symbol *sym = find_size(p, loc, text, &lo, &hi, d);
    if (!sym)
        return false;
    if (lo < sym->lo || hi > sym->hi || lo > hi) {
        diag_error(d, loc, "--dim %s lies outside the range of the export", text);
        list_symbols(p, d);
        return false;
    }
    sym->lo = lo;
    sym->hi = hi;
    *of = sym;
    return true;
}

/* Returns whether the range of a symbol holds a multiple of k. */
static bool has_multiple(const Symbol *s, int64_t k)
{
    int64_t up = s->lo % k ? k - (s->lo % k + k) % k : 0;
    return up <= s->hi - s->lo;
}

/* Checks that the ranges of --dim leave a size that the guard of the export allows. */
static bool guard_is_possible(const Program *p, const Guard *g, Loc loc, Diag *d)
{
    int64_t lo, hi, k, c;
    dim_range(g->size, &lo, &hi);
    bool ok = lo <= g->hi && hi >= g->lo;
    bool is_mod = g->lo == 0 && g->hi == 0 && dim_terms(g->size, &k) == 1 && k == 0 &&
                  dim_term(g->size, 0, &c) == 1 && dim_factor(g->size, 0, 0).kind == F_MOD;
    if (is_mod) {
        const Symbol *s = NULL;
        Factor f = dim_factor(g->size, 0, 0);
        bool is_plain = dim_is_linear(f.a, &s, &c, &k) && c == 1 && k == 0 && !f.b.expr;
        ok = !is_plain || f.b.value < 1 || s->hi == INT64_MAX || has_multiple(s, f.b.value);
    }
    if (!ok) {
        diag_error(d, loc, "--dim leaves no size for which the model was exported: %s",
                   g->text);
        list_symbols(p, d);
    }
    return ok;
}

/* -- loading ------------------------------------------------------------------------------- */

ImportKind model_kind(const Options *o, Diag *d)
{
    return is_stdin(o->model) ? IMPORT_ETIR : import_kind(o->files, o->model, d);
}

/* Loads each NAME=FILE of --method as a method of one program. */
static Program *load_methods(const Options *o, const CustomOps *custom, Arena *a, Diag *d)
{
    ImportOptions import = {.files = o->files, .weights_dir = o->weights_dir, .custom = custom};
    bool ok = true;
    for (int i = 0; i < o->methods.n; i++) {
        const char *text = o->methods.item[i];
        size_t len = strcspn(text, "=");
        import.as = arena_str(a, text, len);
        Program *p = import_pt2(a, text + len + 1, &import, d);
        import.into = p ? p : import.into;
        ok = p && ok;
    }
    return ok ? import.into : NULL;
}

/* Loads an ONNX file.  The sizes of --dim and the values of --bind must be known when it is read,
 * since its nodes compute with them. */
static Program *load_onnx(const Options *o, ImportOptions *import, Arena *a, Diag *d)
{
    Loc loc = {.file = o->model};
    bool ok = true;
    import->n_dims = o->dims.n;
    import->n_binds = o->binds.n;
    import->dim = NEW(a, ImportDim, o->dims.n + 1);
    import->bind = NEW(a, ImportBind, o->binds.n + 1);
    for (int i = 0; i < o->dims.n; i++) {
        const char *text = o->dims.item[i];
        size_t len = strcspn(text, "=");
        ImportDim *dim = &import->dim[i];
        dim->name = arena_str(a, text, len);
        if (!parse_range(text + len + 1, &dim->lo, &dim->hi))
            return NULL; /* options.c has checked it */
    }
    for (int i = 0; i < o->binds.n; i++) {
        const char *text = o->binds.item[i], *value = text + strcspn(text, "=") + 1;
        ImportBind *b = &import->bind[i];
        char *end;
        b->name = arena_str(a, text, strcspn(text, "="));
        b->number = strtod(value, &end);
        if (*end && !(b->tensor = npy_read(o->files, a, value, -1, d)))
            return NULL;
    }
    Program *p = import_onnx(a, o->model, import, d);
    for (int i = 0; p && i < o->dims.n; i++)
        if (!import->dim[i].is_taken)
            ok = unknown_symbol(p, loc, o->dims.item[i], strlen(import->dim[i].name), d);
    for (int i = 0; p && i < o->binds.n; i++)
        if (!import->bind[i].is_taken)
            ok = diag_error(d, loc, "--bind %s names no input", import->bind[i].name);
    return ok ? p : NULL;
}

/* Applies --dim, but not the texts that are `taken`.  of: by text, the symbol. */
static bool apply_dims(const Options *o, Program *p, const bool *taken, const Symbol **of, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < o->dims.n; i++)
        if (!taken[i])
            ok = apply_dim(o, p, o->dims.item[i], &of[i], d) && ok;
    for (int i = 0; ok && o->dims.n && i < p->n_guards; i++)
        ok = guard_is_possible(p, &p->guard[i], (Loc){.file = o->model}, d) && ok;
    return ok;
}

static bool has_one_size(const Program *p, const Symbol *s)
{
    return s && s->lo == s->hi && *program_axis(p, s);
}

/* Finds the axes of inputs to which --dim leaves one size, and marks its texts about them.  The model is
 * then imported with these numbers instead of symbols, so that it becomes what an export with them is.
 * Errors are left to that import. */
static void find_known_sizes(const Options *o, ImportOptions *import, Arena *a, bool *taken)
{
    Diag quiet = {0};
    bool any = false;
    int64_t lo, hi;
    for (int i = 0; i < o->dims.n; i++)
        any |= parse_range(o->dims.item[i] + strcspn(o->dims.item[i], "=") + 1, &lo, &hi) && lo == hi;
    if (!any)
        return;
    Arena *tmp = arena_within(a);
    const Symbol **of = NEW(tmp, const Symbol *, o->dims.n);
    Program *p = import_pt2(tmp, o->model, import, &quiet);
    if (p && apply_dims(o, p, taken, of, &quiet)) {
        for (int i = 0; i < p->n_syms; i++)
            if (has_one_size(p, p->sym[i])) {
                const char *name = p->sym[i]->name;
                ImportDim known = {.name = arena_str(a, name, strlen(name)), .lo = p->sym[i]->lo,
                                   .hi = p->sym[i]->hi};
                PUSH(a, import->dim, import->n_dims, known);
            }
        for (int i = 0; i < o->dims.n; i++)
            taken[i] = has_one_size(p, of[i]);
    }
    arena_free(tmp);
}

/* Loads the model.  taken: set for each text of --dim that the importer has applied. */
static Program *load(const Options *o, Arena *a, bool *taken, Diag *d)
{
    Loc loc = {.file = o->model};
    const CustomOps *custom = NULL;
    if (!custom_read(o, a, &custom, d))
        return NULL;
    if (o->methods.n)
        return load_methods(o, custom, a, d);
    ImportKind kind = model_kind(o, d);
    ImportOptions import = {.files = o->files, .weights_dir = o->weights_dir, .kind = kind,
                            .custom = custom};
    if ((o->data || o->weights) && kind != IMPORT_ETIR && kind != IMPORT_UNKNOWN)
        diag_error(d, loc, "--data and --weights belong to an .etir; this file has its own bytes");
    else if (o->binds.n && kind != IMPORT_ONNX && kind != IMPORT_UNKNOWN)
        diag_error(d, loc, "--bind is for an .onnx");
    else if (o->weights_dir && (kind == IMPORT_PT2 || kind == IMPORT_ETIR))
        diag_error(d, loc, "--weights-dir belongs to an unpacked model or an .onnx");
    else if (kind == IMPORT_PT2 || kind == IMPORT_FOLDER || kind == IMPORT_JSON) {
        find_known_sizes(o, &import, a, taken);
        return import_pt2(a, o->model, &import, d);
    } else if (kind == IMPORT_ETIR)
        return load_etir(o, custom, a, d);
    else if (kind == IMPORT_PTE)
        diag_error(d, loc, "is a .pte, which is already compiled");
    else if (kind == IMPORT_ONNX) {
        for (int i = 0; i < o->dims.n; i++)
            taken[i] = true;
        return load_onnx(o, &import, a, d);
    }
    return NULL;
}

Program *model_load(const Options *o, Arena *a, Diag *d)
{
    bool *taken = NEW(a, bool, o->dims.n + 1);
    Program *p = load(o, a, taken, d);
    const char *what = o->model ? o->model : "--method";
    bool ok = p || diag_missing(d, 0, (Loc){0}, "the importer of", what);
    if (p) /* no build of etc has kernels for custom operators */
        p->session->composes = o->command == CMD_RUN || o->command == CMD_BENCH ||
                               o->command == CMD_DIFF || o->command == CMD_VERIFY;
    ok = ok && apply_dims(o, p, taken, NEW(a, const Symbol *, o->dims.n + 1), d);
    return ok ? p : NULL;
}

/* -- the side file ------------------------------------------------------------------------- */

/* The state of --dump-ir and --dump-data while passes run. */
typedef struct Trace {
    const Options *o;
    const Program *program;
    Arena *arena;
    const char *dump; /* the pass after which the program is printed, "all", or NULL */
    char *side;       /* bytes of the side file so far */
    int64_t n_side;
    bool failed;
} Trace;

/* Takes the new bytes of the side file.  It is called whenever a text is printed, because a later
 * pass may drop bytes that this text names.  Passes may also append bytes, but they move none. */
static void take_side_bytes(Trace *t)
{
    char *now = NULL;
    size_t n = 0;
    if (!t->o->dump_data || t->program->side_bytes <= t->n_side)
        return;
    FILE *f = open_memstream(&now, &n);
    if (f)
        program_write_data(t->program, f);
    t->failed = !f || fclose(f) || t->failed;
    if ((int64_t)n > t->n_side) {
        char *all = NEW(t->arena, char, n);
        memcpy(all, now, n);
        if (t->n_side)
            memcpy(all, t->side, (size_t)t->n_side);
        t->side = all;
        t->n_side = (int64_t)n;
    }
    free(now);
}

static bool add_side_file(Trace *t, OutBatch *out, Diag *d)
{
    if (!t->o->dump_data || !out || t->o->dry_run)
        return true;
    take_side_bytes(t);
    if (t->failed)
        return diag_io(d, (Loc){.file = t->o->dump_data}, "no memory to write it");
    return output_bytes(t->o, out, t->side, t->n_side, t->o->dump_data, d);
}

/* -- passes -------------------------------------------------------------------------------- */

static void print_time(const char *name, double seconds)
{
    fprintf(stderr, "  %-16s %9.3f ms\n", name, seconds * 1e3);
}

static void on_pass(const char *name, double seconds, void *ctx)
{
    Trace *t = ctx;
    if (t->o->verbose)
        print_time(name, seconds);
    if (t->dump && (!strcmp(t->dump, "all") || !strcmp(t->dump, name)))
        take_side_bytes(t);
}

static void on_note(const char *name, const char *why, void *ctx)
{
    const Trace *t = ctx;
    if (t->o->verbose)
        say(stderr, "  %-16s %s\n", name, why);
}

void states_carry(const Graph *g, EtcTensor **update, Arena *a)
{
    for (int i = 0; i < g->n_updates; i++) {
        State *state = g->update[i].target->state;
        if (!state)
            continue;
        state->data = tensor_copy(update[i], a)->data;
        state->n_bytes = type_bytes(state->type);
    }
}

bool tensor_is_of_type(const EtcTensor *t, Type want)
{
    int64_t lo, hi;
    if (t->dtype != want.dtype || t->rank != (want.rank == SCALAR ? 0 : want.rank))
        return false;
    for (int i = 0; i < t->rank; i++) {
        dim_range(want.dim[i], &lo, &hi);
        if (t->dim[i] < lo || t->dim[i] > hi)
            return false;
    }
    return true;
}

bool model_input_fits(const Options *o, const Graph *g, int i, const EtcTensor *t, Arena *a,
                      Diag *d)
{
    const Value *want = g->in[i];
    return (t && tensor_is_of_type(t, want->type)) ||
           diag_error(d, (Loc){.file = o->model}, "input %d ('%s'): is %s, expected %s", i,
                      want->name, t ? tensor_shown(a, t) : "no tensor",
                      type_shown(a, want->type));
}

bool model_input(const Options *o, const char *text, const Graph *g, int i, Arena *a,
                 EtcTensor **out, Diag *d)
{
    EtcTensor t = {.dtype = g->in[i]->type.dtype};
    EtcValue like = {.tag = ETC_TENSOR, .as.tensor = &t}, v;
    if (!input_read(o->files, a, text, &like, &v, d))
        return false;
    *out = v.tag == ETC_TENSOR ? v.as.tensor : NULL;
    return model_input_fits(o, g, i, *out, a, d);
}

static bool read_verify_inputs(const Options *o, const Program *p, Arena *a, PassOptions *opt,
                               Diag *d)
{
    const Graph *g = p->n_methods ? p->method[0] : NULL;
    if (!o->verify || !o->inputs.n)
        return true;
    if (!g || o->inputs.n != g->n_in)
        return diag_error(d, (Loc){.file = o->model}, "%d inputs given, the model has %d",
                          o->inputs.n, g ? g->n_in : 0);
    EtcTensor **in = NEW(a, EtcTensor *, g->n_in);
    bool ok = true;
    for (int i = 0; i < g->n_in; i++)
        ok = model_input(o, o->inputs.item[i], g, i, a, &in[i], d) && ok;
    opt->verify_in = in;
    return ok;
}

bool model_run_passes(const Options *o, Program *p, const char *const *pass, int n, Arena *a,
                      OutBatch *out, Diag *d)
{
    Trace t = {.o = o, .program = p, .arena = a};
    if (o->dump_ir)
        t.dump = strncmp(o->dump_ir, "after:", 6) ? o->dump_ir : o->dump_ir + 6;
    PassOptions opt = {.dump = t.dump,
                       .dump_to = stdout,
                       .check_ir = o->check_ir,
                       .verify = o->verify,
                       .on_pass = on_pass,
                       .on_note = on_note,
                       .ctx = &t};
    return read_verify_inputs(o, p, a, &opt, d) && passes_run(p, pass, n, opt, d) &&
           add_side_file(&t, out, d);
}

/* Checks a program and the types that its file records, since plans and kernels build on them. */
static bool is_sound(Program *p, Diag *d)
{
    return program_verify(p, d) && program_guard(p, d);
}

/* Tells the session what --backend, --delegate and --target-runtime say. */
static void set_backends(const Options *o, Program *p)
{
    const Backend **chain = NULL;
    for (const char *at = o->backend; at && *at;
         at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        const Backend *b = backend_find(at, strcspn(at, ","));
        if (b)
            PUSH(p->arena, chain, p->session->n_backends, b);
    }
    p->session->backend = chain;
    p->session->delegate_all = o->delegate && !strcmp(o->delegate, "all");
    target_prepare(o, p);
}

Program *model_evaluable(const Options *o, Arena *a, Diag *d)
{
    PassOptions quiet = {.dump = NULL};
    Program *p = model_load(o, a, d);
    if (!p || !has_all_bytes(o, p, d) || !is_sound(p, d))
        return NULL;
    p->session->tail = tail_find(o->tail);
    Pipeline core = pipeline_to_core();
    return p->stage != STAGE_ATEN || passes_run(p, core.pass, core.n, quiet, d) ? p : NULL;
}

Program *model_partition(const Options *o, Arena *a, Diag *d)
{
    PassOptions opt = {.dump = NULL};
    Pipeline all;
    Program *p = model_load(o, a, d);
    if (!p || !has_all_bytes(o, p, d))
        return NULL;
    p->session->tail = &tail_pte;
    set_backends(o, p);
    p->session->partition = NEW(a, PartitionReport, 1);
    if (!is_sound(p, d) || !pipeline_to_partition(p, &all, d))
        return NULL;
    return passes_run(p, all.pass, all.n, opt, d) ? p : NULL;
}

/* Tells the session what --io, --share-io, --borrow-inputs, --target and --bank say.  is_choice()
 * has checked the value of --io. */
static bool set_interface(const Options *o, Session *s, Diag *d)
{
    const Target *target = s->tail == &tail_c ? c_target(o) : NULL;
    s->has_io = o->io && strcmp(o->io, "float") != 0;
    s->borrows_inputs = o->borrow_inputs;
    s->shares_io = s->tail == &tail_c && o->share_io;
    s->is_fixed_point = target && target->mcu;
    s->rounds_products = s->tail == &tail_c && o->math && !strcmp(o->math, "bf16");
    s->io = s->has_io && !strcmp(o->io, "uint8") ? ETC_U8 : ETC_I8;
    return s->tail != &tail_c || banks_read(o, s, d);
}

/* Loads a program and runs the passes up to quantize, which uses the statistics `known`, or only
 * observes if they are NULL. */
static Program *to_quantize(const Options *o, const Statistics *known, const Statistics *keep,
                            Arena *a, Diag *d)
{
    Pipeline all;
    PassOptions quiet = {.dump = NULL};
    Program *p = model_load(o, a, d);
    if (!p || !has_all_bytes(o, p, d))
        return NULL;
    p->session->tail = o->target ? &tail_c : tail_find(o->tail);
    if (!set_interface(o, p->session, d))
        return NULL;
    if (p->session->tail->has_backends)
        set_backends(o, p);
    if (!is_sound(p, d) || !pipeline_to_quantize(p, &all, d) || !quant_prepare(o, p, known, a, d))
        return NULL;
    p->session->quant->keep = keep;
    if (!known && !keep && o->statistics)
        quant_keep(o, p, a);
    bool ok = known ? passes_run(p, all.pass, all.n, quiet, d)
                    : model_run_passes(o, p, all.pass, all.n, a, NULL, d);
    quant_finish(p);
    return ok ? p : NULL;
}

Program *model_observe(const Options *o, const Statistics *keep, Arena *a, Diag *d)
{
    return to_quantize(o, NULL, keep, a, d);
}

Program *model_quantize(const Options *o, const Statistics *known, Arena *a, Diag *d)
{
    return to_quantize(o, known, NULL, a, d);
}

static bool prepare(const Options *o, Program *p, const Tail *tail, Arena *a, Diag *d)
{
    if (!has_all_bytes(o, p, d) || (o->refittable && !refit_keep_graph(o, p, a, d)))
        return false;
    p->session->tail = tail;
    if (!set_interface(o, p->session, d))
        return false;
    if (tail->has_backends)
        set_backends(o, p);
    return is_sound(p, d) && quant_prepare(o, p, NULL, a, d);
}

Program *model_prepare(const Options *o, const Tail *tail, Arena *a, Diag *d)
{
    double start = seconds_now();
    Program *p = model_load(o, a, d);
    if (p && o->verbose)
        print_time("import", seconds_now() - start);
    return p && prepare(o, p, tail, a, d) ? p : NULL;
}

static Program *run_all(const Options *o, Program *p, Arena *a, OutBatch *out, Diag *d)
{
    Pipeline all;
    bool ok = quant_meet_budget(o, p, a, d) && pipeline_of(p, &all, d) &&
              model_run_passes(o, p, all.pass, all.n, a, out, d) &&
              (!o->refittable || refit_keep(o, p, a, d));
    quant_finish(p);
    return ok ? p : NULL;
}

Program *model_compile(const Options *o, const Tail *tail, Arena *a, OutBatch *out, Diag *d)
{
    Program *p = model_prepare(o, tail, a, d);
    return p ? run_all(o, p, a, out, d) : NULL;
}

Program *model_compile_loaded(const Options *o, Program *p, const Tail *tail, Arena *a,
                              OutBatch *out, Diag *d)
{
    return prepare(o, p, tail, a, d) ? run_all(o, p, a, out, d) : NULL;
}
