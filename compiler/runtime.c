/* runtime.c -- `etc runtime`: writes a folder with the sources of runtime-lite that some .pte files
 * need, and with the files that build a library of them. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/run.h"
#include "runtime-lite/etc_rt.h"
#include <stdlib.h>

/* Everything that the .pte files need. */
typedef struct Need {
    const Options *o;
    Arena *arena;
    Diag *diag;
    const CustomOps *own; /* the operators of --ops */
    Table seen;           /* kernels and delegates that were handled already */
    Strings kernel;       /* such as "aten::relu.out" */
    Strings row, function; /* for each kernel: its row of kernels.def, and "etc_relu" */
    uint32_t dtypes;
    bool has_doubles, has_own_kernels;
} Need;

/* -- the kernels that the files call --------------------------------------------------------- */

static bool is_new(Need *n, const char *name)
{
    bool is = !table_has(&n->seen, name, strlen(name));
    table_at_text(&n->seen, name);
    return is;
}

static bool is_own(const Need *n, const char *kernel)
{
    for (int i = 0; n->own && i < n->own->n; i++) {
        const char *out = n->own->item[i]->out;
        if (out && !strcmp(out, kernel))
            return true;
    }
    return false;
}

static bool need_kernel(Need *n, const PteOperator *op, const char *file)
{
    const Loc loc = {.file = file};
    if (op->is_built_in) {
        if (is_new(n, op->name))
            PUSH(n->arena, n->kernel.item, n->kernel.n, op->name);
        return true;
    }
    if (is_own(n, op->name))
        return n->has_own_kernels = true;
    if (!is_new(n, op->name))
        return false;
    bool is_taken = namespace_is_taken(arena_str(n->arena, op->name, strcspn(op->name, ":")));
    return diag_unsupported(n->diag, loc, is_taken
                                ? "%s: runtime-lite has no such kernel; `etc compile` makes files "
                                  "that call those it has"
                                : "%s: a kernel of your own; --ops FILE.yaml that names it leaves "
                                  "it to etc_program_kernels (docs/custom_operators.md)",
                            op->name);
}

static bool need_method(Need *n, const PteMethod *m, const char *file)
{
    bool ok = !m->has_unknown_dtypes ||
              diag_unsupported(n->diag, (Loc){.file = file}, "method %s: a tensor of a dtype that "
                               "runtime-lite does not know", m->name);
    for (int i = 0; i < m->n_ops; i++)
        ok = need_kernel(n, &m->op[i], file) && ok;
    for (int i = 0; i < m->n_delegates; i++)
        if (is_new(n, m->delegate[i].id))
            ok = diag_unsupported(n->diag, (Loc){.file = file},
                                  "parts are delegated to %s, which this runtime cannot have; "
                                  "compile the model without --backend", m->delegate[i].id);
    n->dtypes |= m->dtypes;
    n->has_doubles = n->has_doubles || m->has_doubles;
    return ok;
}

