/* escape.h -- text of files and arguments on its way into other text: terminals, HTML, JSON, C.
 *
 * Nowhere does it pass as it is what could steer a terminal, turn the direction of a line, end the
 * string or comment it stands in, or be no UTF-8 at all.
 */
#ifndef ETC_IR_ESCAPE_H
#define ETC_IR_ESCAPE_H

#include "ir/ir.h"

typedef enum EscapeKind {
    ESCAPE_TERMINAL, /* a line: a line's end is escaped too, as \x0a */
    ESCAPE_HTML,     /* the same, within an element or attribute of HTML or SVG */
    ESCAPE_JSON,     /* within a string; bytes that are no UTF-8 become U+FFFD */
    ESCAPE_IR,       /* within a string of the text form, which gives the same bytes back */
    ESCAPE_C,        /* the same within a string of C; ASCII */
    ESCAPE_COMMENT   /* within a comment of C; ASCII, what else there is becomes '_' */
} EscapeKind;

const char *escape(Arena *a, EscapeKind kind, const char *s); /* s itself where it may stand so */
void escape_put(FILE *out, EscapeKind kind, const char *s, size_t n);

/* Prints to a terminal as printf does, but escapes what the arguments hold.  Line ends at the end
 * of fmt are printed, all others are escaped. */
void say(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_args(FILE *out, const char *fmt, va_list ap);

bool is_utf8(const char *s, size_t n);

#endif
