/* c_build.c -- what a build system needs to compile the files of a model as a library: a
 * CMakeLists.txt, a meson.build, a Zephyr module or the properties of an Arduino library. */
#include "emit/c_emit.h"
#include <ctype.h>
#include <string.h>

/* -- which files ------------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Up to the slash behind it; "" for the working folder. */
static const char *folder_of(Arena *a, const char *path)
{
    return arena_str(a, path, (size_t)(base_of(path) - path));
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

static bool is_assembly(const CFile *f)
{
    return ends_with(f->suffix, ".S");
}

static bool is_c(const CFile *f)
{
    return ends_with(f->suffix, ".c") && strcmp(f->suffix, "_main.c") != 0;
}

static bool is_source(const CFile *f)
{
    return is_c(f) || is_assembly(f);
}

/* Lists the files that the library is compiled from, of one kind: each name between `before` and
 * `behind`, and `comma` between two. */
static void put_sources(const Emit *e, Text *t, const CFiles *out, bool (*is_it)(const CFile *f),
                        const char *before, const char *behind, const char *comma)
{
    int n = 0;
    for (int i = 0; i < out->n; i++)
        if (is_it(&out->file[i]))
            put(t, "%s%s%s%s%s", n++ ? comma : "", before, base_of(e->o->stem),
                out->file[i].suffix, behind);
}

static bool has_file(const CFiles *out, const char *suffix)
{
    for (int i = 0; i < out->n; i++)
        if (!strcmp(out->file[i].suffix, suffix))
            return true;
    return false;
}

/* Opens such a file.  These lines also tell a later run that it may replace the file. */
static void put_first_lines(const Emit *e, Text *t)
{
    put(t, "# SPDX-License-Identifier: 0BSD\n"
        "# Builds the model %s; made by etc, which replaces this file.\n", e->name);
}

/* Adds a file at a place below the folder `under`. */
static void add_file(Emit *e, CFiles *out, const char *under, const char *place, const Text *t)
{
    Text first = {.a = e->a};
    put_first_lines(e, &first);
    c_file(e->a, out, "", t);
    out->file[out->n - 1].path = arena_printf(e->a, "%s%s", under, place);
    out->file[out->n - 1].first = first.s;
}

static int optimization(const Emit *e)
{
    return e->target->mcu ? 2 : 3;
}

/* -- CMake ------------------------------------------------------------------------------------- */

/* The compiler of a PC takes no flags of a microcontroller. */
static void put_cmake_flags(const Emit *e, Text *t)
{
    const char *flags = e->target->flags, *name = e->name;
    if (!flags)
        return;
    put(t, "\n# The flags of %s, if the compiler is one for it.\n"
        "include(CheckCSourceCompiles)\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n"
        "set(CMAKE_REQUIRED_FLAGS \"%s\")\n"
        "check_c_source_compiles(\"int there_is_a_declaration;\" %s_HAS_CORE)\n"
        "if(%s_HAS_CORE)\n"
        "    target_compile_options(%s PUBLIC %s)\n"
        "    target_link_options(%s PUBLIC %s)\n"
        "endif()\n", e->target->name, flags, e->upper, e->upper, name, flags, name, flags);
}

static void emit_cmake(Emit *e, CFiles *out, const char *folder)
{
    Text t = {.a = e->a};
    const char *name = e->name, *file = base_of(e->o->stem);
    const bool has_blob = has_file(out, "_weights.S");
    put_first_lines(e, &t);
    put(&t, "# add_subdirectory() this folder; then target_link_libraries(yours %s).\n"
        "cmake_minimum_required(VERSION 3.13)\n"
        "project(%s C%s)\n\nadd_library(%s STATIC ", name, name, has_blob ? " ASM" : "", name);
    put_sources(e, &t, out, is_source, "", "", " ");
    put(&t, ")\ntarget_include_directories(%s PUBLIC \"${CMAKE_CURRENT_SOURCE_DIR}\")\n"
        "target_compile_options(%s PRIVATE -O%d)\n"
        "target_link_libraries(%s PUBLIC m)\n", name, name, optimization(e), name);
    if (has_blob)
        put(&t, "set_source_files_properties(%s_weights.S PROPERTIES\n"
            "    OBJECT_DEPENDS \"${CMAKE_CURRENT_SOURCE_DIR}/%s_weights.S.bin\")\n", file, file);
    put_cmake_flags(e, &t);
    if (has_file(out, "_main.c"))
        put(&t, "\nadd_executable(%s_main EXCLUDE_FROM_ALL %s_main.c)\n"
            "target_link_libraries(%s_main %s)\n", name, file, name, name);
    add_file(e, out, folder, "CMakeLists.txt", &t);
}

/* -- Meson ------------------------------------------------------------------------------------- */

/* "['-mthumb', '-mcpu=cortex-m4']" */
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

/* Meson knows no dependency of one source, so both files are copied when either changes. */
static void put_meson_blob(Text *t, const char *file)
{
    put(t, "weights = custom_target('weights', command : ['cp', '@INPUT@', '@OUTDIR@'],\n"
        "  input : ['%s_weights.S', '%s_weights.S.bin'],\n"
        "  output : ['%s_weights.S', '%s_weights.S.bin'])\n", file, file, file, file);
}

static void emit_meson(Emit *e, CFiles *out, const char *folder)
{
    Text t = {.a = e->a};
    const char *name = e->name, *file = base_of(e->o->stem);
    put_first_lines(e, &t);
    put(&t, "# As a subproject it is what dependency('%s') finds.\n"
        "project('%s', 'c', meson_version : '>=0.56',\n"
        "  default_options : ['buildtype=release'])\n\n"
        "cc = meson.get_compiler('c')\n", name, name);
    if (e->target->flags) {
        put(&t, "# The flags of %s, if the compiler is one for it.\nflags = ", e->target->name);
        put_meson_list(&t, e->target->flags);
        put(&t, "\nflags = cc.has_multi_arguments(flags) ? flags : []\n");
    } else {
        put(&t, "flags = []\n");
    }
    if (has_file(out, "_weights.S"))
        put_meson_blob(&t, file);
    put(&t, "%s_lib = static_library('%s', ", name, name);
    put_sources(e, &t, out, is_c, "'", "'", ", ");
    put(&t, "%s,\n  c_args : flags, override_options : ['optimization=%d'])\n"
        "%s_dep = declare_dependency(include_directories : include_directories('.'),\n"
        "  link_with : %s_lib, compile_args : flags, link_args : flags,\n"
        "  dependencies : cc.find_library('m', required : false))\n"
        "meson.override_dependency('%s', %s_dep)\n",
        has_file(out, "_weights.S") ? ", weights[0]" : "", optimization(e), name, name, name, name);
    if (has_file(out, "_main.c"))
        put(&t, "executable('%s_main', '%s_main.c', dependencies : %s_dep,\n"
            "  build_by_default : false)\n", name, file, name);
    add_file(e, out, folder, "meson.build", &t);
}

/* -- Zephyr ------------------------------------------------------------------------------------ */

/* Zephyr chooses the flags of the core itself.  All names of Kconfig are in one name space, so this
 * one has a prefix. */
static void emit_zephyr(Emit *e, CFiles *out, const char *folder)
{
    Text module = {.a = e->a}, cmake = {.a = e->a}, kconfig = {.a = e->a};
    put_first_lines(e, &module);
    put(&module, "name: %s\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n", e->name);
    put_first_lines(e, &cmake);
    put(&cmake, "if(CONFIG_ETC_%s)\n"
        "    zephyr_include_directories(\"${CMAKE_CURRENT_LIST_DIR}/..\")\n"
        "    zephyr_library_named(etc_%s)\n"
        "    zephyr_library_sources(", e->upper, e->name);
    put_sources(e, &cmake, out, is_source, "\"${CMAKE_CURRENT_LIST_DIR}/../", "\"", " ");
    put(&cmake, ")\n    zephyr_library_compile_options(-O%d)\nendif()\n", optimization(e));
    put_first_lines(e, &kconfig);
    put(&kconfig, "config ETC_%s\n\tbool \"The model %s\"\n\thelp\n"
        "\t  The function %s_run of %s.h.  It takes an arena of %lld bytes from its\n"
        "\t  caller, and %lld bytes of constants.\n", e->upper, e->name, e->name,
        base_of(e->o->stem), (long long)e->arena_bytes, (long long)constant_bytes(e));
    add_file(e, out, folder, "zephyr/module.yml", &module);
    add_file(e, out, folder, "zephyr/CMakeLists.txt", &cmake);
    add_file(e, out, folder, "zephyr/Kconfig", &kconfig);
}

/* -- Arduino ----------------------------------------------------------------------------------- */

/* The length of LIBRARY/ in LIBRARY/src/NAME; -1: it lies in no folder src. */
static int library_length(const char *stem)
{
    static const char src[] = "src/";
    int n = (int)(base_of(stem) - stem) - (int)strlen(src);
    return n >= 0 && (!n || stem[n - 1] == '/') && !strncmp(stem + n, src, strlen(src)) ? n : -1;
}

static void emit_arduino(Emit *e, CFiles *out, const char *folder)
{
    Text t = {.a = e->a};
    const char *file = base_of(e->o->stem);
    const int n = library_length(e->o->stem);
    (void)folder;
    assert(n >= 0);
    put_first_lines(e, &t);
    put(&t, "name=%s\nversion=1.0.0\nauthor=etc\nmaintainer=etc\n"
        "sentence=The model %s as C.\n"
        "paragraph=%s_run takes inputs, outputs and an arena of %lld bytes, as %s.h says.\n"
        "category=Data Processing\nurl=\narchitectures=*\nincludes=%s.h\n", e->name, e->name,
        e->name, (long long)e->arena_bytes, file, file);
    add_file(e, out, arena_str(e->a, e->o->stem, (size_t)n), "library.properties", &t);
}

/* -- all --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*emit)(Emit *e, CFiles *out, const char *folder);
} system_row[] = {{"cmake", emit_cmake},
                  {"meson", emit_meson},
                  {"zephyr", emit_zephyr},
                  {"arduino", emit_arduino}};

void emit_build_files(Emit *e, CFiles *out)
{
    const size_t n = sizeof system_row / sizeof *system_row;
    size_t i = 0;
    while (i < n && strcmp(system_row[i].name, e->o->build_files) != 0)
        i++;
    assert(i < n);
    system_row[i].emit(e, out, folder_of(e->a, e->o->stem));
}

/* Targets that CMake or Meson has in every project, and the library that is linked. */
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