static bool need_file(Need *n, const char *file)
{
    EtcProgram p;
    bool ok = pte_open(n->o->files, file, &p, n->diag);
    for (int i = 0; ok && i < etc_program_n_methods(&p); i++) {
        PteMethod m = pte_method(&p, i, n->arena);
        ok = need_method(n, &m, file) && ok;
    }
    return ok;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool need_files(Need *n)
{
    bool ok = true;
    for (int i = 0; i < n->o->models.n; i++)
        ok = need_file(n, n->o->models.item[i]) && ok;
    if (n->kernel.n)
        qsort(n->kernel.item, (size_t)n->kernel.n, sizeof *n->kernel.item, by_text);
    return ok;
}

/* -- kernels.def ----------------------------------------------------------------------------- */

/* Returns whether a kernel returns a double, although its operands may not be doubles. */
static bool makes_doubles(const char *function)
{
    static const char *const one[] = {"etc_local_scalar_dense", "etc_prim_float",
                                      "etc_prim_truediv"};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        if (!strcmp(function, one[i]))
            return true;
    return false;
}

static bool find_rows(Need *n, const SourceFiles *s)
{
    for (int i = 0; i < n->kernel.n; i++) {
        const char *row, *function;
        if (!source_kernel(s, n->kernel.item[i], n->arena, &row, &function, n->diag))
            return false;
        PUSH(n->arena, n->row.item, n->row.n, row);
        PUSH(n->arena, n->function.item, n->function.n, function);
        n->has_doubles = n->has_doubles || makes_doubles(function);
    }
    return true;
}

static void print_rows(const Need *n, FILE *f)
{
    fputs("/* kernels.def -- the kernels of this build, in ASCII order of name; the table of the\n"
          " * build with everything says what the columns are. */\n", f);
    for (int i = 0; i < n->row.n; i++)
        fprintf(f, "%s\n", n->row.item[i]);
    fputs("#undef KERNEL\n", f);
}

/* -- etc_build.h ----------------------------------------------------------------------------- */

/* Returns the text with another value in the line "#define NAME value". */
static const char *set_define(const Need *n, const char *text, const char *name, const char *value)
{
    const char *define = arena_printf(n->arena, "#define %s ", name), *at = strstr(text, define);
    const char *end = at ? at + strlen(define) : NULL;
    return end ? arena_printf(n->arena, "%.*s%s%s", (int)(end - text), text, value,
                              end + strcspn(end, " \n"))
               : text;
}

static const char *build_header(const Need *n, const char *text)
{
    const char *dtypes = arena_printf(n->arena, "0x%08xu", (unsigned)(n->dtypes | 1u << ETC_F32));
    text = set_define(n, text, "ETC_BUILD_DTYPES", dtypes);
    text = set_define(n, text, "ETC_BUILD_DOUBLES", n->has_doubles ? "1" : "0");
    text = set_define(n, text, "ETC_BUILD_HOST_KERNELS", n->has_own_kernels ? "1" : "0");
    text = set_define(n, text, "ETC_BUILD_DELEGATES", "0");
    return set_define(n, text, "ETC_BUILD_ONE_ISA", "1");
}

/* -- files that build ------------------------------------------------------------------------ */

static const char flags[] = "-ffunction-sections -fdata-sections -ffp-contract=off -fno-math-errno";

static bool is_built(const SourceFile *s)
{
    return s->is_wanted && !strcmp(s->path + strlen(s->path) - 2, ".c");
}

/* Prints the path of each source or each header between `before` and `after`. */
static void print_paths(const SourceFiles *s, bool built, const char *before, const char *after,
                        FILE *f)
{
    for (int i = 0; i < s->n; i++)
        if (s->item[i].is_wanted && is_built(&s->item[i]) == built)
            fprintf(f, "%s%s%s", before, s->item[i].path, after);
}

static void print_make(const SourceFiles *s, FILE *f)
{
    fprintf(f, "# Builds libetc_runtime.a.  Its header is runtime-lite/etc_rt.h.  Link programs\n"
               "# with -Wl,--gc-sections.  You may set CC, AR and CFLAGS.\n"
               "CFLAGS = -O2\n"
               "flags = -std=c99 %s -I.\n"
               "sources =", flags);
    print_paths(s, true, " \\\n    ", "", f);
    fputs("\nheaders =", f);
    print_paths(s, false, " \\\n    ", "", f);
    fputs("\n\nlibetc_runtime.a: $(sources:.c=.o)\n\trm -f $@\n\t$(AR) rcs $@ $^\n\n"
          "$(sources:.c=.o): $(headers) Makefile\n\n"
          ".c.o:\n\t$(CC) $(CFLAGS) $(flags) -c -o $@ $<\n\n"
          "clean:\n\trm -f libetc_runtime.a $(sources:.c=.o)\n\n"
          ".PHONY: clean\n", f);
}

static void print_meson(const SourceFiles *s, FILE *f)
{
    fputs("project('etc_runtime', 'c',\n"
          "  default_options: ['c_std=c99', 'buildtype=release', 'optimization=2'])\n"
          "etc_runtime = static_library('etc_runtime',\n", f);
    print_paths(s, true, "  '", "',\n", f);
    fprintf(f, "  c_args: '%s'.split(), include_directories: include_directories('.'))\n"
               "etc_runtime_dep = declare_dependency(link_with: etc_runtime,\n"
               "  include_directories: include_directories('.'))\n", flags);
}

static void print_cmake(const SourceFiles *s, FILE *f)
{
    fputs("cmake_minimum_required(VERSION 3.10)\nproject(etc_runtime C)\n"
          "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
          "add_library(etc_runtime STATIC", f);
    print_paths(s, true, "\n  ", "", f);
    fprintf(f, ")\nset_target_properties(etc_runtime PROPERTIES C_STANDARD 99)\n"
               "target_include_directories(etc_runtime PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})\n"
               "target_compile_options(etc_runtime PRIVATE %s)\n", flags);
}

/* -- the folder ------------------------------------------------------------------------------ */

typedef struct Folder {
    OutBatch out;
    Strings made, file;
} Folder;

static const char *closed(const Need *n, Text *t)
{
    const char *text = text_close(t, n->arena);
    if (!text)
        diag_io(n->diag, (Loc){.file = n->o->output}, "no memory to write it");
    return text;
}

static bool add_text(const Need *n, Folder *to, const char *name, const char *text)
{
    const char *path = arena_printf(n->arena, "%s/%s", n->o->output, name);
    PUSH(n->arena, to->file.item, to->file.n, path);
    return output_bytes(n->o, &to->out, text, (int64_t)strlen(text), path, n->diag);
}

static bool add_sources(const Need *n, const SourceFiles *s, Folder *to)
{
    bool ok = true;
    for (int i = 0; i < s->n && ok; i++)
        if (s->item[i].is_wanted)
            ok = add_text(n, to, s->item[i].path, s->item[i].text);
    return ok;
}

static bool add_builds(const Need *n, const SourceFiles *s, Folder *to)
{
    static const struct {
        const char *name;
        void (*print)(const SourceFiles *s, FILE *f);
    } file[] = {{"Makefile", print_make},
                {"meson.build", print_meson},
                {"CMakeLists.txt", print_cmake}};
    bool ok = true;
    for (size_t i = 0; i < sizeof file / sizeof *file && ok; i++) {
        Text t;
        if (text_open(&t))
            file[i].print(s, t.f);
        const char *text = closed(n, &t);
        ok = text && add_text(n, to, file[i].name, text);
    }
    return ok;
}

static bool make_folders(const Need *n, Folder *to)
{
    static const char *const under[] = {"", "/runtime-lite", "/runtime-lite/kernels"};
    bool ok = true;
    for (size_t i = 0; i < sizeof under / sizeof *under && ok; i++)
        ok = output_folder(arena_printf(n->arena, "%s%s", n->o->output, under[i]), &to->made,
                           n->arena, n->diag);
    return ok;
}

static void print_list(const char *what, const Strings *s, Arena *a)
{
    printf("\"%s\": [", what);
    for (int i = 0; i < s->n; i++)
        printf("%s%s", comma(i), json_text(a, s->item[i]));
    printf("], ");
}

static void print_json(const Need *n, const Folder *to)
{
    Strings dtypes = {0};
    for (int i = 0; i < 32; i++)
        if (n->dtypes >> i & 1)
            PUSH(n->arena, dtypes.item, dtypes.n, dtype_name((EtcDtype)i));
    printf("{\"schema\": 1, \"output\": %s, ", json_text(n->arena, n->o->output));
    print_list("kernels", &n->kernel, n->arena);
    print_list("dtypes", &dtypes, n->arena);
    print_list("files", &to->file, n->arena);
    printf("\"doubles\": %s}\n", n->has_doubles ? "true" : "false");
}

/* Writes the folder.  The table of kernels and etc_build.h are new; the other sources are
 * copied. */
static bool write_folder(const Need *n, SourceFiles *s)
{
    Folder to = {.out.arena = n->arena};
    Text rows;
    SourceFile *table = source_file(s, RUNTIME_KERNELS);
    SourceFile *build = source_file(s, "runtime-lite/etc_build.h");
    if (text_open(&rows))
        print_rows(n, rows.f);
    table->text = closed(n, &rows);
    build->text = build_header(n, build->text);
    bool ok = table->text && make_folders(n, &to) && add_sources(n, s, &to) &&
              add_builds(n, s, &to) &&
              out_stage(&to.out, n->diag);
    if (ok && n->o->json)
        print_json(n, &to);
    ok = ok && finish_files(n->o, &to.out, n->diag);
    out_discard(&to.out);
    if (!ok)
        remove_folders(&to.made);
    else if (!n->o->quiet)
        say(stderr, "%s: %d kernels, %d files; `make -C %s` builds libetc_runtime.a\n",
            n->o->output, n->kernel.n, to.file.n, n->o->output);
    return ok;
}

bool command_runtime(const Options *o, Arena *a, Diag *d)
{
    Need n = {.o = o, .arena = a, .diag = d, .seen.arena = a};
    SourceFiles s;
    return custom_read(o, a, &n.own, d) && need_files(&n) && source_files_read(o, &s, a, d) &&
           find_rows(&n, &s) && source_files_choose(&s, &n.function, d) && write_folder(&n, &s);
}
