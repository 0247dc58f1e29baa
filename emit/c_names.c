/* c_names.c -- makes C identifiers from the names of files, weights and values, which may be any
 * text. */
#include "emit/c_emit.h"
#include "ir/table.h"
#include <ctype.h>
#include <inttypes.h>

/* With a prefix and a number, a name has at most the 63 characters that C99 compares. */
enum { MAX_IDENTIFIER = 40 };

/* Keywords of C and C++, and names that compilers and the standard headers define.  A parameter of
 * such a name would not compile, or would cause a warning. */
static const char *const reserved[] = {
    "alignas", "alignof", "and", "and_eq", "arena", "asm", "assert", "auto", "bitand",
    "bitor", "bool", "break", "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class",
    "compl", "complex", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do",
    "double", "dynamic_cast", "else", "enum", "errno", "explicit", "export", "extern", "false",
    "far", "float", "for", "fortran", "friend", "goto", "i386", "if", "imaginary", "inline", "int",
    "linux", "long", "main", "mutable", "namespace", "near", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "state",
    "static", "static_assert", "static_cast", "stderr", "stdin", "stdout", "struct", "switch",
    "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename",
    "typeof", "uint", "ulong", "union", "unix", "unsigned", "ushort", "using", "virtual", "void",
    "volatile", "while", "xor", "xor_eq",
};

static bool starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* Returns whether s is spelt like a macro, such as NULL or INT8_MAX. */
static bool is_like_macro(const char *s)
{
    return strlen(s) > 2 && strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(s);
}

static bool is_reserved(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(s, reserved[i]))
            return true;
    /* Names like those of stdint.h's types, and of kernels, are reserved too. */
    return (n > 2 && !strcmp(s + n - 2, "_t")) || !strncasecmp(s, "etc", 3) || is_like_macro(s);
}

/* Returns whether s is spelt like the name of a constant or function of the file.  A parameter of
 * that name would hide it. */
static bool hides(const char *s)
{
    return starts(s, "w_") || starts(s, "node_") || !strcmp(s, "run");
}

bool c_name_is_free(const char *name, const char **why)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    *why = NULL;
    if (!text_is_name(name, '_') || !isalpha((unsigned char)*name) || strlen(name) > 63)
        *why = "is not a name of C: letters, digits and '_', at most 63";
    else if (is_reserved(name) || hides(name))
        *why = "is a keyword of C or C++, or spelt as names of emitted C or its headers are";
    else if (strspn(name, plain) == strlen(name))
        *why = "may be a function of C's library: give it a name with '_', as mylib_swish";
    return !*why;
}

bool c_bank_is_free(const char *name, const char **why)
{
    static const char *const ours[] = {"kept", "pool", "work", "i"};
    *why = NULL;
    if (!text_is_name(name, '_') || !isalpha((unsigned char)*name) || strlen(name) > 31)
        *why = "is not a name of C: letters, digits and '_', at most 31";
    else if (is_reserved(name) || hides(name))
        *why = "is a keyword of C or C++, or spelt as names of emitted C or its headers are";
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!strcmp(name, ours[i]))
            *why = "is a variable of NAME_run";
    return !*why;
}

char *c_identifier(Arena *a, const char *wish)
{
    size_t n = strlen(wish) < MAX_IDENTIFIER ? strlen(wish) : MAX_IDENTIFIER;
    char *s = arena_str(a, wish, n);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) || (unsigned char)s[i] > 127)
            s[i] = '_';
    return s;
}

char *c_upper(Arena *a, const char *s)
{
    char *up = arena_str(a, s, strlen(s));
    for (char *c = up; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return up;
}

/* -- sets ---------------------------------------------------------------------------------- */

struct NameSet {
    Arena *a;
    Table names; /* by name: the next number to append to it */
};

NameSet *names_new(Arena *a)
{
    NameSet *s = NEW(a, NameSet, 1);
    *s = (NameSet){a, {.arena = a}};
    return s;
}

/* Adds a name.  Returns whether it is new. */
static bool add(NameSet *s, const char *name)
{
    size_t n = s->names.n;
    table_at_text(&s->names, name);
    return s->names.n > n;
}

const char *names_make(NameSet *s, const char *prefix, const char *wish)
{
    const char *base = arena_printf(s->a, "%s%s", prefix, c_identifier(s->a, wish));
    if (is_reserved(base) || !isalpha((unsigned char)base[0]) || (!*prefix && hides(base)))
        base = arena_printf(s->a, "v_%s", base);
    if (add(s, base))
        return base;
    /* The first number to append is the count of names, so the first try is new unless the model
     * has such a name.  A number that was tried is not tried again. */
    int64_t next = table_at_text(&s->names, base)->number, k = (int64_t)s->names.n;
    const char *name;
    for (k = k > next ? k : next; !add(s, name = arena_printf(s->a, "%s_%" PRId64, base, k)); k++)
        continue;
    table_at_text(&s->names, base)->number = k + 1;
    return name;
}

void names_take(NameSet *s, const char *name)
{
    add(s, name);
}

const char *c_model_name(Arena *a, const char *stem)
{
    const char *slash = strrchr(stem, '/');
    char *name = c_identifier(a, slash ? slash + 1 : stem);
    if (!isalpha((unsigned char)name[0]) || !strncasecmp(name, "etc", 3))
        return arena_printf(a, "model_%s", name[0] == '_' ? name + 1 : name);
    return name;
}
