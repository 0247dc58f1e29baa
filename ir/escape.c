/* escape.c -- which characters are escaped in each kind of text, and how. */
#include "ir/escape.h"
#include <string.h>

/* -- characters ---------------------------------------------------------------------------- */

enum { NO_UTF8 = 0x110000 };

/* Reads the character at s, which has `left` bytes, and returns its length.  A byte that is not
 * UTF-8 gives NO_UTF8; so do overlong forms, surrogates and numbers above U+10FFFF. */
static size_t decode(const char *s, size_t left, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s;
    size_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    *c = n > 1 ? *p & (0x7fu >> n) : *p;
    bool ok = n && n <= left;
    for (size_t i = 1; ok && i < n; i++) {
        ok = p[i] >> 6 == 2;
        *c = *c << 6 | (p[i] & 0x3f);
    }
    ok = ok && *c >= least[n] && *c < NO_UTF8 && (*c < 0xd800 || *c > 0xdfff);
    if (!ok)
        *c = NO_UTF8;
    return ok ? n : 1;
}

bool is_utf8(const char *s, size_t n)
{
    uint32_t c = 0;
    for (const char *end = s + n; s < end && c != NO_UTF8;)
        s += *s > 0 ? 1 : decode(s, (size_t)(end - s), &c);
    return c != NO_UTF8;
}

/* Returns whether c controls a terminal or how text is laid out.  U+061C, U+200E and U+200F mark a
 * direction.  U+2028 to U+202E and U+2066 to U+2069 separate lines, or embed, override and isolate
 * directions. */
static bool is_control(uint32_t c)
{
    return c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* -- one character -------------------------------------------------------------------------- */

enum { MAX_ESCAPE = 8 };

/* Writes the escape of a character of n bytes that is escaped in all kinds of text.  Kinds that
 * escape by bytes escape only its first byte.  Returns how many bytes were escaped. */
static size_t put_code(EscapeKind kind, uint8_t byte, uint32_t c, size_t n, char to[MAX_ESCAPE])
{
    bool by_byte = kind == ESCAPE_IR || (kind != ESCAPE_JSON && (c < 0x80 || c == NO_UTF8));
    uint32_t code = kind == ESCAPE_JSON && c == NO_UTF8 ? 0xfffd : c;
    snprintf(to, MAX_ESCAPE, by_byte ? "\\x%02x" : "\\u%04x", by_byte ? byte : (unsigned)code);
    return by_byte ? 1 : n;
}

/* Returns whether an ASCII character that is printable is escaped in this kind of text. */
static bool is_special(EscapeKind kind, const char *s)
{
    static const char *const set[] = {"", "<>&\"'", "\"\\", "\"\\", "\"\\?", "\\?"};
    bool is_mark = (s[0] == '*' && s[1] == '/') || (s[0] == '/' && s[1] == '*');
    return strchr(set[kind], *s) || (kind == ESCAPE_COMMENT && is_mark);
}

static void put_special(EscapeKind kind, char c, char to[MAX_ESCAPE])
{
    if (kind == ESCAPE_HTML)
        snprintf(to, MAX_ESCAPE, "&#%d;", c);
    else if (kind == ESCAPE_C)
        snprintf(to, MAX_ESCAPE, "\\%03o", (unsigned)c);
    else if (kind == ESCAPE_COMMENT)
        snprintf(to, MAX_ESCAPE, "%s", c == '*' ? "* " : c == '/' ? "/ " : "_");
    else
        snprintf(to, MAX_ESCAPE, "\\%c", c);
}

/* Writes the escape of the character at s to `to`, or "" if it is not escaped.  At s are n bytes
 * and a NUL.  Returns how many bytes the character has. */
static size_t next(EscapeKind kind, const char *s, size_t n, char to[MAX_ESCAPE])
{
    uint32_t c;
    *to = '\0';
    if (*s >= ' ' && *s < 127) {
        if (is_special(kind, s))
            put_special(kind, *s, to);
        return 1;
    }
    if (kind == ESCAPE_C || kind == ESCAPE_COMMENT) {
        snprintf(to, MAX_ESCAPE, kind == ESCAPE_C ? "\\%03o" : "_", (unsigned char)*s);
        return 1;
    }
    size_t len = decode(s, n, &c);
    return c == NO_UTF8 || is_control(c) ? put_code(kind, (uint8_t)*s, c, len, to) : len;
}

/* -- texts ------------------------------------------------------------------------------------ */

void escape_put(FILE *out, EscapeKind kind, const char *s, size_t n)
{
    char to[MAX_ESCAPE];
    const char *plain = s, *end = s + n;
    while (s < end) {
        size_t len = next(kind, s, (size_t)(end - s), to);
        if (*to) {
            fwrite(plain, 1, (size_t)(s - plain), out);
            fputs(to, out);
            plain = s + len;
        }
        s += len;
    }
    fwrite(plain, 1, (size_t)(s - plain), out);
}

const char *escape(Arena *a, EscapeKind kind, const char *s)
{
    char to[MAX_ESCAPE], *text = NULL, *end = NULL;
    size_t n = strlen(s);
    for (size_t i = 0, len; i < n; i += len) {
        len = next(kind, s + i, n - i, to);
        if (*to && !text) {
            text = NEW(a, char, i + (n - i) * (MAX_ESCAPE - 1) + 1);
            memcpy(text, s, i);
            end = text + i;
        }
        if (text) {
            memcpy(end, *to ? to : s + i, *to ? strlen(to) : len);
            end += *to ? strlen(to) : len;
        }
    }
    return text ? text : s;
}

void say_args(FILE *out, const char *fmt, va_list ap)
{
    Arena *a = arena_new();
    const char *s = arena_print(a, fmt, ap);
    size_t n = strlen(s), len = strlen(fmt), ends = 0;
    while (ends < len && ends < n && fmt[len - 1 - ends] == '\n')
        ends++;
    escape_put(out, ESCAPE_TERMINAL, s, n - ends);
    fwrite(s + n - ends, 1, ends, out);
    arena_free(a);
}

void say(FILE *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_args(out, fmt, ap);
    va_end(ap);
}
