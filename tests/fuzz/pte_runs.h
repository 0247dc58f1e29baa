/* pte_runs.h -- runs a .pte for fuzz targets: each method three times, each time with other sizes
 * and other numbers, with little memory and a limited number of steps. */
#ifndef TESTS_FUZZ_PTE_RUNS_H
#define TESTS_FUZZ_PTE_RUNS_H

#include "tests/pte_load.h"
#include <setjmp.h>

enum { RUN_METHODS = 4, RUN_MEMORY = 1 << 20, RUN_STEPS = 5000 };

typedef struct Steps {
    int left;
    jmp_buf end;
} Steps;

static inline void count_step(void *host, const EtcExecuted *step)
{
    Steps *s = host;
    (void)step;
    if (s->left-- == 0)
        longjmp(s->end, 1);
}

/* Reads every byte of the outputs, so that a sanitizer sees a wrong address or size. */
static inline unsigned sum_of_outputs(const EtcMethod *m)
{
    unsigned sum = 0;
    for (int32_t i = 0; i < etc_method_n_outputs(m); i++) {
        const EtcValue *v = etc_method_output(m, i);
        const uint8_t *data = v->tag == ETC_TENSOR ? v->as.tensor->data : NULL;
        size_t n = data ? (size_t)etc_numel(v->as.tensor) : 0;
        n *= data ? etc_dtype_size((int)v->as.tensor->dtype) : 0;
        for (size_t k = 0; k < n; k++)
            sum += data[k];
    }
    return sum;
}

static inline void check_error(const Loaded *l, EtcStatus s)
{
    if (s && s != ETC_NO_MEMORY && (!l->e.what || l->e.status != s))
        __builtin_trap();
}

/* A run of too many steps ends where it is: a file may loop for long. */
static inline void run_thrice(Loaded *l)
{
    Steps steps = {.left = RUN_STEPS};
    etc_method_observe(l->method, count_step, &steps);
    if (setjmp(steps.end))
        return;
    for (int k = 0; k < 3; k++) { /* state, and views left behind by the run before */
        EtcStatus s = loaded_run_at(l, (LoadedSizes)k, (uint32_t)k * 97);
        volatile unsigned sum = s ? 0 : sum_of_outputs(l->method);
        (void)sum;
        check_error(l, s);
    }
}

/* The number of methods; 0: not known. */
static inline int32_t run_method(const uint8_t *data, size_t size, int32_t method,
                                 const EtcDelegate *list, int32_t n_list)
{
    Loaded l;
    int32_t n = 0;
    uint8_t *file = loaded_memory(16, size);
    if (size)
        memcpy(file, data, size);
    EtcStatus s = loaded_start_with(&l, file, size, method, list, n_list, RUN_MEMORY);
    check_error(&l, s);
    if (!s) {
        n = etc_program_n_methods(&l.program);
        run_thrice(&l);
    }
    loaded_stop(&l);
    return n;
}

#endif
