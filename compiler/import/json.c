/* json.c -- JSON documents as a tree to walk; the one file that knows yyjson.
 *
 * yyjson reads without recursion and checks syntax, UTF-8 and number ranges.  It puts all values
 * into one array of items of 16 bytes, in which a container precedes its content and knows its end.
 * So a walk over the array meets every object, and the path of a value follows from its address,
 * without parent pointers and without recursion. */
#include "compiler/import/internal.h"
#include <math.h>
#include <string.h>
#include <yyjson.h>

_Static_assert(YYJSON_PADDING_SIZE <= JSON_ROOM, "yyjson needs more room");

/* -- checks ------------------------------------------------------------------------------ */

static yyjson_val *val(const Json *v)
{
    return (yyjson_val *)(uintptr_t)v; /* yyjson's getters take no const */
}

static const Json *json(yyjson_val *v)
{
    return (const Json *)(const void *)v;
}

static bool same_key(yyjson_val *a, yyjson_val *b)
{
    size_t n = unsafe_yyjson_get_len(a);
    return n == unsafe_yyjson_get_len(b) &&
           !memcmp(unsafe_yyjson_get_str(a), unsafe_yyjson_get_str(b), n);
}

static yyjson_val *next_key(yyjson_val *key)
{
    return unsafe_yyjson_get_next(key + 1);
}

/* Returns a hash of the key as one of 64 bits. */
static uint64_t bit_of(yyjson_val *key)
{
    size_t n = unsafe_yyjson_get_len(key);
    const char *s = unsafe_yyjson_get_str(key); /* with a zero at its end */
    return (uint64_t)1 << ((5 * n + 3 * (unsigned char)s[0] + (unsigned char)s[n / 2]) & 63);
}

/* Returns the repeated key of a small object; NULL: there is none. */
static yyjson_val *find_repeated(yyjson_val *object, size_t n)
{
    yyjson_val *a = object + 1;
    uint64_t seen = bit_of(a), bit;
    for (size_t i = 1; i < n; i++, seen |= bit) {
        a = next_key(a);
        bit = bit_of(a);
        yyjson_val *b = object + 1;
        for (size_t k = 0; k < i && seen & bit; k++, b = next_key(b))
            if (same_key(a, b))
                return a;
    }
    return NULL;
}

/* Finds a key that a large object has twice, through a table. */
static yyjson_val *find_repeated_in(yyjson_val *object, size_t n, Arena *a)
{
    Table keys = {.arena = a};
    yyjson_val *key = object + 1;
    table_reserve(&keys, n);
    for (size_t i = 0; i < n; i++, key = next_key(key)) {
        table_at(&keys, unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key));
        if (keys.n == i)
            return key;
    }
    return NULL;
}

static bool check_keys(const JsonDoc *doc, size_t n_values, Arena *a)
{
    enum { SMALL = 16 };
    yyjson_val *v = val(doc->root), *end = v + n_values;
    for (; v < end; v++) {
        size_t n = unsafe_yyjson_is_obj(v) ? unsafe_yyjson_get_len(v) : 0;
        if (n < 2)
            continue;
        yyjson_val *key = n <= SMALL ? find_repeated(v, n) : find_repeated_in(v, n, a);
        if (key)
            return diag_error(doc->diag, (Loc){.file = doc->file}, "%s has the key '%.60s' twice",
                              json_path(doc, json(v), a), unsafe_yyjson_get_str(key));
    }
    return true;
}

static void *take(void *a, size_t n)
{
    return arena_bytes(a, n);
}

static void *take_more(void *a, void *data, size_t n, size_t more)
{
    return memcpy(arena_bytes(a, more), data, n);
}

static void leave(void *a, void *data)
{
    (void)a, (void)data; /* the arena is freed as a whole */
}

bool json_parse_here(Arena *a, const char *file, uint8_t *data, size_t n, bool has_words, Diag *d,
                     JsonDoc *doc)
{
    yyjson_read_err e;
    yyjson_alc in_arena = {take, take_more, leave, a};
    uint8_t after[JSON_ROOM];
    Loc loc = {.file = file};
    *doc = (JsonDoc){.file = file, .diag = d};
    if (!n)
        return diag_error(d, loc, "is empty, expected JSON");
    memcpy(after, data + n, sizeof after);
    memset(data + n, 0, sizeof after);
    yyjson_doc *y = yyjson_read_opts(
        (char *)data, n, YYJSON_READ_INSITU | (has_words ? YYJSON_READ_ALLOW_INF_AND_NAN : 0),
        &in_arena, &e);
    memcpy(data + n, after, sizeof after);
    if (!y)
        return diag_error(d, loc, "not JSON at byte %zu: %s", e.pos, e.msg);
    doc->root = json(yyjson_doc_get_root(y));
    if (!json_is_object(doc->root))
        return diag_error(d, loc, "the JSON is not an object");
    return check_keys(doc, yyjson_doc_get_val_count(y), a);
}

