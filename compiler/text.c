/* text.c -- functions that the commands share: JSON strings, numbers for people, the clock,
 * messages of runtime-lite. */
#include "compiler/compiler.h"
#include "compiler/import/internal.h"
#include <inttypes.h>
#include <math.h>
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
