/* start.c -- what a Cortex-M needs before and after a call of a model: vectors, an FPU where there
 * is one, a painted stack, and semihosting to tell what came of it.
 *
 * HEADER, INPUT_H, RUN and CALL come from the command line: the model's header, its function, and its
 * arguments, of which INPUT, OUTPUT and `arena`, or the banks `dtcm` and `sram`, are here. */
#include HEADER
#include INPUT_H
#include <stddef.h>

enum { STACK_BYTES = 16384, PAINT = 0x5a };
extern uint32_t stack_low[], stack_top[], data_from[], data_to[], data_end[], bss_to[], bss_end[];
int main(void);
void reset(void);
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
#define OUTPUT ((float *)(void *)output_bytes)

__attribute__((noinline)) static uint32_t semihost(uint32_t op, const void *argument)
{
    register uint32_t r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void tell_hex(const uint8_t *p, int n)
{
    char text[4] = "00";
    for (int i = 0; i < n; i++) {
        text[0] = "0123456789abcdef"[p[i] >> 4];
        text[1] = "0123456789abcdef"[p[i] & 15];
        text[2] = (i == n - 1) ? '\n' : '\0';
        text[3] = '\0';
        semihost(4, text);
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

static void fault(void)
{
    semihost(4, "fault\n");
    semihost(0x18, (const void *)0x20024);
    for (;;) {
    }
}

int main(void)
{
    uint8_t *low = (uint8_t *)stack_low, *here = (uint8_t *)__builtin_frame_address(0) - 256;
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
    semihost(0x18, (const void *)0x20026);
    return 0;
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
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault};