bool json_parse(Arena *a, const char *file, const uint8_t *data, size_t n, Diag *d, JsonDoc *doc)
{
    uint8_t *copy = arena_bytes(a, n + JSON_ROOM);
    if (n) /* an empty file has no bytes */
        memcpy(copy, data, n);
    return json_parse_here(a, file, copy, n, false, d, doc);
}

/* -- walking ----------------------------------------------------------------------------- */

const Json *json_get_n(const Json *object, const char *key, size_t len)
{
    if (!json_is_object(object))
        return NULL;
    yyjson_val *k = val(object) + 1;
    for (int n = json_count(object); n; n--, k = next_key(k))
        if (unsafe_yyjson_get_len(k) == len && !memcmp(unsafe_yyjson_get_str(k), key, len))
            return unsafe_yyjson_is_null(k + 1) ? NULL : json(k + 1);
    return NULL;
}

void json_find(const Json *v, const char *key, JsonSeen *seen, void *with)
{
    size_t n = strlen(key);
    yyjson_val *at = val(v), *end = at ? unsafe_yyjson_get_next(at) : NULL;
    for (; at < end; at++) {
        yyjson_val *k = at + 1;
        size_t left = unsafe_yyjson_is_obj(at) ? unsafe_yyjson_get_len(at) : 0;
        for (; left; left--, k = next_key(k))
            if (unsafe_yyjson_get_len(k) == n && !memcmp(unsafe_yyjson_get_str(k), key, n))
                seen(json(k + 1), with);
    }
}

bool json_is_object(const Json *v)
{
    return yyjson_is_obj(val(v));
}

bool json_is_array(const Json *v)
{
    return yyjson_is_arr(val(v));
}

bool json_is_string(const Json *v)
{
    return yyjson_is_str(val(v));
}

int json_count(const Json *v)
{
    return json_is_object(v) || json_is_array(v) ? (int)unsafe_yyjson_get_len(val(v)) : 0;
}

bool json_int(const Json *v, int64_t *out)
{
    yyjson_val *y = val(v);
    if (!y || !unsafe_yyjson_is_int(y) ||
        (unsafe_yyjson_is_uint(y) && unsafe_yyjson_get_uint(y) > INT64_MAX))
        return false;
    *out = unsafe_yyjson_get_sint(y);
    return true;
}

bool json_float(const Json *v, double *out)
{
    yyjson_val *y = val(v);
    if (!y)
        return false;
    const char *s = json_string(v);
    if (s && (!strcmp(s, "NaN") || !strcmp(s, "Infinity") || !strcmp(s, "-Infinity"))) {
        *out = *s == 'N' ? (double)NAN : *s == 'I' ? (double)INFINITY : (double)-INFINITY;
        return true;
    }
    if (!unsafe_yyjson_is_num(y))
        return false;
    *out = unsafe_yyjson_get_num(y);
    return true;
}

bool json_bool(const Json *v, bool *out)
{
    yyjson_val *y = val(v);
    if (!y || !unsafe_yyjson_is_bool(y))
        return false;
    *out = unsafe_yyjson_get_bool(y);
    return true;
}

/* Returns a string that contains no NUL, so that C sees all of it, else NULL. */
static const char *plain(yyjson_val *v)
{
    const char *s = unsafe_yyjson_get_str(v);
    return strlen(s) == unsafe_yyjson_get_len(v) ? s : NULL;
}

const char *json_string(const Json *v)
{
    return json_is_string(v) ? plain(val(v)) : NULL;
}

JsonIter json_iter(const Json *v)
{
    return (JsonIter){
        .next = v ? json(val(v) + 1) : NULL, .left = json_count(v), .in_object = json_is_object(v)};
}

bool json_next(JsonIter *it)
{
    if (!it->left)
        return false;
    it->left--;
    yyjson_val *v = val(it->next);
    it->key = it->in_object ? plain(v) : NULL;
    v += it->in_object;
    it->value = json(v);
    it->next = json(unsafe_yyjson_get_next(v));
    return true;
}

const char *json_tag(const Json *v, const Json **content)
{
    JsonIter it = json_iter(v);
    if (it.left != 1 || !it.in_object)
        return NULL;
    json_next(&it);
    *content = it.value;
    return it.key;
}

const char *json_path(const JsonDoc *doc, const Json *target, Arena *a)
{
    const char *path = "";
    const Json *at = doc->root;
    while (at != target && json_count(at)) {
        int index = 0;
        JsonIter it = json_iter(at);
        for (; json_next(&it) && val(it.next) <= val(target); index++)
            continue;
        if (it.in_object)
            path = arena_printf(a, "%s%s%.80s", path, *path ? "." : "", it.key ? it.key : "?");
        else
            path = arena_printf(a, "%s[%d]", path, index);
        at = it.value;
    }
    return *path ? path : "the root";
}
