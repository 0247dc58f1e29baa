/* texts.c -- build tool: turns a file of rules into a table of passes/composite.h.
 *
 *     texts OUT.c composites composites.txt
 *
 * A rule begins at a line's start with the names it is of, "a, b = ..." or "a, b:", or with
 * those of a function, "def f(x, y): ..."; it ends before the next.  Names go on in the next
 * line behind a comma.  Comments and blank lines go.  The texts are packed by ir/pack_texts.c. */
#include "ir/pack_texts.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 4000, MAX_LINE = 1000 };

typedef struct Rule {
    char *name, *text;
    int of; /* as the table has it */
    int shared; /* the first rule of that text */
    size_t at;  /* of its text in `packing` */
} Rule;

static Rule rule[MAX_RULES];
static int n_rules;

static const char *const target[] = {
#define OP(id, target, ...) target,
#include "ir/ops.def"
};
enum { N_OPS = sizeof target / sizeof *target };
_Static_assert(4 * N_OPS <= 65536, "what a rule is of has 16 bits");

static Packing packing;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "texts: %s: %s\n", which, what);
    exit(1);
}

static char *copied(const char *s, size_t n)
{
    char *to = calloc(n + 1, 1);
    if (!to)
        die("no memory", s);
    memcpy(to, s, n);
    return to;
}

static int number_of(const char *operator)
{
    int op = 0;
    while (op < N_OPS && strcmp(target[op], operator) != 0)
        op++;
    return op;
}

/* Finds the operator of a rule.  If the operator tells the name of the rule, the name is dropped. */
static void find_operator(Rule *r)
{
    static const char *const kind[] = {"", "kernel.", "complex."};
    char target_of_word[MAX_LINE + 20];
    for (int i = 2; i >= 0; i--) {
        size_t n = strlen(kind[i]);
        int op = strncmp(r->name, kind[i], n) ? N_OPS : number_of(r->name + n);
        if (op < N_OPS) {
            r->of = N_OPS * i + op;
            *r->name = '\0';
            return;
        }
    }
    snprintf(target_of_word, sizeof target_of_word, "aten.%.*s.default",
             (int)strcspn(r->name, "."), r->name);
    r->of = number_of(target_of_word);
    if (r->of == N_OPS)
        die("is of no operator", r->name);
}

static void add_rule(const char *name, size_t n, bool is_function)
{
    if (n_rules == MAX_RULES)
        die("too many rules", name);
    Rule *r = &rule[n_rules++];
    *r = (Rule){.name = copied(name, n), .text = copied("", 0), .of = 3 * N_OPS};
    if (!is_function)
        find_operator(r);
}

/* Adds text to the rules from `first` on. */
static void add_text(int first, const char *s, size_t n)
{
    for (int i = first; i < n_rules; i++) {
        size_t have = strlen(rule[i].text);
        char *text = realloc(rule[i].text, have + n + 1);
        if (!text)
            die("no memory", rule[i].name);
        memcpy(text + have, s, n);
        text[have + n] = '\0';
        rule[i].text = text;
    }
}

/* Adds a rule for each name that a line begins with.  Returns the text after the names; NULL:
 * more names follow on the next line. */
static const char *add_names(const char *s)
{
    if (!strncmp(s, "def ", 4)) {
        s += 4;
        add_rule(s, strcspn(s, "("), true);
        return s + strcspn(s, "(");
    }
    while (*s != '\n' && *s) {
        size_t n = strcspn(s, " ,=:(\n");
        add_rule(s, n, false);
        s += n + strspn(s + n, " ");
        if (*s == '=' || *s == ':')
            return s;
        if (*s != ',')
            die("expects ',', '=' or ':' behind a name", s);
        s += 1 + strspn(s + 1, " ");
    }
    return NULL;
}

static void read_rules(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[MAX_LINE];
    int first = 0;
    bool in_names = false;
    if (!f)
        die("cannot be read", path);
    while (fgets(line, sizeof line, f)) {
        const char *s = line + strspn(line, " \n");
        if (!strchr(line, '\n'))
            die("has a line that is too long, or the last one without its end", path);
        if (!*s || *s == '#')
            continue;
        if (s == line)
            first = n_rules;
        if (s == line || in_names)
            s = add_names(s);
        in_names = !s;
        if (s)
            add_text(first, s, strlen(s));
    }
    fclose(f);
}

static int by_name(const void *a, const void *b)
{
    const Rule *x = a, *y = b;
    return x->of != y->of ? x->of - y->of : strcmp(x->name, y->name);
}

/* Stores the texts of rules.  Rules with the same text share it. */
static void gather_texts(void)
{
    for (int i = 0; i < n_rules; i++) {
        while (strcmp(rule[rule[i].shared].text, rule[i].text) != 0)
            rule[i].shared++;
        if (rule[i].shared == i && !packing_add(&packing, rule[i].text))
            die("too much text", rule[i].name);
    }
}

/* Writes the names that operators do not tell, after an empty one. */
static void write_names(FILE *f)
{
    size_t n = 1;
    fputs("static const char names[] = {0,", f);
    for (int i = 0; i < n_rules; i++) {
        fputs(*rule[i].name ? "\n    " : "", f);
        for (const char *s = rule[i].name; *s; s++)
            fprintf(f, "%d,", *s);
        fputs(*rule[i].name ? "0," : "", f);
        n += *rule[i].name ? strlen(rule[i].name) + 1 : 0;
    }
    fputs("\n};\n", f);
    if (n > 65535)
        die("has too long names", "the file");
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("expects OUT.c, the table's name and a file of rules", argv[0]);
    read_rules(argv[3]);
    qsort(rule, (size_t)n_rules, sizeof *rule, by_name);
    gather_texts();
    packing_run(&packing);
    FILE *f = fopen(argv[1], "w");
    if (!f)
        die("cannot be written", argv[1]);
    fputs("#include \"passes/composite.h\"\n\n", f);
    packing_write(f, &packing);
    write_names(f);
    fputs("static const Composite row[] = {\n", f);
    size_t at = 0, name = 1;
    for (int i = 0; i < n_rules; i++) {
        if (i && !by_name(&rule[i], &rule[i - 1]))
            die("has two rules", *rule[i].name ? rule[i].name : target[rule[i].of % N_OPS]);
        rule[i].at = rule[i].shared < i ? rule[rule[i].shared].at : at;
        at += rule[i].shared < i ? 0 : strlen((const char *)packing.byte + at) + 1;
        fprintf(f, "    {%d, %d, %d},\n", (int)rule[i].at, rule[i].of,
                *rule[i].name ? (int)name : 0);
        name += *rule[i].name ? strlen(rule[i].name) + 1 : 0;
    }
    fprintf(f, "};\nconst Composites %s = {row, %d, names, {packed, text_of_codes, place_of_code}};\n",
            argv[2], n_rules);
    return fclose(f) != 0;
}
