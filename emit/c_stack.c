/* c_stack.c -- computes how much stack NAME_run takes on a microcontroller.
 *
 * Only a compiler knows the sizes of frames.  Those in this file are of gcc 12 at -O2, from
 * -fstack-usage and its call graph.  gcc puts the functions of nodes into NAME_run.  NAME_run calls
 * one kernel at a time, so the stack is its frame and that of one kernel with all that it calls.
 * tests/mcu compares the sum with the compiler's call graph and with a painted stack. */
#include "emit/c_emit.h"
#include <string.h>

/* The bytes of stack that NAME_run with large loops of its own and a small kernel take together. */
enum { LEAST_BYTES = 336 };

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

/* Returns the most that the frame of NAME_run was in networks of 10 to 111 nodes.  It includes the
 * frames of nodes, and gcc keeps addresses in it, such as those of the sizes of a node. */
static int run_bytes(const char *functions)
{
    enum { LEAST = 120, START = 88 };
    int nodes = count(functions, "\nstatic void "), sizes = count(functions, "const EtcMcu");
    int bytes = (START + nodes + sizes * 4 / 5 + 7) / 8 * 8;
    return bytes > LEAST ? bytes : LEAST;
}

typedef enum Set { PLAIN, DSP, MVE, N_SETS } Set; /* sets of steps: kernels/mcu_NAME.h */

/* The kernels that nodes call, sorted by name, and the bytes of stack that each takes below
 * NAME_run with each set.  These include the C library's functions for floats.  0: no target of
 * the set calls the kernel, or it was not measured. */
static const struct {
    const char *name;
    short bytes[N_SETS];
} kernel_row[] = {
    {"etc_dequantize_lanes", {64, 64, 64}}, /* it is a part of NAME_run, like other steps */
    {"etc_load", {64, 64, 64}},
    {"etc_load_i8", {64, 64, 64}},
    {"etc_max_i32", {16, 16, 16}},
    {"etc_mcu_adaptive_bytes", {64, 64, 64}},
    {"etc_mcu_cut_means", {128, 128, 112}},
    {"etc_mcu_depthwise", {336, 272, 240}},
    {"etc_mcu_dequantize", {64, 16, 16}},
    {"etc_mcu_finish", {32, 24, 24}},
    {"etc_mcu_linear", {128, 128, 128}},
    {"etc_mcu_linear_bytes", {80, 64, 64}},
    {"etc_mcu_lookup", {16, 16, 16}},
    {"etc_mcu_matmul", {312, 280, 256}},
    {"etc_mcu_max", {64, 64, 64}},
    {"etc_mcu_means", {104, 104, 88}},
    {"etc_mcu_nearest_bytes", {32, 24, 24}},
    {"etc_mcu_pointwise", {160, 152, 184}},
    {"etc_mcu_product", {64, 64, 64}},
    {"etc_mcu_quantize", {96, 24, 40}},
    {"etc_mcu_sum", {56, 40, 0}},
    {"etc_mcu_sum_4", {0, 0, 40}},
    {"etc_mcu_windows", {280, 344, 328}},
    {"etc_min_i32", {16, 16, 16}},
    {"etc_norm_i8", {120, 112, 112}},
    {"etc_softmax_i8", {80, 64, 64}},
    {"etc_softmax_i8_f32", {104, 56, 56}},
    {"etc_splat", {64, 64, 64}},
    {"etc_store", {64, 64, 64}},
    {"etc_sum_end", {64, 64, 64}},
    {"etc_sum_f32", {560, 512, 320}},
    {"etc_sum_start", {64, 64, 64}},
};

enum { N_KERNELS = sizeof kernel_row / sizeof *kernel_row };

/* Returns the stack of the kernel name[0 .. n); 0: it is unknown. */
static int kernel_bytes(const char *name, size_t n, Set set)
{
    for (int i = 0; i < N_KERNELS; i++)
        if (!strncmp(kernel_row[i].name, name, n) && !kernel_row[i].name[n])
            return kernel_row[i].bytes[set];
    return 0;
}

static bool find_set(const Emit *e, Set *set)
{
    static const char *const name[N_SETS] = {"plain", "dsp", "mve"};
    for (int i = 0; e->target->mcu && i < N_SETS; i++)
        if (!strcmp(e->target->mcu, name[i])) {
            *set = (Set)i;
            return true;
        }
    return false;
}

int stack_below(const Emit *e, const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    Set set;
    int most = 0;
    if (!find_set(e, &set) || e->n_custom || !text)
        return -1;
    for (const char *at = text; (at = strstr(at, "etc_")); ) {
        size_t n = strspn(at, letters);
        int bytes = at[n] == '(' ? kernel_bytes(at, n, set) : 0; /* 0: it is not called */
        if (!bytes)
            return -1;
        most = bytes > most ? bytes : most;
        at += n;
    }
    return most;
}

int stack_with(const Emit *e, int below)
{
    if (below < 0)
        return 0;
    int bytes = run_bytes(e->functions.s) + below;
    return bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

int stack_bytes(const Emit *e)
{
    return stack_with(e, stack_below(e, e->functions.s));
}
