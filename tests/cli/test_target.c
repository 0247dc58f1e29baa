/* test_target.c -- tests `etc run --target`, which computes on this machine what the C for another
 * CPU computes. */
#include "tests/cli/cli.h"
#include <sys/utsname.h>

TestSuite(target, .init = make_folders, .fini = remove_folders);

#define MODEL "$DATA/cnn_digits/model.pt2 "
#define DIGITS MODEL "--recipe int8 --calibrate d "
#define CALLS "--input a.npy --next --input b.npy --output-dir "

/* Samples, and two images. */
static void make_images(void)
{
    static const float one[64] = {0, 3, 9, 12, 0, 0, 0, 1};
    static const float other[64] = {[20] = 16, [21] = 8, [22] = 8, [40] = 4, [41] = 15};
    watch_builds();
    sh_ok("mkdir d && cp $DATA/cnn_digits/extra_test_x.npy d/");
    write_images("a.npy", "1, 1, 8, 8", one, 64);
    write_images("b.npy", "1, 1, 8, 8", other, 64);
}

/* The judge is the emitted program that another compiler run built. */
static void gives_bits_of(const char *flags)
{
    ok(arena_printf(arena, "emit-c " MODEL "%s -o m.c --main -q", flags));
    sh_ok("cc -O1 -w -o m m*.[cS] -lm && ./m " CALLS "built");
    ok(arena_printf(arena, "run " MODEL "%s " CALLS "ran -q", flags));
    expect_same("built/0/output_0.npy", "ran/0/output_0.npy");
    expect_same("built/1/output_0.npy", "ran/1/output_0.npy");
    sh_ok("rm -rf built ran m*");
    no_folder_is_left();
}

Test(target, gives_the_bits_of_emitted_c)
{
    make_images();
    ok("quantize " MODEL "--tail c --recipe int8 --calibrate d --statistics s.txt -q");
    gives_bits_of("--recipe int8 --calibrate d --target cortex-m4");
    gives_bits_of("--recipe int8 --statistics s.txt --target rv32imc");
    gives_bits_of("--recipe int8 --calibrate d --target generic");
    for (const char *name = "a"; *name; name = *name == 'a' ? "b" : "") /* images of bytes */
        sh_ok(arena_printf(arena, "(printf '\\223NUMPY\\1\\0v\\0'; printf '%%-117s\\n' \"{'descr': '|i1', "
                                  "'fortran_order': False, 'shape': (1, 1, 8, 8), }\"; "
                                  "head -c 64 $ETC | tr '\\0' '%s') > %s.npy", name, name));
    gives_bits_of("--recipe int8 --calibrate d --target cortex-m55 --io int8");
}

Test(target, takes_floats_and_integers)
{
    make_images();
    ok("run " MODEL "--target cortex-m7 --input a.npy --output-dir c -q");
    ok("run " MODEL "--input a.npy --output-dir lite -q");
    expect_same("c/output_0.npy", "lite/output_0.npy");
    fails("run " DIGITS "--target cortex-m55 --io int8 --input a.npy", 1,
          "input 0 ('input'): is f32[1,1,8,8], expected i8[1,1,8,8]");
}

Test(target, keeps_state_and_takes_numbers_and_sizes)
{
    watch_builds();
    make_counter();
    Result r = ok("run c.etir --data side --target cortex-m4 --input v.npy --input value:3 "
                  "--input w.npy --next --input v.npy --input value:3 --input v.npy");
    cr_expect_str_eq(r.out, "call 0 output 0: f32[2] 1 -1\ncall 0 output 1: f32[3] 2 -4 8\n"
                            "call 1 output 0: f32[2] 2 -3\ncall 1 output 1: f32[2] 2 -4\n");
    fails("run c.etir --data side --target cortex-m4 --input v.npy --input value:4 --input w.npy", 1,
          "the program fails with exit code 1");
    fails("run c.etir --data side --target cortex-m4 --dim s=3 --input v.npy --input value:3 "
          "--input v.npy", 1, "input 2 ('y'): is f32[2], expected");
    no_folder_is_left();
}

