/* c_build.c -- writes what a build system needs to compile the files of a model as a library: a
 * CMakeLists.txt, a meson.build, a Zephyr module or the properties of an Arduino library. */
#include "emit/c_emit.h"
#include <ctype.h>
#include <string.h>

typedef struct Build {
    const Emit *model; /* the n models of the files */
    int n;
    Arena *a;
    const char *name, *upper; /* the name of the library: "digits", "DIGITS" */
    const char *file;         /* "digits" of digits.c */
    CFiles *out;
} Build;

/* -- the files of a model ---------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_assembly(const CFile *f)
{
    return c_file_is(f, ".S");
}

static bool is_program(const CFile *f)
{
    return c_file_is(f, "_main.c");
}

static bool is_c(const CFile *f)
{
    return c_file_is(f, ".c") && !is_program(f);
}

static bool is_source(const CFile *f)
{
    return is_c(f) || is_assembly(f);
}

/* Returns the next file of a kind after `at`; NULL: there is none. */
static const CFile *next_file(const Build *b, const CFile *at, bool (*is_it)(const CFile *f))
{
    const CFile *f = at ? at + 1 : b->out->file, *end = b->out->file + b->out->n;
    while (f < end && !is_it(f))
        f++;
    return f < end ? f : NULL;
}

/* Prints the names of the files of a kind, each between `before` and `after`, and `comma` between
 * two of them. */
static void put_files(const Build *b, Text *t, bool (*is_it)(const CFile *f), const char *before,
                      const char *after, const char *comma)
{
    for (const CFile *f = NULL, *last = NULL; (f = next_file(b, f, is_it)); last = f)
        put(t, "%s%s%s%s%s", last ? comma : "", before, b->file, f->suffix, after);
}

/* Returns the name of a program without its ".c". */
static const char *name_of_program(const Build *b, const CFile *f)
{
    return arena_printf(b->a, "%s%.*s", b->name, (int)strlen(f->suffix) - 2, f->suffix);
}

/* Prints the first lines of a file.  A later run replaces the file only if it begins with them. */
static void put_first_lines(const Build *b, Text *t)
{
    put(t, "# SPDX-License-Identifier: 0BSD\n"
        "# Builds the model %s; made by etc, which replaces this file.\n", b->name);
}

/* Adds a file with the path `folder` + `place`.  `folder` ends in a slash or is "". */
static void add_file(Build *b, const char *folder, const char *place, const Text *t)
{
    Text first = {.a = b->a};
    put_first_lines(b, &first);
    c_file(b->a, b->out, "", t);
    b->out->file[b->out->n - 1].path = arena_printf(b->a, "%s%s", folder, place);
    b->out->file[b->out->n - 1].first = first.s;
}

static int optimization(const Build *b)
{
    return b->model->target->mcu ? 2 : 3;
}

/* Returns the bytes of the arena, or of all banks. */
static int64_t memory_of_model(const Emit *e)
{
    int64_t bytes = 0;
    for (int i = 0; i < e->n_memories; i++)
        bytes += e->memory[i].bytes;
    return bytes;
}

/* Returns the flags for the core, which follow -O2 in the target's call of the compiler; NULL:
 * there are none. */
static const char *core_flags(const Build *b)
{
    const char *build = b->model->target->build;
    const char *level = build ? strstr(build, " -O2 ") : NULL;
    assert(!build || level);
    return level ? level + strlen(" -O2 ") : NULL;
}

/* -- CMake ------------------------------------------------------------------------------------- */

/* Prints the flags of the target.  CMake sets them only if the compiler accepts them, because the
 * compiler of a PC takes no flags of a microcontroller. */
static void put_cmake_flags(const Build *b, Text *t)
{
    const char *flags = core_flags(b), *name = b->name;
    if (!flags)
        return;
    put(t, "\n# The flags of %s, if the compiler accepts them.\n"
        "include(CheckCSourceCompiles)\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n"
        "set(CMAKE_REQUIRED_FLAGS \"%s\")\n"
        "check_c_source_compiles(\"int there_is_a_declaration;\" %s_HAS_CORE)\n"
        "if(%s_HAS_CORE)\n"
        "    target_compile_options(%s PUBLIC %s)\n"
        "    target_link_options(%s PUBLIC %s)\n"
        "endif()\n", b->model->target->name, flags, b->upper, b->upper, name, flags, name, flags);
}

