/* config.h -- the YAML files that a command reads. */
#ifndef ETC_COMPILER_CONFIG_H
#define ETC_COMPILER_CONFIG_H

#include "compiler/compiler.h"

/* -- config.c: YAML ------------------------------------------------------------------------- */

typedef enum YamlKind {
    YAML_SCALAR,
    YAML_LIST,
    YAML_MAP,
    YAML_BROKEN /* a part that was refused and reported */
} YamlKind;

typedef struct Yaml Yaml;
struct Yaml {
    YamlKind kind;
    const char *file;
    int line, column;
    const char *text; /* the value of a scalar */
    bool is_plain;    /* a scalar without quotes */
    bool has_lines;   /* a scalar in lines after '|' */
    const char *key;  /* the key, for a value in a map; else NULL */
    int key_line, key_column;
    Yaml *first, *next; /* the first item of a list or map, and the next one in its own */
    int n;
};

/* Parses a text with one document into a tree in `a`.  Parts of the tree may be YAML_BROKEN; then
 * errors were reported.  NULL: the text cannot be read at all. */
const Yaml *yaml_parse(Arena *a, const char *file, const uint8_t *data, size_t n, Diag *d);
Loc yaml_loc(const Yaml *y);
Loc yaml_key_loc(const Yaml *y);
/* Checks that y is of this kind.  Messages call it `want`. */
MUST_USE bool yaml_is(const Yaml *y, YamlKind kind, const char *want, Arena *a, Diag *d);
/* Sets found[i] to the value of key i in the map, or NULL.  Reports other keys. */
MUST_USE bool yaml_map(const Yaml *map, const char *const *key, int n, const Yaml **found, Arena *a,
                       Diag *d);
/* Reports that the map lacks the key if y, the value of the key, is NULL. */
void yaml_need(const Yaml *map, const Yaml *y, const char *key, Diag *d);

/* -- custom.c -------------------------------------------------------------------------------- */

/* Reads the files of --ops; *out is NULL if there are none.  Reports all mistakes. */
MUST_USE bool custom_read(const Options *o, Arena *a, const CustomOps **out, Diag *d);
/* Adds the operators that the n bytes of such a file describe. */
MUST_USE bool custom_parse(const char *file, const uint8_t *data, size_t n, CustomOps *to, Diag *d);

/* -- manifest.c ------------------------------------------------------------------------------ */

typedef struct Manifest { /* the contents of one build of the runtime */
    Table names;          /* kernels and delegates */
    bool has_all_kernels;
} Manifest;

/* Reads the files of --manifest and joins their contents; *out is NULL if there are none.  Reports
 * all mistakes. */
MUST_USE bool manifest_read(const Options *o, Arena *a, Manifest **out, Diag *d);
/* Adds the contents of the n bytes of such a file to `to`, which has an arena. */
MUST_USE bool manifest_parse(const char *file, const uint8_t *data, size_t n, Manifest *to,
                             Diag *d);
bool manifest_has(const Manifest *m, const char *name);

/* -- recipes.c ------------------------------------------------------------------------------ */

typedef struct RecipePreset {
    const char *name, *help, *text;
} RecipePreset;

extern const RecipePreset recipe_preset[];
extern const int n_recipe_presets;
bool recipe_is_preset(const char *name);

/* Reads a preset, or a file with a recipe.  Reports all mistakes. */
MUST_USE bool recipe_read(Files *files, const char *name, Arena *a, Recipe *out, Diag *d);
MUST_USE bool recipe_parse(const char *file, const uint8_t *data, size_t n, Arena *a, Recipe *out,
                           Diag *d);
/* Parses the value of --max-drop, METRIC=VALUE, into *out.  Reports nothing. */
bool recipe_set_budget(const char *text, Recipe *out);

#endif
