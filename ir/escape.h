/* escape.h -- escapes text from files and arguments that is printed into other text: to terminals,
 * and into HTML, JSON and C.
 *
 * Escaped are control characters, characters that change the direction of a line, characters
 * that would end the string or comment around them, and bytes that are not UTF-8. */
#ifndef ETC_IR_ESCAPE_H
#define ETC_IR_ESCAPE_H

#include "ir/ir.h"

typedef enum EscapeKind {
    ESCAPE_TERMINAL, /* one line: a line feed is escaped too, as \x0a */
    ESCAPE_HTML,     /* the same, within an element or attribute of HTML or SVG */
    ESCAPE_JSON,     /* within a string; bytes that are not UTF-8 become U+FFFD */
    ESCAPE_IR,       /* within a string of the textual IR; parsing gives the same bytes back */
    ESCAPE_C,        /* within a string of C, which has the same bytes; the text is ASCII */
    ESCAPE_COMMENT   /* within a comment of C; what is not ASCII becomes '_' */
} EscapeKind;

const char *escape(Arena *a, EscapeKind kind, const char *s); /* s itself if nothing is escaped */
void escape_put(FILE *out, EscapeKind kind, const char *s, size_t n);

/* Prints a line for people as printf does, but escapes the arguments.  Line feeds at the end of fmt
 * are printed; all others are escaped. */
void say(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_args(FILE *out, const char *fmt, va_list ap);

bool is_utf8(const char *s, size_t n);

#endif
