/* banks.c -- the memories that --bank names. */
#include "compiler/compiler.h"
#include <ctype.h>
#include <string.h>

static char *in_small_letters(Arena *a, const char *s, size_t n)
{
    char *small = arena_str(a, s, n);
    for (char *c = small; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return small;
}

/* Checks that s can name a section of an ELF file.  No character of it can end a string of C. */
static bool is_section(const char *s)
{
    return *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$") ==
                     strlen(s);
}

/* Reads the attribute of a bank: "const" or "const,section=.ext_flash".  If it is wrong, returns
 * false, and *why says what is expected. */
static bool read_attribute(const char *s, MemoryBank *b, const char **why)
{
    static const char section[] = "const,section=";
    if (!strcmp(s, "const"))
        return true;
    *why = "the size may be followed by :const or :const,section=NAME";
    if (strncmp(s, section, strlen(section)) != 0)
        return false;
    b->section = s + strlen(section);
    *why = "a section has a name of letters, digits, '_', '.' and '$'";
    return is_section(b->section);
}

bool bank_parse(const char *text, Arena *a, MemoryBank *b, bool *is_const, const char **why)
{
    const char *equals = strchr(text, '='), *colon = strchr(text, ':');
    *b = (MemoryBank){0};
    *is_const = colon;
    *why = "expects NAME=SIZE[:const[,section=NAME]]";
    if (!equals || (colon && colon < equals))
        return false;
    b->name = in_small_letters(a, text, (size_t)(equals - text));
    if (!c_bank_is_free(b->name, why)) {
        *why = arena_printf(a, "'%s' %s", b->name, *why);
        return false;
    }
    size_t n = colon ? (size_t)(colon - equals - 1) : strlen(equals + 1);
    *why = "a size is a number from 1 on, optionally with K, M, G or T after it";
    if (!parse_amount(arena_str(a, equals + 1, n), 1024, &b->bytes) || b->bytes < 1)
        return false;
    return !colon || read_attribute(colon + 1, b, why);
}

bool banks_read(const Options *o, Session *s, Diag *d)
{
    for (int i = 0; i < o->banks.n; i++) {
        MemoryBank b;
        bool is_const;
        const char *why;
        bool ok = bank_parse(o->banks.item[i], s->arena, &b, &is_const, &why);
        assert(ok);
        (void)ok;
        for (int k = 0; k < s->ram.n + s->rom.n; k++) {
            const MemoryBank *other = k < s->ram.n ? &s->ram.item[k] : &s->rom.item[k - s->ram.n];
            if (!strcmp(other->name, b.name))
                return diag_fault(d, FAULT_USAGE, (Loc){0}, "--bank names '%s' twice", b.name);
        }
        MemoryBanks *to = is_const ? &s->rom : &s->ram;
        PUSH(s->arena, to->item, to->n, b);
    }
    if (s->rom.n && o->weights_as && !strcmp(o->weights_as, "incbin"))
        return diag_fault(
            d, FAULT_USAGE, (Loc){0},
            "--weights-as incbin makes one block of all constants, which goes into no bank");
    return true;
}

int64_t banks_missing(const CFiles *f)
{
    int64_t bytes = 0;
    for (int i = 0; i < f->n_banks; i++)
        if (!f->bank[i].is_const && f->bank[i].bytes > f->bank[i].size)
            bytes += f->bank[i].bytes - f->bank[i].size;
    return bytes;
}

static void note_missed(const CBank *b, Diag *d)
{
    enum { MOST = 8 };
    for (int i = 0; i < b->n_missed && i < MOST; i++)
        diag_note(d, "does not fit: %s", b->missed[i]);
    if (b->n_missed > MOST)
        diag_note(d, "does not fit: %d more", b->n_missed - MOST);
}

bool banks_suffice(const CFiles *f, const Program *p, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < f->n_banks; i++) {
        const CBank *b = &f->bank[i];
        if (b->bytes <= b->size)
            continue;
        ok = diag_error(d, (Loc){.file = p->name},
                        "bank '%s' has %lld bytes but needs %lld; --bank %s=%lld%s%s%s would "
                        "fit",
                        b->name, (long long)b->size, (long long)b->bytes, b->name,
                        (long long)b->bytes, b->is_const ? ":const" : "",
                        b->section ? ",section=" : "", b->section ? b->section : "");
        for (int k = 0; k < f->n_banks; k++)
            if (f->bank[k].is_const == b->is_const)
                diag_note(d, "bank '%s' has %lld bytes and needs %lld", f->bank[k].name,
                          (long long)f->bank[k].size, (long long)f->bank[k].bytes);
        note_missed(b, d);
    }
    return ok;
}
