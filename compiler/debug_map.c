/* debug_map.c -- the debug map of a .pte: which node, module and source line each instruction was
 * made for.
 *
 * It is a JSON file that `etc compile --debug-map` writes and `etc inspect --etdump` reads.
 * Instructions are numbered from 0 in their method, as in profiles of the official runtime.  The
 * nodes within a delegate are numbered by the handles that its profile reports.  The file is not
 * trusted. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "compiler/import/internal.h"
#include <string.h>

/* -- writing ----------------------------------------------------------------------------------- */

static void put_text(FILE *f, const char *key, const char *text, Arena *a)
{
    fprintf(f, ", \"%s\": %s", key, text ? json_text(a, text) : "null");
}

/* Returns the name of a node's op, or the delegate's id if the node calls a delegate. */
static const char *op_of(const Node *n)
{
    const PartitionReport *r = n->graph->program->session->partition;
    for (int i = 0; r && n->op == OP_DELEGATE && i < r->n_regions; i++)
        if (r->region[i].body == region_next(n, NULL))
            return r->region[i].backend->id;
    return node_target(n);
}

static void put_node(FILE *f, const Node *n, Arena *a)
{
    put_text(f, "node", n ? n->loc.node : NULL, a);
    put_text(f, "op", n ? op_of(n) : NULL, a);
    put_text(f, "module", n ? n->loc.module : NULL, a);
    put_text(f, "source", n ? n->loc.source : NULL, a);
}

/* Writes the nodes of a delegate's region, or an empty list for other nodes. */
static void put_parts(FILE *f, const Node *n, Arena *a)
{
    const Graph *body = n && n->op == OP_DELEGATE ? region_next(n, NULL) : NULL;
    int handle = 0;
    fputs(", \"nodes\": [", f);
    for (const Node *part = body ? body->first : NULL; part; part = part->next, handle++) {
        fprintf(f, "%s{\"handle\": %d", comma(handle), handle);
        put_node(f, part, a);
        putc('}', f);
    }
    fputs("]}", f);
}

bool debug_map_add(const Options *o, const PteStats *s, OutBatch *out, Arena *a, Diag *d)
{
    Text t;
    if (text_open(&t)) {
        fputs("{\"schema\": 1, \"kind\": \"debug map\", \"methods\": [", t.f);
        for (int i = 0; i < s->n_sources; i++) {
            fprintf(t.f, "%s{\"name\": %s, \"instructions\": [", comma(i),
                    json_text(a, s->source[i].method));
            for (int k = 0; k < s->source[i].n; k++) {
                fprintf(t.f, "%s\n{\"index\": %d", k ? "," : "", k);
                put_node(t.f, s->source[i].node[k], a);
                put_parts(t.f, s->source[i].node[k], a);
            }
            fputs("]}", t.f);
        }
        fputs("]}\n", t.f);
    }
    return output_text(o, out, &t, o->debug_map, d);
}

/* -- reading ----------------------------------------------------------------------------------- */

static DebugNode read_node(const Json *v)
{
    return (DebugNode){json_string(json_get(v, "node")), json_string(json_get(v, "op")),
                       json_string(json_get(v, "module")), json_string(json_get(v, "source"))};
}

/* Checks that item i of a list has the number i: instruction i, or handle i within one. */
static bool has_number(const Json *v, const char *key, int i)
{
    int64_t number;
    return json_int(json_get(v, key), &number) && number == i;
}

static bool read_instruction(const Json *v, int i, DebugInstruction *to, Arena *a)
{
    *to = (DebugInstruction){.node = read_node(v)};
    if (!has_number(v, "index", i))
        return false;
    for (JsonIter it = json_iter(json_get(v, "nodes")); json_next(&it);) {
        DebugNode n = read_node(it.value);
        if (!has_number(it.value, "handle", to->n_parts))
            return false;
        PUSH(a, to->part, to->n_parts, n);
    }
    return true;
}

static const Json *method_of(const Json *methods, const char *name)
{
    const Json *only = NULL;
    for (JsonIter it = json_iter(methods); json_next(&it);) {
        const char *is = json_string(json_get(it.value, "name"));
        if (is && !strcmp(is, name ? name : "forward"))
            return it.value;
        only = it.value;
    }
    return !name && json_count(methods) == 1 ? only : NULL;
}

bool debug_map_read(const Options *o, DebugMap *out, Arena *a, Diag *d)
{
    const uint8_t *data;
    size_t n;
    JsonDoc doc;
    const Loc loc = {.file = o->map};
    *out = (DebugMap){0};
    if (!file_map(o->files, o->map, &data, &n, d) || !json_parse(a, o->map, data, n, d, &doc))
        return false;
    const Json *methods = json_get(doc.root, "methods"), *m = method_of(methods, o->method);
    if (!json_is_array(methods))
        return diag_error(d, loc, "has no 'methods': it is not what etc compile --debug-map writes");
    if (!m)
        return diag_error(d, loc, "has no method '%s'; --method NAME says which one was run",
                          o->method ? o->method : "forward");
    for (JsonIter it = json_iter(json_get(m, "instructions")); json_next(&it);) {
        DebugInstruction x;
        if (!read_instruction(it.value, out->n, &x, a))
            return diag_error(d, loc, "instruction %d is not what etc compile --debug-map writes",
                              out->n);
        PUSH(a, out->item, out->n, x);
    }
    return true;
}
