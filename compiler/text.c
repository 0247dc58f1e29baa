/* text.c -- functions that the commands share: JSON strings, numbers for people and from them, the head
 * of a page, the clock, messages of runtime-lite. */
#include "compiler/compiler.h"
#include "compiler/import/internal.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

const char *json_text(Arena *a, const char *s)
{
    return arena_printf(a, "\"%s\"", escape(a, ESCAPE_JSON, s));
}

const char *comma(int i)
{
    return i ? ", " : "";
}

const char *tensor_shown(Arena *a, const EtcTensor *t)
{
    const char *s = arena_printf(a, "%s[", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        s = arena_printf(a, "%s%s%d", s, i ? "," : "", (int)t->dim[i]);
    return arena_printf(a, "%s]", s);
}

const char *type_shown(Arena *a, Type t)
{
    Text text;
    if (text_open(&text))
        type_print(t, text.f);
    const char *shown = text_close(&text, a);
    return shown ? shown : "?";
}

bool file_exists(const char *path)
{
    struct stat st;
    return !strcmp(path, "-") || stat(path, &st) == 0;
}

void html_put(FILE *f, const char *s)
{
    if (s)
        escape_put(f, ESCAPE_HTML, s, strlen(s));
}

static const char style[] =
    "body{font:14px sans-serif;color:#111;margin:24px}h1{font-size:20px;font-weight:normal}"
    "h2{font-size:16px;margin-top:32px}table{border-collapse:collapse}"
    "td,th{padding:4px 12px;border-bottom:1px solid #e4e4e4;text-align:left;vertical-align:top}"
    "th{color:#666;font-weight:normal}td.n{text-align:right;white-space:nowrap}"
    "span{font-size:11px;color:#666}summary{padding:8px 0;cursor:pointer;color:#1f4fd6}"
    ".scroll{overflow-x:auto}.time{height:8px;background:#4e79a7}"
    ".damage{height:8px;background:#e15759}.bar{fill:#4e79a7}.kept{fill:#e8f0e8}"
    ".failed{background:#fdecea}";

void page_head(FILE *f, const char *title, const char *what)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", f);
    html_put(f, title);
    fprintf(f, ": %s</title>\n<style>%s</style></head><body>\n<h1>", what, style);
    html_put(f, title);
    fputs("</h1>\n", f);
}

const char *with_commas(Arena *a, int64_t n)
{
    const char *digits = arena_printf(a, "%" PRId64, n);
    size_t len = strlen(digits), k = 0;
    char *out = NEW(a, char, len + len / 3 + 1);
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[k++] = ',';
        out[k++] = digits[i];
    }
    return out;
}

const char *in_units(Arena *a, double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 4; u++)
        bytes /= 1024;
    return arena_printf(a, bytes < 10 && u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
}

bool parse_bound(const char *s, const char **end, int64_t *v)
{
    char *to;
    errno = 0;
    *v = strtoll(s, &to, 10);
    *end = to;
    return to != s && !errno;
}

bool parse_range(const char *s, int64_t *lo, int64_t *hi)
{
    if (!parse_bound(s, &s, lo))
        return false;
    *hi = *lo;
    bool is_one = !*s;
    return (is_one || (!strncmp(s, "..", 2) && parse_bound(s + 2, &s, hi) && !*s)) && 0 <= *lo &&
           *lo <= *hi;
}

bool parse_amount(const char *s, int64_t step, int64_t *n)
{
    static const char unit[] = "KMGT";
    if (*s < '0' || *s > '9' || !parse_bound(s, &s, n))
        return false;
    const char *at = *s ? strchr(unit, *s) : NULL;
    for (const char *u = unit; at && u <= at; u++)
        if (!mul_ok(*n, step, n))
            return false;
    return !s[at != NULL];
}

bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

void say_lines(FILE *out, const char *text, Arena *a)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        say(out, "%s\n", arena_str(a, text, n));
        text += n + (text[n] == '\n');
    }
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool runtime_failed(const char *file, const EtcError *e, Diag *d)
{
    Fault fault = e->status == ETC_UNSUPPORTED ? FAULT_UNSUPPORTED : FAULT_MODEL;
    char at[64] = "";
    if (e->index >= 0)
        snprintf(at, sizeof at, " (instruction, value or input %lld)", (long long)e->index);
    return diag_fault(d, fault, (Loc){.file = file}, "%s%s%s%s%s%s", e->name ? e->name : "",
                      e->overload && *e->overload ? "." : "", e->overload ? e->overload : "",
                      e->name ? ": " : "", e->what ? e->what : "fails", at);
}

const char *json_finite(double x, Arena *a)
{
    return isfinite(x) ? arena_printf(a, "%.9g", x) : "null";
}

double json_float_at(const Json *of, const char *key)
{
    double v = 0;
    return json_float(json_get(of, key), &v) ? v : (double)NAN;
}
