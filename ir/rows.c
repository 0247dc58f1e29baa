/* rows.c -- build tool: writes the table of ops.def in a compact form, OpInfo of ir.h.
 *
 *     rows OUT.c
 *
 * A row has numbers where ops.def has texts and functions: a text is found in one array, where
 * equal ones are the same, and a function in an array of those of its column.  So nothing in the
 * rows is relocated when the program starts.  Schemas are packed by ir/pack_texts.c. */
#include "ir/pack_texts.h"
#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *id, *target, *out, *schema, *flags, *access, *functional, *inplace, *infer, *decomp,
        *kernel, *expr, *c, *cost, *scratch, *quant;
} Row;

static const Row row[] = {
#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    {#id, target, out, schema, #flags, #access, #functional, #inplace, #infer, #decomp, #kernel,     \
     #expr, #c, #cost, #scratch, #quant},
#include "ir/ops.def"
};

enum { N_ROWS = sizeof row / sizeof *row, MAX_TEXTS = 5 * N_ROWS };

/* Texts in the order in which they were first used. */
typedef struct Texts {
    const char *text[MAX_TEXTS];
    int at[MAX_TEXTS], n, bytes;
} Texts;

static void die(const char *what)
{
    fprintf(stderr, "rows: %s\n", what);
    exit(1);
}

static int find(const Texts *t, const char *s)
{
    int i = 0;
    while (i < t->n && strcmp(t->text[i], s) != 0)
        i++;
    return i;
}

/* Returns the number of a text, and adds the text if it is new. */
static int number(Texts *t, const char *s)
{
    int i = find(t, s);
    if (i == t->n) {
        t->text[t->n++] = s;
        t->at[i] = t->bytes;
        t->bytes += (int)strlen(s) + 1;
    }
    return i;
}

/* Returns the offset of a text in row_text; "none" is at 0. */
static int place(Texts *t, const char *s)
{
    return t->at[number(t, s ? s : "none")];
}

static bool is_some(const char *s)
{
    return s && strcmp(s, "none") != 0;
}

/* Packs the schemas, and sets the offsets of their packed texts. */
static void pack_schemas(Texts *schemas, Packing *p)
{
    for (int i = 0; i < N_ROWS; i++)
        number(schemas, row[i].schema);
    for (int i = 0; i < schemas->n; i++)
        if (!packing_add(p, schemas->text[i]))
            die("the schemas of ops.def are too long");
    packing_run(p);
    schemas->bytes = 0;
    for (int i = 0; i < schemas->n; i++) {
        schemas->at[i] = schemas->bytes;
        schemas->bytes += (int)strlen((const char *)p->byte + schemas->bytes) + 1;
    }
}

/* Writes the places of texts one by one, as the order in which arguments are computed is open. */
static void write_places(FILE *f, Texts *t, const char *a, const char *b)
{
    fprintf(f, "%d, ", place(t, a));
    fprintf(f, "%d, ", place(t, b));
}

static void write_rows(FILE *f, Texts *all, Texts *schemas, Texts *infer, Texts *cost,
                       Texts *scratch)
{
    number(all, "none");
    fprintf(f, "const OpInfo op_info[N_OPS] = {\n");
    for (int i = 0; i < N_ROWS; i++) {
        const Row *r = &row[i];
        fprintf(f, "    {");
        write_places(f, all, r->target, r->out);
        fprintf(f, "%d, %s, ", place(schemas, r->schema), r->flags);
        write_places(f, all, r->kernel, r->expr);
        write_places(f, all, r->c, r->quant);
        fprintf(f, "OP_%s, %s, ACCESS_%s, %d, %d, %d, ", r->functional, r->inplace, r->access,
                number(infer, r->infer), number(cost, r->cost), number(scratch, r->scratch));
        fprintf(f, "%d, %d, %d, %d, %d},\n", is_some(r->decomp), is_some(r->kernel),
                r->out != NULL, is_some(r->c),
                strchr(r->schema, '!') != NULL); /* "(a!)": nothing else has one */
    }
    fprintf(f, "};\n");
    if (all->bytes > 65536 || schemas->bytes > 65536)
        die("the texts of ops.def are too long for offsets of 16 bits");
}

static void write_functions(FILE *f, const char *type, const char *column, const Texts *t)
{
    fprintf(f, "\n%s *const row_%s[] = {\n", type, column);
    for (int i = 0; i < t->n; i++)
        fprintf(f, "    %s_%s,\n", column, t->text[i]);
    fprintf(f, "};\n");
}

/* Writes the texts as numbers, because C does not guarantee such long strings. */
static void write_texts(FILE *f, const Texts *t)
{
    fprintf(f, "\nconst char row_text[] = {");
    for (int i = 0; i < t->n; i++) {
        fputs("\n    ", f);
        for (const char *s = t->text[i]; *s; s++)
            fprintf(f, "%d,", *s);
        fputs("0,", f);
    }
    fprintf(f, "\n};\n");
}

int main(int argc, char **argv)
{
    static Packing packing;
    static Texts all, schemas, infer, cost, scratch;
    FILE *f = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!f)
        die("expects a file that can be written");
    fputs("#include \"ir/internal.h\"\n\n", f);
    pack_schemas(&schemas, &packing);
    packing_write(f, &packing);
    fputs("const PackedTexts row_schemas = {packed, text_of_codes, place_of_code};\n\n", f);
    write_rows(f, &all, &schemas, &infer, &cost, &scratch);
    write_functions(f, "InferFn", "infer", &infer);
    write_functions(f, "CostFn", "cost", &cost);
    write_functions(f, "ScratchFn", "scratch", &scratch);
    write_texts(f, &all);
    return fclose(f) != 0;
}