/* Nothing is left of it, either. */
Test(target, tells_what_stops_it)
{
    struct utsname here;
    watch_builds();
    write_text("y.etir", "program \"y\" stage aten\nmethod @forward(%x: f32[2]) {\n"
                         "  %y = aten.mul.Scalar(%x, 2) : f32[2]\n  return %y\n}\n");
    write_images("v.npy", "2,", (const float[]){1, -2}, 2);
    ok("compile y.etir -o y.pte -q");
#define RUN(file, target) "run " file " --target " target " --input v.npy --output-dir out"
    fails(RUN("y.pte", "generic"), 1, "is a .pte: --target is for models");
    fails(RUN("y.etir", "cortex-m5"), 2, "did you mean 'cortex-m");
    fails(RUN("y.etir", "generic --etdump e"), 2, "--etdump is for runtime-lite");
    fails(RUN("y.etir", "generic --input v.npy"), 1, "2 inputs given, it has 1");
    cr_assert_eq(uname(&here), 0);
    if (!strcmp(here.machine, "x86_64"))
        fails(RUN("y.etir", "armv8.2-a"), 4, "can only be compiled and run on aarch64");
    else
        fails(RUN("y.etir", "x86-64-v3"), 4, "can only be compiled and run on x86_64");
    setenv("CC", "no-such-compiler", 1);
    fails(RUN("y.etir", "generic"), 3,
          "the C compiler, no-such-compiler, cannot be run: No such file or directory; install one");
    expect_files("tmp v.npy y.etir y.pte ");
    no_folder_is_left();
}

/* Without a target a recipe counts, too: the model is compiled to a .pte on the fly. */
Test(target, a_recipe_is_for_any_run)
{
    make_images();
    ok("compile " DIGITS "-o m.pte -q");
    ok("run m.pte " CALLS "file -q");
    ok("run " DIGITS CALLS "fly -q");
    expect_same("file/1/output_0.npy", "fly/1/output_0.npy");
    fails("run m.pte --recipe int8 --input a.npy", 1, "is a .pte: --dim");
}

/* Some of 1024 bytes lie so near the middle of two that fixed point takes the other one. */
Test(target, fixed_point_may_give_the_byte_next_to_the_nearest)
{
    write_text("s.etir",
               "program \"s\" stage core\n"
               "method @forward(%x: f32[64,16]) {\n"
               "  %q = quantized_decomposed.quantize_per_tensor.default(%x, 0.03, 0, -128, 127, i8) : i8[64,16]\n"
               "  %f = quantized_decomposed.dequantize_per_tensor.default(%q, 0.03, 0, -128, 127, i8, out_dtype=none) : f32[64,16]\n"
               "  %s = aten._softmax.default(%f, 1, false) : f32[64,16]\n"
               "  %b = quantized_decomposed.quantize_per_tensor.default(%s, 0.00390625, -128, -128, 127, i8) : i8[64,16]\n"
               "  %y = quantized_decomposed.dequantize_per_tensor.default(%b, 0.00390625, -128, -128, 127, i8, out_dtype=none) : f32[64,16]\n"
               "  return %y\n}\n");
    ok("emit-c s.etir -o s.c --target cortex-m4 --verify -q");
    ok("emit-c s.etir -o s.c --verify -q");
}

/* An output has room for as many elements as the run may find. */
Test(target, sizes_that_a_run_finds_out_are_verified)
{
    write_text("n.etir", "program \"n\" stage aten\nsym %u0 in 0..12\nmethod @forward(%x: f32[3,4]) {\n"
                         "  %y = aten.nonzero.default(%x) : i64[%u0,2]\n"
                         "  %z = aten.mul.Scalar(%y, 2) : i64[%u0,2]\n  return %z\n}\n");
    ok("emit-c n.etir -o n.c --verify -q");
}
