#!/bin/sh
# servers.sh ROOT BUILD: C of emit-c --math bf16 multiplies bfloat16, and that of --math fast uses Winograd's transforms,
# with the same bits for every CPU and number of parts, but for bfloat16 in AMX; C for 8-bit integers uses VNNI if the CPU
# has it, with the same bits too.  Prints TAP.
#
# A CPU with AVX2 that has neither AVX-512 nor VNNI emulates them.  EMITTED_FULL=1 adds AVX2.
# "; WIDENED n" in a case of tests/emitted/bf16 is how many of its products have weights of bfloat16; "; FAST n" in one of
# tests/emitted/fast is how many of its convolutions use the transforms.
set -u
root=$1
. "$root/tests/tap.sh"
. "$root/tests/emitted/inputs.sh"
etc=$2/etc
dir=$2/tests/emitted.servers
npy=$dir/npy
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Werror"
asan="-O0 -fsanitize=address,undefined -fno-sanitize-recover"
emulated="-O0 -march=x86-64-v3 -Wno-psabi -include $root/tests/ops/emulated.h -DEMULATE_AVX512"
# gcc 14 keeps the locals that ASan watches after a return in frames aligned to 32 bytes, but reads them as vectors of 64.
export ASAN_OPTIONS=max_malloc_fill_size=100000000:detect_leaks=0:detect_stack_use_after_return=0
portable=-DETC_NO_AMX
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1

# Writes the C, builds it and runs it.
answer() { # folder of the outputs, flags of the compiler, of emit-c...
    to=$1
    flags=$2
    shift 2
    rm -rf "$to" "$name"*.c "$name"*.S*
    "$etc" emit-c -q "$@" --main -o "$name.c" || return 1
    sources=
    for s in _main.c .c _avx2.c _avx512.c _vnni.c _threads.c _weights.S; do
        [ -f "$name$s" ] && sources="$sources $name$s"
    done
    case $flags in
        *emulated.h*) sed -i '/^#pragma GCC target/d' "$name.c" ;; # the compiler is to use AVX2
    esac
    # shellcheck disable=SC2086
    cc -std=c99 $flags $portable -o "$name" $sources -lm -pthread || return 1
    threads=
    [ -f "${name}_threads.c" ] && threads="--threads 2"
    # shellcheck disable=SC2086
    "./$name" $threads $arguments --output-dir "$to"
}

same() { # flags of the compiler, of emit-c...
    answer got "$@" && diff -r want got
}

has_flags() { # flags of /proc/cpuinfo
    for f in "$@"; do
        grep -qw "$f" /proc/cpuinfo || return 1
    done
}

is_widened() { # products
    [ "$(grep -cE '^ *etc_(conv|matmul)_bf16\(' "$name.c")" -eq "$1" ] &&
        ! grep -q 'static const float .*_blocks\[' "$name.c"
}

is_fast() { # convolutions
    [ "$(grep -c '^ *etc_winograd_f32(' "$name.c")" -eq "$1" ] &&
        grep -q "^ \*   fast       $1 convolutions* by Winograd's transforms" "$name.h"
}

stay_exact() { # .etir
    name=others
    "$etc" emit-c -q "$1" --math fast -o others.c && is_fast 0
}