static void emit_cmake(Build *b, const char *folder)
{
    Text t = {.a = b->a};
    const char *name = b->name;
    put_first_lines(b, &t);
    put(&t, "# add_subdirectory() this folder; then target_link_libraries(yours %s).\n"
        "cmake_minimum_required(VERSION 3.13)\n"
        "project(%s C%s)\n\nadd_library(%s STATIC ", name, name,
        next_file(b, NULL, is_assembly) ? " ASM" : "", name);
    put_files(b, &t, is_source, "", "", " ");
    put(&t, ")\ntarget_include_directories(%s PUBLIC \"${CMAKE_CURRENT_SOURCE_DIR}\")\n"
        "target_compile_options(%s PRIVATE -O%d)\n", name, name, optimization(b));
    if (!b->model->o->freestanding)
        put(&t, "target_link_libraries(%s PUBLIC m)\n", name);
    if (b->model->o->parallel)
        put(&t, "target_link_options(%s PUBLIC -pthread)\n", name);
    for (const CFile *f = NULL; (f = next_file(b, f, is_assembly));)
        put(&t, "set_source_files_properties(%s%s PROPERTIES\n"
            "    OBJECT_DEPENDS \"${CMAKE_CURRENT_SOURCE_DIR}/%s%s.bin\")\n", b->file, f->suffix,
            b->file, f->suffix);
    put_cmake_flags(b, &t);
    for (const CFile *f = NULL; (f = next_file(b, f, is_program));) {
        const char *program = name_of_program(b, f);
        put(&t, "\nadd_executable(%s EXCLUDE_FROM_ALL %s%s)\n"
            "target_link_libraries(%s %s)\n", program, b->file, f->suffix, program, name);
    }
    add_file(b, folder, "CMakeLists.txt", &t);
}

/* -- Meson ------------------------------------------------------------------------------------- */

/* Prints words as a list: "['-mthumb', '-mcpu=cortex-m4']". */
static void put_meson_list(Text *t, const char *words)
{
    put(t, "[");
    for (const char *s = words; *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        put(t, "%s'%.*s'", s > words ? ", " : "", (int)n, s);
        s += n;
    }
    put(t, "]");
}

/* Prints a target for each .S file and its .bin.  Meson has no dependencies of a single source, so
 * both files are copied if one of them changes. */
static void put_meson_blobs(const Build *b, Text *t)
{
    int n = 0;
    put(t, "weights = []\n");
    for (const CFile *f = NULL; (f = next_file(b, f, is_assembly)); n++)
        put(t, "weights += custom_target('weights%d', command : ['cp', '@INPUT@', '@OUTDIR@'],\n"
            "  input : ['%s%s', '%s%s.bin'],\n"
            "  output : ['%s%s', '%s%s.bin'])[0]\n", n, b->file, f->suffix, b->file, f->suffix,
            b->file, f->suffix, b->file, f->suffix);
}

static void put_meson_flags(const Build *b, Text *t)
{
    const char *words = core_flags(b);
    if (!words) {
        put(t, "flags = []\n");
        return;
    }
    put(t, "# The flags of %s, if the compiler accepts them.\nflags = ", b->model->target->name);
    put_meson_list(t, words);
    put(t, "\nflags = cc.has_multi_arguments(flags) ? flags : []\n");
}

static void emit_meson(Build *b, const char *folder)
{
    Text t = {.a = b->a};
    const char *name = b->name;
    put_first_lines(b, &t);
    put(&t, "# In a subproject, dependency('%s') finds this library.\n"
        "project('%s', 'c', meson_version : '>=0.56',\n"
        "  default_options : ['buildtype=release'])\n\n"
        "cc = meson.get_compiler('c')\n", name, name);
    put_meson_flags(b, &t);
    put_meson_blobs(b, &t);
    put(&t, "%s_lib = static_library('%s', weights, ", name, name);
    put_files(b, &t, is_c, "'", "'", ", ");
    put(&t, ",\n  c_args : flags, override_options : ['optimization=%d'])\n"
        "%s_dep = declare_dependency(include_directories : include_directories('.'),\n"
        "  link_with : %s_lib, compile_args : flags, link_args : flags, dependencies : [%s%s])\n"
        "meson.override_dependency('%s', %s_dep)\n", optimization(b), name, name,
        b->model->o->parallel ? "dependency('threads')," : "",
        b->model->o->freestanding ? "" : "\n  cc.find_library('m', required : false)", name, name);
    for (const CFile *f = NULL; (f = next_file(b, f, is_program));)
        put(&t, "executable('%s', '%s%s', dependencies : %s_dep,\n"
            "  build_by_default : false)\n", name_of_program(b, f), b->file, f->suffix, name);
    add_file(b, folder, "meson.build", &t);
}

/* -- Zephyr ------------------------------------------------------------------------------------ */

/* Writes the files of a Zephyr module.  Zephyr chooses the flags of the core itself.  All names of
 * Kconfig are in one name space, so the name here has a prefix. */
