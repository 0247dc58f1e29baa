/* texts.c -- build tool: turns a file of rules into a table of passes/composite.h.
 *
 *     texts OUT.c composites composites.txt
 *
 * A rule begins at a line's start with the names it is of, "a, b = ..." or "a, b:", or with
 * those of a function, "def f(x, y): ..."; it ends before the next.  Names go on in the next
 * line behind a comma.  Comments and blank lines go. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 4000, MAX_LINE = 1000 };

typedef struct Rule {
    char *name, *text;
} Rule;

static Rule rule[MAX_RULES];
static int n_rules;

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

static void add_rule(const char *name, size_t n)
{
    if (n_rules == MAX_RULES)
        die("too many rules", name);
    rule[n_rules++] = (Rule){copied(name, n), copied("", 0)};
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
        add_rule(s, strcspn(s, "("));
        return s + strcspn(s, "(");
    }
    while (*s != '\n' && *s) {
        size_t n = strcspn(s, " ,=:(\n");
        add_rule(s, n);
        s += n + strspn(s + n, " ");
        if (*s == '=' || *s == ':')
            return s;
        if (*s != ',')
            die("expects ',', '=' or ':' behind a name", rule[n_rules - 1].name);
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
    return strcmp(((const Rule *)a)->name, ((const Rule *)b)->name);
}

static void write_string(FILE *f, const char *s)
{
    fputs("    \"", f);
    for (; *s; s++) {
        if (*s == '\n')
            fputs(s[1] ? "\\n\"\n    \"" : "\\n", f);
        else
            fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    }
    fputs("\"", f);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("expects OUT.c, the table's name and a file of rules", argv[0]);
    read_rules(argv[3]);
    qsort(rule, (size_t)n_rules, sizeof *rule, by_name);
    FILE *f = fopen(argv[1], "w");
    if (!f)
        die("cannot be written", argv[1]);
    fprintf(f, "#include \"passes/composite.h\"\n\nconst Composite %s[] = {\n", argv[2]);
    for (int i = 0; i < n_rules; i++) {
        if (i && !strcmp(rule[i].name, rule[i - 1].name))
            die("has two rules", rule[i].name);
        fprintf(f, "    {\"%s\",\n", rule[i].name);
        write_string(f, rule[i].text);
        fputs("},\n", f);
    }
    fprintf(f, "};\nconst int n_%s = %d;\n", argv[2], n_rules);
    return fclose(f) != 0;
}