# The outputs in two folders are close, but not all the same.
are_close() {
    for f in "$1"/*.npy; do
        "$npy" close "$f" "$2/$(basename "$f")" 1e-3 1e-5 || return 1
    done
    ! diff -r "$1" "$2"
}

# The same through the C that `etc run` builds.
run_is_same() {
    rm -rf got
    # shellcheck disable=SC2086
    CFLAGS="-O1 $portable" "$etc" run -q "$model" --target generic --math "$math" $arguments --output-dir got && diff -r want got
}

# The C gives the outputs in `want` however it is built, and for every CPU that this one can be.
everywhere() { # words of emit-c...
    check "$name: the same bits, strict" same "-O1 $strict" "$@"
    check "$name: etc run" run_is_same
    set -- "$@" --target
    if [ "$(uname -m)" = x86_64 ]; then
        if has_flags avx512f avx512bw avx512dq avx512vl; then
            check "$name: AVX-512, sanitized" same "$asan" "$@" x86-64-v4
        elif has_flags avx2 fma; then
            check "$name: AVX-512, emulated" same "$emulated" "$@" x86-64-v4
        fi
        check "$name: SSE4.2, sanitized" same "$asan" "$@" x86-64-v2
        check "$name: in parts, sanitized" same "$asan" "$@" x86-64-v2 --parallel 3
        [ -n "${EMITTED_FULL:-}" ] && has_flags avx2 fma && check "$name: AVX2, sanitized" same "$asan" "$@" x86-64-v3
    else
        check "$name: sanitized" same "$asan" "$@" host
        check "$name: in parts, sanitized" same "$asan" "$@" host --parallel 3
    fi
    if command -v g++ >/dev/null; then
        check "$name: C++" g++ -x c++ -std=c++11 -Wall -Wextra -Wshadow -Werror -fsyntax-only "$name.c"
    fi
}

begin() { # .etir, a choice of --math
    model=$1
    math=$2
    name=$(basename "$1" .etir)
    inputs "$1" "$dir"
    check "$name: exact" answer exact -O1 "$1"
}

# With AMX, the outputs are close to those without, but not the same.
tiles_are_close() { # flags of the compiler, of emit-c...
    portable=
    answer got "$@"
    code=$?
    portable=-DETC_NO_AMX
    [ $code -eq 0 ] && are_close want got
}

bf16() { # .etir
    begin "$1" bf16
    rm -rf want && mv exact want # products of what is already rounded
    everywhere "$1" --math bf16
    check "$name: as arrays" same -O0 "$1" --math bf16 --weights-as array
    if has_flags amx_bf16 avx512bw avx512dq avx512vl avx512_vnni; then
        check "$name: AMX, all variants" tiles_are_close "-O1 $strict" "$1" --math bf16
        check "$name: AMX, sanitized" tiles_are_close "$asan" "$1" --math bf16 --target x86-64-v4-vnni
        check "$name: AMX, in parts" tiles_are_close "-O1" "$1" --math bf16 --target x86-64-v4-vnni --parallel 3
    fi
    check "$name: weights are bfloat16" is_widened "$(sed -n 's/^; WIDENED //p' "$1")"
}

fast() { # .etir
    begin "$1" fast
    check "$name: fast" answer want -O1 "$1" --math fast
    check "$name: so many are" is_fast "$(sed -n 's/^; FAST //p' "$1")"
    check "$name: close to exact" are_close exact want
}

# A trained network: close to torch's floats, and other bits.
trained() { # folder of tests/data, least SQNR in dB
    model=$root/tests/data/$1/model.pt2
    "$etc" emit-c -q "$model" --math bf16 --verify --main -o "$1.c" &&
        "$etc" verify -q "$1.c" --model "$model" --max-drop sqnr="$2" &&
        ! "$etc" verify -q "$1.c" --model "$model" --max-drop sqnr=120
}

# 8-bit integers: the bits of plain C, in a file of its own that only such models have.
bytes_() {
    model=$root/tests/data/tiny_kws_dscnn
    name=kws
    portable=
    arguments="--input $model/input_0.npy"
    mkdir "$dir/words"
    cp "$model/input_0.npy" "$dir/words"
    set -- "$model/model.pt2" --recipe int8 --calibrate words
    check "kws: plain C" answer want "-O1" "$@" --target generic --freestanding
    check "kws: the same bits with all variants" same "-O1 $strict -Wno-array-bounds" "$@"
    check "kws: a variant has VNNI" grep -q 'avx512vnni' kws_vnni.c
    if has_flags avx512bw avx512dq avx512vl avx512_vnni; then
        check "kws: VNNI" same -O1 "$@" --target x86-64-v4-vnni
        check "kws: its instruction is there" sh -c "objdump -d kws | grep -q vpdpbusd"
        check "kws: host" same -O1 "$@" --target host
        check "kws: host has VNNI" grep -q 'x86-64-v4-vnni' kws.c
    elif has_flags avx2 fma; then
        check "kws: VNNI, emulated" same "$emulated -DEMULATE_VNNI -DETC_NO_AMX" "$@" --target x86-64-v4-vnni
    fi
    name=floats
    check "floats have no such variant" no_variant
}

no_variant() {
    "$etc" emit-c -q "$root/tests/data/cnn_digits/model.pt2" -o floats.c && [ -f floats_avx512.c ] && [ ! -f floats_vnni.c ]
}

# `etc` says the same of the memory as the header.
tells_half() {
    name=half
    "$etc" emit-c "$root/tests/data/mlp_digits/model.pt2" --math bf16 -o half.c 2>told &&
        bytes=$(sed -n 's/^ \*   constants  \([0-9]*\) bytes/\1/p' half.h) && grep -q " scratch, $bytes of constants;" told
}

# "--math exact" is what happens without it.
exact_is_default() {
    model=$root/tests/data/cnn_digits/model.pt2
    mkdir -p a b && "$etc" emit-c -q "$model" -o a/m.c && "$etc" emit-c -q "$model" --math exact -o b/m.c && diff -r a b
}

refused() { # exit code, words of etc...
    code=$1
    shift
    "$etc" "$@" -q
    [ $? -eq "$code" ]
}

cc -O1 -o "$npy" "$root/tests/emitted/npy.c" -lm || exit 1
for f in "$root"/tests/emitted/bf16/*.etir; do
    bf16 "$f"
done
fast "$root/tests/emitted/fast/batch_is_open.etir"
check "$name: in parts" same -O1 "$model" --math fast --parallel 3 --weights-as array
fast "$root/tests/emitted/fast/tiles_of_convolutions.etir"
everywhere "$model" --math fast
check "other convolutions stay exact" stay_exact "$root/tests/emitted/fast/others_stay_exact.etir"
check "mlp_digits: close to floats" trained mlp_digits 35
check "tiny_vww_mobilenet: close to floats" trained tiny_vww_mobilenet 35
[ "$(uname -m)" = x86_64 ] && bytes_
check "the bytes of constants are those of bfloat16" tells_half
check "exact is the default" exact_is_default
model=$root/tests/data/mlp_digits/model.pt2
for math in bf16 fast; do
    check "$math: a microcontroller is refused" refused 2 emit-c "$model" --math $math --target cortex-m4 -o small.c
done
check "runs of runtime-lite are refused" refused 2 run "$model" --math bf16
finish 28
