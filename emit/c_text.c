/* c_text.c -- builds texts, and prints comments, numbers and types as C. */
#include "emit/c_emit.h"
#include "ir/escape.h"
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

/* Returns where a line of `len` characters is broken: after the last comma or operator before
 * column 100 that is not in a string; 0: it is short enough, or cannot be broken. */
static size_t break_at(const char *s, size_t len)
{
    size_t at = 0, indent = strspn(s, " ");
    bool in_string = false;
    for (size_t i = indent; i < len && i < 100; i++) {
        in_string = in_string != (s[i] == '"' && (!i || s[i - 1] != '\\'));
        if (i >= indent + 8 && s[i] == ' ' && !in_string && strchr(",&|", s[i - 1]))
            at = i;
    }
    return len <= 100 ? 0 : at;
}

/* Prints lines of code, broken at 100 columns.  Preprocessor lines and lines that begin with '*'
 * are not broken, so a comment in code must not be longer than a line. */
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

/* Prints a text within a comment.  It may be a name of the user's model, so it is escaped and may
 * be cut. */
void put_comment(Text *t, const char *s)
{
    enum { MOST = 100 };
    size_t n = strlen(s);
    if (n > MOST)
        s = arena_printf(t->a, "%.*s...", MOST, s);
    put(t, "%s", escape(t->a, ESCAPE_COMMENT, s));
}

void put_string(Text *t, const char *s)
{
    put(t, "\"%s\"", escape(t->a, ESCAPE_C, s));
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
    for (int n = 6; n <= 9; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, (double)f);
        if (strtof(digits, NULL) == f)
            break;
    }
    put_number(t, digits, "f");
}

static const double power[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46,
};

/* Returns the first nine decimal digits of a normal float above zero, and the exponent of the
 * first.  The error of the product is less than a millionth of the ninth digit, and floats are
 * further apart than two such digits, so the text reads back as f. */
static int64_t nine_digits(double f, int *exponent)
{
    int binary, e;
    assert(f > 0);
    frexp(f, &binary);
    e = (binary - 1) * 1233 / 4096 - (binary < 1); /* by log10 of 2; e may be one too small */
    for (;; e++) {
        double scaled = e <= 8 ? f * power[8 - e] : f / power[e - 8];
        int64_t digits = (int64_t)(scaled + 0.5);
        if (digits < 1000000000) {
            *exponent = e;
            return digits;
        }
    }
}

/* Writes digits[0 .. n) with the exponent e of the first, like "0.00125", "12.5" or "1.25e-09".
 * Returns the end. */
static char *place_point(char *to, const char *digits, int n, int e)
{
    bool is_plain = e >= -5 && e < 9;
    int point = is_plain ? e : 0;
    if (point < 0)
        *to++ = '0', *to++ = '.';
    for (int i = point; i < -1; i++)
        *to++ = '0';
    for (int i = 0; i < n || i <= point; i++) {
        *to++ = i < n ? digits[i] : '0';
        if (i == point)
            *to++ = '.';
    }
    if (to[-1] == '.')
        *to++ = '0';
    return is_plain ? to : to + snprintf(to, 8, "e%d", e);
}

void put_weight(Text *t, float f)
{
    char digits[16], text[64], *end = text;
    int e, n = 9;
    if (!isnormal(f)) {
        put_float(t, f);
        return;
    }
    int64_t nine = nine_digits(fabs((double)f), &e);
    for (int i = 8; i >= 0; i--, nine /= 10)
        digits[i] = (char)('0' + nine % 10);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (f < 0)
        *end++ = '-';
    end = place_point(end, digits, n, e);
    *end++ = 'f';
    put_n(t, text, (size_t)(end - text));
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
    assert(!dtype_is_complex(t));
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

/* Prints a type like "f32[s0,3]", without strides and '%'. */
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

/* -- files ----------------------------------------------------------------------------------- */

void c_file_piece(Arena *a, CFiles *out, int file, OutPiece piece)
{
    assert(file >= 0 && file < out->n && piece.n >= 0 && piece.zeros >= 0);
    OutFile *f = &out->file[file].out;
    PUSH(a, f->piece, f->n, piece);
}

bool c_file_is(const CFile *f, const char *end)
{
    size_t n = strlen(f->suffix), k = strlen(end);
    return n >= k && !strcmp(f->suffix + n - k, end);
}

void c_file(Arena *a, CFiles *out, const char *suffix, const Text *text)
{
    CFile f = {.suffix = suffix};
    PUSH(a, out->file, out->n, f);
    if (text)
        c_file_piece(a, out, out->n - 1, (OutPiece){.data = text->s, .n = (int64_t)text->n});
}
