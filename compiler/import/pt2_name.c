/* pt2_name.c -- names of states and sizes in a model.json, and checks of its texts. */
#include "compiler/import/internal.h"
#include <ctype.h>
#include <string.h>

bool pt2_malformed(Pt2 *p, const Json *object, const char *key, const char *want)
{
    return diag_error(p->diag, (Loc){.file = p->doc.file}, "'%s' of %s is not %s", key,
                      json_path(&p->doc, object, p->tmp), want);
}

bool pt2_is_name(const char *s)
{
    return text_is_name(s, '_');
}

const char *pt2_unique(Pt2 *p, const char *name, void *item)
{
    Arena *a = p->program->arena;
    name = arena_str(a, name, strlen(name));
    TableItem *taken = table_at_text(&p->taken, name);
    for (int i = 1; taken->ptr; i++) {
        name = i > 1 ? arena_numbered(a, name, ".", i) /* first by the method, if of another */
                     : arena_printf(a, "%s.%s", p->as ? p->as : p->method, name);
        taken = table_at_text(&p->taken, name);
    }
    taken->ptr = item;
    return name;
}

/* Returns the size that --dim gives to a symbol; NULL: it stays open. */
static const ImportDim *known_size(const Pt2 *p, const char *symbol)
{
    for (int i = 0; i < p->n_dims; i++)
        if (!strcmp(p->dim[i].name, symbol))
            return &p->dim[i];
    return NULL;
}

bool pt2_symbol(Pt2 *p, const char *name, Dim *out)
{
    SizeName *n = table_find_text(&p->symbols, name);
    if (n && !n->is_used) {
        const char *unique = pt2_unique(p, n->text, n);
        const ImportDim *known = known_size(p, unique);
        n->is_used = true;
        n->dim = known ? DIM(known->lo)
                       : dim_symbol(p->program, program_symbol(p->program, unique, n->lo, n->hi));
    }
    if (n)
        *out = n->dim;
    return n != NULL;
}

bool pt2_check_text(Pt2 *p, Archive *z, const char *member, const char *want, bool is_optional)
{
    uint8_t *data;
    size_t n;
    if (!archive_has(z, member))
        return is_optional ||
               diag_error(p->diag, p->loc,
                          "contains no %s: not written by torch.export.save of torch 2.5 or later",
                          member);
    if (!archive_read(z, member, &data, &n))
        return false;
    while (n && isspace(data[n - 1]))
        n--;
    return (n == strlen(want) && !memcmp(data, want, n)) ||
           diag_unsupported(p->diag, p->loc, "%s is '%.*s', expected '%s'", member,
                            n < 20 ? (int)n : 20, (const char *)data, want);
}
