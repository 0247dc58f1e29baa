/* c_sizes.c -- computes how much stack NAME_run takes on a microcontroller, and about how much code
 * NAME.c has.
 *
 * Only a compiler knows these sizes.  Those in c_sizes.def are of gcc 12 at -O2:
 * tests/mcu/fit_sizes.py compiles small quantized networks, and prints for each kernel the bytes
 * of its code and of the frames on the stack.  gcc puts the functions of nodes into NAME_run.
 * NAME_run calls one kernel at a time, so the stack is its frame and that of one kernel with all
 * that it calls.  The code is about a tenth more than the compiler's in most networks.  tests/mcu
 * compares the sums with the compiler's call graph, with a painted stack, and with the code of the
 * object file. */
#include "emit/c_emit.h"
#include <string.h>

/* The columns of the table.  Cortex-M7 and M33 have the numbers of Cortex-M4. */
static const struct {
    const char *target;
    int core;
} core_row[] = {
    {"cortex-m0plus", 0}, {"cortex-m3", 1},  {"cortex-m4", 2}, {"cortex-m7", 2},
    {"cortex-m33", 2},    {"cortex-m55", 3}, {"rv32imc", 4},
};

enum { N_CORES = 5, N_TARGETS = sizeof core_row / sizeof *core_row };

/* Units of CODE bytes of the code and the tables of a kernel (0: it was not measured); units of
 * STACK bytes that it adds to the frame of NAME_run or of a node, and those that it takes itself,
 * with all that it calls. */
typedef struct Sizes {
    unsigned short code;
    unsigned char frame, below;
} Sizes;

enum { CODE = 4, STACK = 16 };

/* The rows of kernels have their names without etc_.  "file" is what a file has anyway; "sizes" and
 * "loop" are what each struct with the sizes of a node and each loop add. */
static const struct {
    char name[22];
    Sizes of[N_CORES];
} size_row[] = {
#include "emit/c_sizes.def"
};

enum { N_ROWS = sizeof size_row / sizeof *size_row };

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

/* Counts a word, but lines that are equal from it on only once. */
static int count_different(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) {
        const size_t line = strcspn(at, "\n");
        const char *first = strstr(text, word);
        while (first < at && strncmp(first, at, line) != 0)
            first = strstr(first + 1, word);
        n += first == at;
    }
    return n;
}

/* Returns whether layers have kernels for 8-bit integers.  The table is of files that have some. */
static bool is_quantized(const Emit *e)
{
    return e->functions.s && strstr(e->functions.s, "etc_mcu_");
}

static int find_core(const Emit *e)
{
    for (int i = 0; i < N_TARGETS && !e->n_custom; i++)
        if (!strcmp(core_row[i].target, e->target->name))
            return core_row[i].core;
    return -1;
}

/* Returns the row of name[0 .. n); -1: there is none. */
static int find_row(const char *name, size_t n)
{
    for (int i = 0; i < N_ROWS; i++)
        if (!strncmp(size_row[i].name, name, n) && !size_row[i].name[n])
            return i;
    return -1;
}

/* Marks the rows of the kernels that a text calls.  Returns false if one was not measured. */
static bool find_kernels(const char *text, int core, bool *used)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    for (const char *at = text; (at = strstr(at, "etc_")); ) {
        at += strlen("etc_");
        const size_t n = strspn(at, letters);
        const int row = at[n] == '(' ? find_row(at, n) : -1; /* -1: it is not called */
        if (row < 0 || !size_row[row].of[core].code)
            return false;
        used[row] = true;
        at += n;
    }
    return true;
}

static const Sizes *sizes_of(const char *name, int core)
{
    return &size_row[find_row(name, strlen(name))].of[core];
}

int stack_below(const Emit *e, const char *text)
{
    bool used[N_ROWS] = {0};
    int core = find_core(e), most = 0;
    if (core < 0 || !text || !find_kernels(text, core, used))
        return -1;
    for (int i = 0; i < N_ROWS; i++)
        if (used[i] && size_row[i].of[core].below > most)
            most = size_row[i].of[core].below;
    return most * STACK;
}

/* gcc keeps addresses in the frame of NAME_run, such as those of the sizes of a node.  START
 * includes 28 bytes for the assembly of kernels, which takes stack that gcc does not know of.  */
int stack_of_run(const Emit *e)
{
    enum { START = 96, LEAST_SIZES = 32 };
    bool used[N_ROWS] = {0};
    const char *text = e->functions.s;
    int core = find_core(e), most = 0;
    if (core < 0 || !is_quantized(e) || !find_kernels(text, core, used))
        return 0;
    for (int i = 0; i < N_ROWS; i++)
        if (used[i] && size_row[i].of[core].frame > most)
            most = size_row[i].of[core].frame;
    int sizes = count(text, "const EtcMcu") * 4 / 3;
    sizes = sizes > LEAST_SIZES ? sizes : LEAST_SIZES;
    return (START + sizes + count(text, "for (") * 3 / 2 + 7) / 8 * 8 + most * STACK;
}

int stack_bytes(const Emit *e)
{
    const int run = stack_of_run(e);
    return run ? run + stack_below(e, e->functions.s) : 0;
}

int code_bytes(const Emit *e, int n)
{
    enum { ABOUT = 100 };
    bool used[N_ROWS] = {0};
    const int core = find_core(e);
    if (core < 0)
        return 0;
    int units = sizes_of("file", core)->code;
    for (int i = 0; i < n; i++) {
        const char *text = e[i].functions.s;
        if (e[i].n_custom || !is_quantized(&e[i]) || !find_kernels(text, core, used))
            return 0;
        /* Of nodes that are alike, such as the steps of a recurrent layer, gcc merges about every second. */
        const int nodes = (count(text, "const EtcMcu") + count_different(text, "const EtcMcu") + 1) / 2;
        units += nodes * sizes_of("sizes", core)->code +
                 count(text, "for (") * sizes_of("loop", core)->code;
    }
    for (int i = 0; i < N_ROWS; i++)
        units += used[i] ? size_row[i].of[core].code : 0;
    return (units * CODE + ABOUT / 2) / ABOUT * ABOUT;
}
