/* c_text.c -- growing text, and how comments, numbers and types are spelt in C. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void reserve(Text *t, size_t more)
{
    if (t->n + more + 1 <= t->cap)
        return;
    size_t cap = (t->n + more + 1) * 2;
    char *s = arena_alloc(t->a, cap, 1);
    if (t->n)
        memcpy(s, t->s, t->n);
    t->s = s;
    t->cap = cap;
}

void put_n(Text *t, const char *s, size_t n)
{
    reserve(t, n);
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

void put(Text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    reserve(t, 120);
    int n = vsnprintf(t->s + t->n, t->cap - t->n, fmt, ap);
    if (n > 0 && (size_t)n >= t->cap - t->n) {
        reserve(t, (size_t)n);
        vsnprintf(t->s + t->n, t->cap - t->n, fmt, again);
    }
    t->n += n > 0 ? (size_t)n : 0;
    va_end(again);
    va_end(ap);
}

/* Where a line of `len` characters is broken: behind the last comma or operator before column 100;
 * 0 where it cannot be. */
static size_t break_at(const char *s, size_t len)
{
    size_t at = 0;
    for (size_t i = strspn(s, " ") + 8; i < len && i < 100; i++)
        if (s[i] == ' ' && strchr(",&|", s[i - 1]))
            at = i;
    return len <= 100 ? 0 : at;
}

/* Code has no strings with line ends and no comments longer than a line. */
void put_wrapped(Text *t, const char *s)
{
    while (*s) {
        size_t len = strcspn(s, "\n"), indent = strspn(s, " "), at;
        while (*s != '#' && s[indent] != '*' && (at = break_at(s, len)) != 0) {
            put_n(t, s, at);
            put(t, "\n%*s", (int)indent + 4, "");
            s += at + 1;
            len -= at + 1;
            if (len <= 92 - indent)
                break;
        }
        put_n(t, s, len + (s[len] == '\n'));
        s += len + (s[len] == '\n');
    }
}

/* Names come from the user's model: nothing in them may end the comment, open another, join lines
 * or change the direction of the text. */
void put_comment(Text *t, const char *s)
{
    for (int n = 0; *s && n < 100; s++, n++) {
        bool is_plain = *s >= ' ' && *s < 127 && *s != '\\' && *s != '?';
        bool is_mark = (s[0] == '*' && s[1] == '/') || (s[0] == '/' && s[1] == '*');
        put(t, "%c%s", is_plain ? *s : '_', is_mark ? " " : "");
    }
    if (*s)
        put(t, "...");
}

static void put_number(Text *t, const char *digits, const char *suffix)
{
    put(t, "%s%s%s", digits, strpbrk(digits, ".e") ? "" : ".0", suffix);
}

static void put_special(Text *t, double f, const char *suffix)
{
    if (isnan(f))
        put(t, "__builtin_nan%s(\"\")", suffix);
    else
        put(t, "%s__builtin_inf%s()", f < 0 ? "-" : "", suffix);
}

void put_float(Text *t, float f)
{
    char digits[32];
    if (!isfinite(f)) {
        put_special(t, (double)f, "f");
        return;
    }
    for (int n = 6; n <= 9; n += 3) {
        snprintf(digits, sizeof digits, "%.*g", n, (double)f);
        if (n == 9 || strtof(digits, NULL) == f)
            break;
    }
    put_number(t, digits, "f");
}

void put_double(Text *t, double f)
{
    char digits[40];
    if (!isfinite(f)) {
        put_special(t, f, "");
        return;
    }
    for (int n = 6; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, f);
        if (strtod(digits, NULL) == f)
            break;
    }
    put_number(t, digits, "");
}

void put_int(Text *t, int64_t v)
{
    if (v == INT64_MIN)
        put(t, "(-INT64_C(9223372036854775807) - 1)");
    else if (v > INT32_MAX || v < -INT32_MAX)
        put(t, "INT64_C(%" PRId64 ")", v);
    else
        put(t, "%" PRId64, v);
}

const char *c_type(EtcDtype t)
{
    switch (t) {
    case ETC_F32:
        return "float";
    case ETC_F64:
        return "double";
    case ETC_I8:
        return "int8_t";
    case ETC_I16:
        return "int16_t";
    case ETC_I32:
        return "int32_t";
    case ETC_I64:
        return "int64_t";
    case ETC_U32:
        return "uint32_t";
    case ETC_U64:
        return "uint64_t";
    default:
        return etc_dtype_size((int)t) == 2 ? "uint16_t" : "uint8_t";
    }
}

const char *loc_text(Loc loc, Arena *a)
{
    bool module = loc.module && *loc.module, source = loc.source && *loc.source;
    if (!module && !source)
        return "";
    if (!source)
        return loc.module;
    return module ? arena_printf(a, "%s (%s)", loc.module, loc.source) : loc.source;
}

/* "f32[s0,3]"; strides are the plan's affair. */
void put_type_comment(Text *t, Type type)
{
    char *s = NULL, *to;
    size_t n = 0;
    FILE *f = open_memstream(&s, &n);
    type.stride = NULL;
    type_print(type, f);
    fclose(f);
    to = s;
    for (const char *from = s; *from; from++)
        if (*from != '%')
            *to++ = *from;
    *to = '\0';
    put_comment(t, s);
    free(s);
}
