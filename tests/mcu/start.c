/* start.c -- what a processor needs around a call of a model: it paints the stack before the call,
 * and reports the results.  A Cortex-M also needs vectors, an FPU that is switched on, and
 * semihosting; the other processors run in qemu-user and use calls of Linux.
 *
 * HEADER, INPUT_H, RUN and CALL come from the command line: the model's header, its function, and
 * the arguments of the call.  Of these, INPUT, OUTPUT, `arena`, and the banks `dtcm` and `sram` are
 * defined here.  With NO_LIBRARY, and for RISC-V, so are the functions that compilers call on their
 * own. */
#include HEADER
#include INPUT_H
#include <stddef.h>

enum { PAINTED = 15360, PAINT = 0x5a }; /* a Cortex-M has 16 KiB of stack */
int main(void);
void count_start(void);
void count_stop(void);

static const _Alignas(8) uint8_t input_bytes[] = {INPUT_BYTES};
static _Alignas(8) uint8_t output_bytes[OUTPUT_BYTES];
#if defined(MODEL_BANK_DTCM_BYTES)
static _Alignas(64) uint8_t dtcm[MODEL_BANK_DTCM_BYTES], sram[MODEL_BANK_SRAM_BYTES];
#else
static _Alignas(64) uint8_t arena[ARENA_BYTES];
#endif
#define INPUT ((const void *)input_bytes)
#define OUTPUT ((void *)output_bytes)

#if defined(__arm__)
__attribute__((noinline)) static uint32_t semihost(uint32_t op, const void *argument)
{
    register uint32_t r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void tell(const char *text)
{
    semihost(4, text);
}
#else
static void linux_call(long number, long a, long b, long c)
{
#if defined(__riscv)
    register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b,
                  a2 __asm__("a2") = c;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
                  x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
#endif
}

static void tell(const char *text)
{
    long n = 0;
    while (text[n] != '\0') {
        n++;
    }
    linux_call(64, 1, (long)(uintptr_t)text, n); /* write */
}
#endif

static void tell_hex(const uint8_t *p, int n)
{
    char text[4] = "00";
    for (int i = 0; i < n; i++) {
        text[0] = "0123456789abcdef"[p[i] >> 4];
        text[1] = "0123456789abcdef"[p[i] & 15];
        text[2] = (i == n - 1) ? '\n' : '\0';
        text[3] = '\0';
        tell(text);
    }
}

__attribute__((noinline)) void count_start(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void count_stop(void)
{
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
    uint8_t *here = (uint8_t *)__builtin_frame_address(0) - 256, *low = here - PAINTED;
    for (uint8_t *p = low; p < here; p++) {
        *(volatile uint8_t *)p = PAINT;
    }
    count_start();
    const int status = RUN(CALL);
    count_stop();
    while (*low == PAINT) {
        low++;
    }
    const uint32_t told[2] = {(uint32_t)status, (uint32_t)((here + 256) - low)};
    tell_hex((const uint8_t *)told, (int)sizeof told);
    tell_hex(output_bytes, OUTPUT_BYTES);
    return 0;
}

#if defined(__arm__)
extern uint32_t stack_top[], data_from[], data_to[], data_end[], bss_to[], bss_end[];
void reset(void);

static void fault(void)
{
    tell("fault\n");
    semihost(0x18, (const void *)0x20024);
    for (;;) {
    }
}

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xF00000u; /* FPU and vectors */
    __asm__ volatile("dsb\n isb");
    for (uint32_t *p = data_to, *q = data_from; p < data_end; p++, q++) {
        *p = *q;
    }
    for (uint32_t *p = bss_to; p < bss_end; p++) {
        *p = 0;
    }
    main();
    semihost(0x18, (const void *)0x20026);
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault};
#elif defined(__riscv) /* of aarch64 there is a C library, which starts it */
void start(void);

void start(void)
{
    main();
    linux_call(93, 0, 0, 0); /* exit */
}

__asm__(".globl _start\n"
        "_start:\n"
        ".option push\n.option norelax\nla gp, __global_pointer$\n.option pop\n"
        "j start\n");
#endif

#if defined(__riscv) || defined(NO_LIBRARY)
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);

__attribute__((optimize("no-tree-loop-distribute-patterns"))) void *memcpy(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    }
    return to;
}

__attribute__((optimize("no-tree-loop-distribute-patterns"))) void *memset(void *to, int byte, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ((uint8_t *)to)[i] = (uint8_t)byte;
    }
    return to;
}
#endif
