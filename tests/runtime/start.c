/* start.c -- runs a model in a library that `etc runtime` wrote, without libc, and compares the
 * bits of the output.
 *
 * MODEL, INPUT and WANT name files: the .pte, and the bytes of its first input and first output.
 * ROWS is the first size of that input if it is symbolic.  On Linux for x86-64 the program's exit
 * code is 0 if the bits are those of WANT, 9 if they differ, else the EtcStatus plus 16; on other
 * systems it is only linked.  It defines the four functions that a compiler may call. */
#include "runtime-lite/etc_rt.h"

#define FILE_BYTES(name, file)                                                            \
    __asm__(".section .rodata\n.balign 16\n" #name "_start:\n.incbin \"" file "\"\n"     \
            #name "_end:\n.previous\n");                                                  \
    extern const unsigned char name##_start[], name##_end[];

FILE_BYTES(model, MODEL)
FILE_BYTES(input, INPUT)
FILE_BYTES(want, WANT)

enum { POOLS = POOL_BYTES, TABLES = 16 * 1024 };

static unsigned char tables[TABLES] __attribute__((aligned(64)));
static unsigned char pool[POOLS] __attribute__((aligned(64)));
static unsigned char scratch[ETC_SCRATCH_BYTES] __attribute__((aligned(64)));

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    unsigned char *t = to;
    for (const unsigned char *f = from; n-- > 0;) {
        *t++ = *f++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    for (size_t i = 0; (t < f) && (i < n); i++) {
        t[i] = f[i];
    }
    while ((t > f) && (n-- > 0)) {
        t[n] = f[n];
    }
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    for (unsigned char *t = to; n-- > 0;) {
        *t++ = (unsigned char)byte;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    while ((n > 0) && (*x == *y)) {
        x++;
        y++;
        n--;
    }
    return (n > 0) ? (int)*x - (int)*y : 0;
}

static EtcStatus set_input(EtcMethod *m, EtcError *e)
{
    EtcTensor t = *etc_method_input(m, 0)->as.tensor;
    EtcValue v;
    int32_t dim[ETC_MAX_RANK];
    for (int32_t i = 0; i < t.rank; i++) {
        dim[i] = ((i == 0) && !t.is_static) ? ROWS : t.dim[i];
    }
    t.data = (void *)(uintptr_t)input_start;
    t.dim = dim;
    t.capacity = input_end - input_start;
    v.tag = ETC_TENSOR;
    v.as.tensor = &t;
    return etc_method_set_input(m, 0, &v, e);
}

static EtcStatus load(EtcProgram *p, EtcMethod **m, EtcError *e)
{
    EtcMemory need;
    void *pools[16] = {pool};
    EtcStatus status = etc_program_open(p, model_start, (size_t)(model_end - model_start), e);
    status = (status == ETC_OK) ? etc_program_memory(p, 0, &need, e) : status;
    if ((status == ETC_OK) && ((need.table_bytes > TABLES) || (need.n_pools > 1) ||
                               ((need.n_pools == 1) && (need.pool_bytes[0] > POOLS)))) {
        return ETC_NO_MEMORY;
    }
    return (status == ETC_OK) ? etc_method_init(p, 0, tables, pools, scratch, m, e) : status;
}

static int run(void)
{
    EtcProgram p;
    EtcMethod *m;
    EtcError e;
    EtcStatus status = load(&p, &m, &e);
    status = (status == ETC_OK) ? set_input(m, &e) : status;
    status = (status == ETC_OK) ? etc_method_run(m, &e) : status;
    if (status != ETC_OK) {
        return 16 + (int)status;
    }
    return memcmp(etc_method_output(m, 0)->as.tensor->data, want_start,
                  (size_t)(want_end - want_start)) ? 9 : 0;
}

void start(void);
void start(void)
{
    long code = run();
#if defined(__x86_64__) && defined(__linux__)
    __asm__ volatile("syscall" : : "a"(60L), "D"(code) : "rcx", "r11", "memory");
#endif
    for (;;) {
        __asm__ volatile("" : : "r"(code));
    }
}

#if defined(__x86_64__) && defined(__linux__)
__asm__(".globl _start\n_start:\n    xor %ebp, %ebp\n    and $-64, %rsp\n    call start\n");
#else
__asm__(".globl _start\n.set _start, start\n");
#endif