static void emit_zephyr(Build *b, const char *folder)
{
    Text module = {.a = b->a}, cmake = {.a = b->a}, kconfig = {.a = b->a};
    put_first_lines(b, &module);
    put(&module, "name: %s\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n", b->name);
    put_first_lines(b, &cmake);
    put(&cmake, "if(CONFIG_ETC_%s)\n"
        "    zephyr_include_directories(\"${CMAKE_CURRENT_LIST_DIR}/..\")\n"
        "    zephyr_library_named(etc_%s)\n"
        "    zephyr_library_sources(", b->upper, b->name);
    put_files(b, &cmake, is_source, "\"${CMAKE_CURRENT_LIST_DIR}/../", "\"", " ");
    put(&cmake, ")\n    zephyr_library_compile_options(-O%d)\nendif()\n", optimization(b));
    put_first_lines(b, &kconfig);
    put(&kconfig, "config ETC_%s\n\tbool \"%s\"\n\thelp\n", b->upper, b->name);
    for (int i = 0; i < b->n; i++)
        put(&kconfig, "\t  %s_run of %s.h takes an arena of %lld bytes from its caller, and has\n"
            "\t  %lld bytes of constants.\n", b->model[i].name, b->file,
            (long long)memory_of_model(&b->model[i]), (long long)constant_bytes(&b->model[i]));
    add_file(b, folder, "zephyr/module.yml", &module);
    add_file(b, folder, "zephyr/CMakeLists.txt", &cmake);
    add_file(b, folder, "zephyr/Kconfig", &kconfig);
}

/* -- Arduino ----------------------------------------------------------------------------------- */

/* Returns the length of LIBRARY/ in LIBRARY/src/NAME; -1: NAME is not in a folder src. */
static int library_length(const char *stem)
{
    static const char src[] = "src/";
    int n = (int)(base_of(stem) - stem) - (int)strlen(src);
    return n >= 0 && (!n || stem[n - 1] == '/') && !strncmp(stem + n, src, strlen(src)) ? n : -1;
}

static void emit_arduino(Build *b, const char *folder)
{
    Text t = {.a = b->a};
    const char *stem = b->model->o->stem;
    const int n = library_length(stem);
    (void)folder;
    assert(n >= 0);
    put_first_lines(b, &t);
    put(&t, "name=%s\nversion=1.0.0\nauthor=etc\nmaintainer=etc\n"
        "sentence=The model %s as C.\nparagraph=", b->name, b->name);
    for (int i = 0; i < b->n; i++)
        put(&t, "%s%s_run takes inputs, outputs and an arena of %lld bytes.", i ? " " : "",
            b->model[i].name, (long long)memory_of_model(&b->model[i]));
    put(&t, "\ncategory=Data Processing\nurl=\narchitectures=*\nincludes=%s.h\n", b->file);
    add_file(b, arena_str(b->a, stem, (size_t)n), "library.properties", &t);
}

/* -- all --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*emit)(Build *b, const char *folder);
} system_row[] = {{"cmake", emit_cmake},
                  {"meson", emit_meson},
                  {"zephyr", emit_zephyr},
                  {"arduino", emit_arduino}};

void emit_build_files(const Emit *e, int n, CFiles *out)
{
    const char *stem = e->o->stem, *file = base_of(stem);
    Build b = {.model = e, .n = n, .a = e->a, .name = e->file, .upper = c_upper(e->a, e->file),
               .file = file, .out = out};
    size_t i = 0;
    while (i < sizeof system_row / sizeof *system_row &&
           strcmp(system_row[i].name, e->o->build_files) != 0)
        i++;
    assert(i < sizeof system_row / sizeof *system_row);
    system_row[i].emit(&b, arena_str(e->a, stem, (size_t)(file - stem)));
}

/* Returns whether a target may have this name.  It may not if CMake or Meson has the target in
 * every project, or if it is the name of the library m, which is linked. */
static bool is_target_name(const char *name)
{
    static const char *const theirs[] = {
        "all",     "benchmark", "clean",          "dist",       "edit_cache",    "help", "install",
        "m",       "package",   "package_source", "preinstall", "rebuild_cache", "test",
        "uninstall"};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (!strcmp(theirs[i], name))
            return false;
    return true;
}

const char *build_files_fault(const char *system, const char *stem, bool main, Arena *a)
{
    const char *file = base_of(stem), *name = c_model_name(a, stem);
    for (const char *s = file; *s; s++)
        if (!isalnum((unsigned char)*s) && (s == file || !strchr("._+-", *s)) && *s != '_')
            return "the last part of OUT may have letters, digits and ._+- alone, and begins with "
                   "a letter, digit or _";
    if ((!strcmp(system, "cmake") || !strcmp(system, "meson")) && !is_target_name(name))
        return arena_printf(a, "'%s' is a target that it has already; choose another name for OUT",
                            name);
    if (strcmp(system, "arduino") != 0)
        return NULL;
    if (library_length(stem) < 0)
        return "-o expects LIBRARY/src/OUT.c, as Arduino compiles what lies in a folder src";
    return main ? "--main would put a second main function into the library" : NULL;
}
