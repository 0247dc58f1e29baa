/* near.c -- guesses which of the known names a wrong name was meant to be.
 *
 * Two names are similar if few edits turn one into the other.  An edit adds, removes or replaces a
 * letter, or swaps two neighbours.  One edit is allowed for each three letters, and at most three
 * in all.  The letters that both names have at their start and at their end are not compared. */
#include "ir/ir.h"
#include <string.h>

enum { MOST_EDITS = 3, LETTERS_PER_EDIT = 3, MAX_MIDDLE = 64, FAR = MOST_EDITS + 1 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the number of edits between texts of n and m letters.  Only three rows of the table are
 * kept. */
static int edits(const char *a, int n, const char *b, int m)
{
    int row[3][MAX_MIDDLE + 1];
    assert(n <= MAX_MIDDLE && m <= MAX_MIDDLE);
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        const int *above = row[(i + 2) % 3], *two_above = row[(i + 1) % 3];
        int *at = row[i % 3];
        at[0] = i;
        for (int j = 1; j <= m; j++) {
            at[j] = least(least(above[j], at[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                at[j] = least(at[j], two_above[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

/* Returns the number of edits between two names; FAR: they are not similar. */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t longer = n > m ? n : m, shorter = n + m - longer;
    if (longer - shorter > MOST_EDITS)
        return FAR;
    int share = longer > 1 && longer < LETTERS_PER_EDIT ? 1 : (int)(longer / LETTERS_PER_EDIT);
    while (n && m && *a == *b)
        a++, b++, n--, m--;
    while (n && m && a[n - 1] == b[m - 1])
        n--, m--;
    int d = n > MAX_MIDDLE || m > MAX_MIDDLE ? FAR : edits(a, (int)n, b, (int)m);
    return d <= least(share, MOST_EDITS) ? d : FAR;
}

Near near_word(const char *word)
{
    return (Near){.word = word, .edits = FAR};
}

bool near_consider(Near *n, const char *name)
{
    int d = distance(n->word, strlen(n->word), name, strlen(name));
    if (d >= n->edits)
        return false;
    n->edits = d;
    n->best = name;
    return true;
}

const char *near_text(Arena *a, const Near *n)
{
    return n->best ? arena_printf(a, "; did you mean '%s'?", n->best) : "";
}

/* Returns the part of a name between the namespace and the overload. */
static const char *stem(const char *target, size_t *n)
{
    const char *from = strchr(target, '.');
    from = from ? from + 1 : target;
    *n = strcspn(from, ".");
    return from;
}

/* Compares names without "aten." and ".default", which would make all of them similar. */
Near near_operator(Arena *a, const char *word)
{
    Near near = near_word(word);
    bool is_target = strchr(word, '.') != NULL;
    size_t n, m;
    const char *mine = stem(word, &n);
    for (OpId i = 0; i < N_OPS; i++) {
        const char *target = op_target(i), *name = stem(target, &m);
        bool is_near = !is_target || distance(word, (size_t)(mine - word), target,
                                              (size_t)(name - target)) < FAR;
        if (is_near && distance(mine, n, name, m) < FAR)
            near_consider(&near, is_target ? target : arena_str(a, name, m));
    }
    return near;
}
