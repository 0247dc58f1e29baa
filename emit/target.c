/* target.c -- the CPUs for which C is written, one row each.  Wider vectors come after narrower
 * ones. */
#include "emit/emit.h"
#include <string.h>

/* The working memory of kernels.  Convolutions copy some rows of all channels into it; wide vectors gain
 * from more rows. */
enum { WORK_BYTES = 65536, WIDE_WORK_BYTES = 131072, MCU_WORK_BYTES = 8192 };

/* The files for these rows compile for any machine, which then computes the same bits. */
#define FIXED_POINT(cpu, set, lacks, compiler, bytes)                                   \
    {                                                                                   \
        .name = cpu, .isa = "plain", .mcu = set, .build = compiler, .vector_bytes = 16, \
        .lacks_floats = lacks, .has_fma = !lacks, .work_bytes = bytes                   \
    }
#define CORTEX_M(cpu, set, lacks, options) \
    FIXED_POINT(cpu, set, lacks, "arm-none-eabi-gcc -O2 -mthumb " options, MCU_WORK_BYTES)

const Target target_row[] = {
    {.name = "generic", .vector_bytes = 16, .work_bytes = WORK_BYTES, .has_variants = true,
     .quad_channels = 1},
    {.name = "x86-64-v2",
     .machine = "x86_64",
     .condition = "defined(__x86_64__)",
     .features = "sse4.2,ssse3,popcnt",
     .macros = "",
     .header = "immintrin.h",
     .isa = "sse2",
     .vector_bytes = 16,
     .work_bytes = WORK_BYTES},
    {.name = "x86-64-v3",
     .machine = "x86_64",
     .condition = "defined(__x86_64__)",
     .features = "avx2,fma",
     .macros = "#undef __AVX2__\n#define __AVX2__ 1\n#undef __FMA__\n#define __FMA__ 1\n",
     .header = "immintrin.h",
     .isa = "avx2",
     .cores = "avx2",
     .test = "__builtin_cpu_supports(\"avx2\") &&\n        __builtin_cpu_supports(\"fma\")",
     .vector_bytes = 32,
     .quad_channels = 4,
     .has_fma = true,
     .work_bytes = WIDE_WORK_BYTES},
    {.name = "x86-64-v4",
     .machine = "x86_64",
     .condition = "defined(__x86_64__)",
     .features = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
     .macros = "#define __AVX512F__ 1\n#define __AVX512BW__ 1\n",
     .header = "immintrin.h",
     .isa = "avx512",
     .cores = "avx512",
     .test = "__builtin_cpu_supports(\"avx512f\") &&\n"
             "        __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512dq\") &&\n"
             "        __builtin_cpu_supports(\"avx512vl\")",
     .vector_bytes = 64,
     .has_fma = true,
     .work_bytes = WIDE_WORK_BYTES},
    {.name = "x86-64-v4-vnni",
     .machine = "x86_64",
     .condition = "defined(__x86_64__)",
     .features = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma",
     .macros = "#define __AVX512F__ 1\n#define __AVX512BW__ 1\n#define __AVX512VNNI__ 1\n",
     .header = "immintrin.h",
     .isa = "avx512",
     .cores = "vnni",
     .test = "__builtin_cpu_supports(\"avx512bw\") &&\n"
             "        __builtin_cpu_supports(\"avx512dq\") && __builtin_cpu_supports(\"avx512vl\") &&\n"
             "        __builtin_cpu_supports(\"avx512vnni\")",
     .vector_bytes = 64,
     .has_fma = true,
     .only_for_bytes = true,
     .quad_channels = 1,
     .work_bytes = WIDE_WORK_BYTES},
    {.name = "armv8-a",
     .machine = "aarch64",
     .condition = "defined(__aarch64__)",
     .isa = "neon",
     .cores = "base",
     .vector_bytes = 16,
     .has_fma = true,
     .work_bytes = WORK_BYTES},
    {.name = "armv8.2-a",
     .machine = "aarch64",
     .condition = "defined(__aarch64__)",
     .features = "dotprod",
     .gcc_features = "arch=armv8.2-a+dotprod",
     .macros = "#undef __ARM_FEATURE_DOTPROD\n#define __ARM_FEATURE_DOTPROD 1\n",
     .header = "arm_neon.h",
     .isa = "neon",
     .vector_bytes = 16,
     .has_fma = true,
     .work_bytes = WORK_BYTES},
    CORTEX_M("cortex-m0plus", "plain", true, "-mcpu=cortex-m0plus"),
    CORTEX_M("cortex-m3", "plain", true, "-mcpu=cortex-m3"),
    CORTEX_M("cortex-m4", "dsp", false, "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"),
    CORTEX_M("cortex-m7", "dsp", false, "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"),
    CORTEX_M("cortex-m55", "mve", false, "-mcpu=cortex-m55 -mfloat-abi=hard"),
    CORTEX_M("cortex-m33", "dsp", false, "-mcpu=cortex-m33 -mfloat-abi=hard -mfpu=fpv5-sp-d16"),
    FIXED_POINT("rv32imc", "plain", true, "riscv64-unknown-elf-gcc -O2 -march=rv32imc -mabi=ilp32",
                MCU_WORK_BYTES),
    FIXED_POINT("rv64gc", "plain", false, "riscv64-linux-gnu-gcc -O2 -march=rv64gc -mabi=lp64d",
                WORK_BYTES),
};

const int n_targets = sizeof target_row / sizeof *target_row;

const Target *target_find(const char *name)
{
    for (int i = 0; i < n_targets; i++)
        if (!strcmp(target_row[i].name, name))
            return &target_row[i];
    return NULL;
}

const Target *target_host(const char *machine, const char *cores)
{
    for (int i = 0; i < n_targets; i++) {
        const Target *t = &target_row[i];
        if (t->machine && t->cores && !strcmp(t->machine, machine) && !strcmp(t->cores, cores))
            return t;
    }
    return target_row;
}
