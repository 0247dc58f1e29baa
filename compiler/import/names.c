/* names.c -- a hash table of names. */
#include "compiler/import/internal.h"
#include <string.h>

static struct NameSlot *find(const Names *t, const char *name)
{
    int i = (int)(text_hash(name, strlen(name)) & (uint32_t)(t->cap - 1));
    while (t->slot[i].name && strcmp(t->slot[i].name, name) != 0)
        i = (i + 1) & (t->cap - 1);
    return &t->slot[i];
}

static void enlarge(Names *t)
{
    Names old = *t;
    t->cap = old.cap ? 2 * old.cap : 64;
    t->slot = NEW(t->arena, struct NameSlot, t->cap);
    for (int i = 0; i < old.cap; i++)
        if (old.slot[i].name)
            *find(t, old.slot[i].name) = old.slot[i];
}

void **names_at(Names *t, const char *name)
{
    if (2 * (t->n + 1) > t->cap)
        enlarge(t);
    struct NameSlot *slot = find(t, name);
    if (!slot->name) {
        slot->name = name;
        t->n++;
    }
    return &slot->item;
}

void *names_find(const Names *t, const char *name)
{
    return t->cap ? find(t, name)->item : NULL;
}
