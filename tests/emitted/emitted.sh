#!/bin/sh
# emitted.sh ROOT BUILD models|cases|names|weights|example: checks what docs/emitted_c.md says about emitted C.  Prints TAP.
#
#   models   tests/data: the strict flags under each compiler, torch's outputs, runtime-lite's bits
#            under every instruction set and optimisation level, with and without the variants
#   cases    tests/emitted/cases, programs that differ in one thing: strict flags and the same bits,
#            for the CPU of "; TARGET" too
#   names    hostile names of files, weights and values
#   weights  their assembly finds them from any folder
#   example  the program in docs/emitted_c.md
# EMITTED_FULL=1 adds compilers, levels, targets, banks of cases, and the larger models of tests/data.
set -u
root=$1
. "$root/tests/tap.sh"
. "$root/tests/emitted/inputs.sh"
build=$2
part=$3
etc=$build/etc
dir=$build/tests/emitted.$part
npy=$dir/npy
full=${EMITTED_FULL:-}
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Werror"
rm -rf "$dir"
mkdir -p "$dir"

have() {
    command -v "$1" >/dev/null
}

has_flags() { # flags of /proc/cpuinfo
    for f in "$@"; do
        grep -qw "$f" /proc/cpuinfo || return 1
    done
}

cpu_runs() { # options
    case $1 in
    *x86-64-v4*) has_flags avx512f avx512bw avx512dq avx512vl ;;
    *x86-64-v3*) has_flags avx2 fma ;;
    esac
}

x86=
[ "$(uname -m)" = x86_64 ] && x86=yes
clang=
for c in clang-14 clang; do
    [ -z "$clang" ] && have "$c" && clang=$c
done

# -- one model -------------------------------------------------------------------------------

same_outputs() { # outputs, wanted
    for want in "$2"/output_*.npy "$2"/*/output_*.npy; do
        [ -f "$want" ] || continue
        "$npy" same "$1${want#"$2"}" "$want" || return 1
        some=yes
    done
    [ -n "$some" ]
}

run_same() { # program
    some=
    rm -rf "$out/got"
    # shellcheck disable=SC2086
    "$1" $arguments --output-dir "$out/got" && same_outputs "$out/got" "$out/want"
}

# Compiles OUT's files named by suffix and compares what they compute with what runtime-lite did.
build_and_run() { # compiler and options, suffixes
    sources=
    for s in $2; do
        [ -f "$out/$name$s" ] && sources="$sources $out/$name$s"
    done
    # shellcheck disable=SC2086
    $1 -o "$out/exe" $sources -lm && run_same "$out/exe"
}

bits() { # compiler and options, suffixes, text
    if ! have "${1%% *}"; then
        skip "$name: $1$3" "no ${1%% *} here"
    elif ! cpu_runs "$1"; then
        skip "$name: $1$3" "this CPU lacks it"
    else
        check "$name: $1$3" build_and_run "$1" "$2"
    fi
}

alone="_main.c .c _weights.S"
all="$alone _avx2.c _avx512.c _vnni.c"

emit_and_run_lite() { # model, options
    # shellcheck disable=SC2086
    "$etc" emit-c "$1" $2 -o "$out/$name.c" --main -q &&
        "$etc" run "$1" $2 $arguments --output-dir "$out/want" -q
}

# With --freestanding: no function of a library but those that the header names, and the same bits.
no_library() { # model, options
    # shellcheck disable=SC2086
    "$etc" emit-c "$1" $2 -o "$out/$name.c" --main --freestanding -q || return 1
    for cc in gcc ${x86:+"gcc -m32"} ${clang:+"$clang"}; do
        # shellcheck disable=SC2086
        $cc -std=c99 -O2 $strict -ffreestanding -c -o "$out/free.o" "$out/$name.c" || return 1
        nm -u "$out/free.o" | grep -vE ' U (mem(cpy|set|move|cmp)|__u?(div|mod|divmod)di[34]|'"$name"'_weights|_GLOBAL_OFFSET_TABLE_)$' |
            grep ' U ' && return 1
    done
    sed -n '1,/\*\//p' "$out/$name.h" | grep -q 'needs  *memcpy, memmove, memset and memcmp' &&
        build_and_run "gcc -std=c99 -O2 -ffreestanding" "$alone"
}

sanitized() {
    export ASAN_OPTIONS=max_malloc_fill_size=100000000:detect_leaks=0:detect_stack_use_after_return=0
    build_and_run "gcc -std=c99 -g -O0 -fsanitize=address,undefined -fno-sanitize-recover=all" "$alone"
}

# Inputs, outputs and values in two banks: one of half the arena, and the smallest that then does.
banked() { # model, options
    half=$(($(sed -n 's/^#define .*_ARENA_BYTES //p' "$out/$name.h") / 2 + 16))
    two="$2 --share-io --bank fast=$half --bank"
    # shellcheck disable=SC2086
    least=$("$etc" emit-c "$1" $two slow=1 --dry-run -q 2>&1 |
        sed -n 's/.*--bank slow=\([0-9]*\) would fit.*/\1/p')
    # shellcheck disable=SC2086
    if [ -n "$least" ] && "$etc" emit-c "$1" $two slow=$((least - 1)) --dry-run -q 2>/dev/null; then
        echo "a bank of $((least - 1)) bytes is enough, not $least"
        return 1
    fi
    # shellcheck disable=SC2086
    "$etc" emit-c "$1" $two slow="${least:-1}" -o "$out/$name.c" --main -q && sanitized
}

# Without --output-dir, two calls.
prints_as_run() { # model
    # shellcheck disable=SC2086
    "$out/exe" $arguments --next $arguments >"$out/printed" &&
        "$etc" run "$1" $arguments --next $arguments | cmp - "$out/printed"
}

helps() { # model folder
    "$out/exe" --help >"$out/help" && grep -q '^usage: ' "$out/help" &&
        [ "$(grep -c '^input [0-9]*: [a-z0-9_]* [a-z0-9]*\[' "$out/help")" -eq "$(ls "$1"/input_*.npy | wc -l)" ]
}

# -- parts -----------------------------------------------------------------------------------

torch_agrees() { # model folder, case folder
    inputs=
    for f in "$2"/input_*.npy; do
        inputs="$inputs --input $f"
    done
    atol=$(sed -n 's/^ "atol": \([0-9.e-]*\),*$/\1/p' "$1/manifest.json")
    rtol=$(sed -n 's/^ "rtol": \([0-9.e-]*\),*$/\1/p' "$1/manifest.json")
    rm -rf "$out/torch"
    # shellcheck disable=SC2086
    "$out/exe" $inputs --output-dir "$out/torch" || return 1
    for want in "$2"/output_*.npy; do
        "$npy" close "$out/torch/${want##*/}" "$want" "$atol" "$rtol" || return 1
    done
}

model() { # folder
    name=${1##*/}
    out=$dir/$name
    mkdir -p "$out"
    arguments=
    for f in "$1"/input_*.npy; do
        arguments="$arguments --input $f"
    done
    check "$name: emit-c and run" emit_and_run_lite "$1/model.pt2" "" || return
    check "$name: --freestanding" no_library "$1/model.pt2" ""
    check "$name: emit-c" "$etc" emit-c "$1/model.pt2" -o "$out/$name.c" --main -q
    [ -n "$clang" ] && bits "$clang -std=c99 -O2 $strict" "$all" ""
    check "$name: ASan and UBSan, memory of exact sizes" sanitized
    [ -n "$x86" ] && bits "gcc -O3 -march=native -std=gnu11" "$alone" ""
    if [ -n "$full" ]; then
        for c in "gcc -O0" "gcc -O3 -march=x86-64-v3" "gcc -O3 -march=x86-64-v4 $strict" "gcc -O1" "gcc -Os" "gcc -O3" "clang -O0" "clang -O3 -march=native" \
            "clang -O2 -march=x86-64-v3" "gcc -m32 -O2 -msse2 -mfpmath=sse -idirafter /usr/include/x86_64-linux-gnu"; do
            bits "$c" "$alone" ""
        done
    fi
    have g++ && check "$name: g++ -std=c++11" cplusplus
    check "$name: gcc -std=c99 -O2, strict, all files" build_and_run "gcc -std=c99 -O2 $strict" "$all" || return
    check "$name: prints what etc run prints" prints_as_run "$1/model.pt2"
    check "$name: --help lists the inputs" helps "$1"
    for c in "$1" "$1"/case*; do
        [ -d "$c" ] && check "$name: torch's outputs of ${c##*/}" torch_agrees "$1" "$c"
    done
    [ -z "$full" ] || check "$name: gcc -O2, no variants" build_and_run "gcc -O2" "$alone"
    check "$name: two banks of exact sizes" banked "$1/model.pt2" ""
    check "$name: weights in a file of their own" included_weights "$1/model.pt2"
    for t in ${x86:+x86-64-v3} ${full:+${x86:+x86-64-v2 x86-64-v4}} host; do
        one_target "$1/model.pt2" "$t" gcc
    done
    [ -z "$clang" ] || [ -z "$full" ] || one_target "$1/model.pt2" host "$clang"
}

# The file holds what makes the compiler use the CPU's instructions: no -march.
one_target() { # model, of --target, compiler
    if ! cpu_runs "$2"; then
        skip "$name: --target $2, $3" "this CPU lacks it"
        return
    fi
    rm -f "$out/${name}"_avx*.c "$out/${name}_vnni.c" "$out/${name}_weights.S"
    check "$name: emit-c --target $2" "$etc" emit-c "$1" -o "$out/$name.c" --main --target "$2" -q &&
        check "$name: no variants for $2" sh -c "! ls $out/${name}_avx*.c && ! ls $out/${name}_vnni.c" &&
        check "$name: nothing of other instruction sets for $2" alone_in "$2" &&
        bits "$3 -std=c99 -O3 $strict" "$alone" ", --target $2"
}

# The code has one of the steps that each set has, and no condition that chooses a set.
alone_in() { # of --target
    case $1 in
    x86-64-v2) others='_mm256_|_mm512_|arm_neon' ;;
    x86-64-v3) others='_mm512_|arm_neon' ;;
    *) others='arm_neon' ;;
    esac
    [ "$(grep -c '^ETC_INLINE EtcF etc_load_part(' "$out/$name.c")" -le 1 ] &&
        ! grep -E "$others|^#(el)?if defined\(__(AVX512F|AVX2|SSE2|aarch64)__\)" "$out/$name.c"
}

included_weights() { # model; where it has weights the assembler includes them
    "$etc" emit-c "$1" -o "$out/$name.c" --main --weights-as incbin -q || return 1
    grep -q 'constants' "$out/$name.c" && { [ -f "$out/${name}_weights.S" ] || return 1; }
    build_and_run "gcc -std=c99 -O1 $strict" "$alone"
}

cplusplus() {
    cp "$out/${name}_main.c" "$out/main.copy.c"
    gcc -O1 -c -o "$out/main.o" "$out/${name}_main.c" || return 1
    for s in "" _avx2 _avx512; do
        g++ -x c++ -std=c++11 -O1 -Wall -Wextra -Wshadow -Wconversion -Werror -c \
            -o "$out/cpp$s.o" "$out/$name$s.c" || return 1
    done
    weights=
    [ -f "$out/${name}_weights.S" ] && weights=$out/${name}_weights.S
    # shellcheck disable=SC2086
    g++ -o "$out/exe_cpp" "$out/main.o" "$out"/cpp*.o $weights && run_same "$out/exe_cpp"
}

case_() { # .etir
    name=$(basename "$1" .etir)
    out=$dir/$name
    mkdir -p "$out"
    options=
    [ -f "${1%.etir}.data" ] && options="--data ${1%.etir}.data"
    inputs "$1" "$out"
    calls=$(sed -n 's/^; CALLS //p' "$1")
    one=$arguments
    while [ "${calls:-1}" -gt 1 ]; do
        arguments="$arguments --next $one"
        calls=$((calls - 1))
    done
    check "$name: emit-c and run" emit_and_run_lite "$1" "$options" || return
    bits "gcc -std=c99 -O1 $strict" "$all" ", all files"
    check "$name: ASan and UBSan, memory of exact sizes" sanitized
    have g++ && check "$name: g++ -std=c++11" g++ -x c++ -std=c++11 -Wall -Wextra -Werror \
        -fsyntax-only "$out/$name.c"
    grep -qE 'sqrt|norm|acos' "$1" && check "$name: --freestanding" no_library "$1" "$options"
    [ -z "$full" ] || check "$name: two banks of exact sizes" banked "$1" "$options"
    target=$(sed -n 's/^; TARGET //p' "$1")
    if [ -n "$target" ]; then
        check "$name: emit-c --target $target" "$etc" emit-c "$1" $options -o "$out/$name.c" --main --target "$target" -q &&
            bits "gcc -std=c99 -O2 $strict" "$alone" ", --target $target" &&
            check "$name: ASan and UBSan, --target $target" sanitized
    fi
    if [ -n "$full" ]; then
        bits "gcc -std=c99 -O2 $strict" "$all" ", all files"
        [ -n "$x86" ] && bits "gcc -std=c99 -O3 -march=x86-64-v3 $strict" "$alone" ""
        [ -n "$clang" ] && bits "$clang -std=c99 -O2 -march=native $strict" "$alone" ""
    fi
}

# -- names -----------------------------------------------------------------------------------

hostile() { # stem
    out=$dir/names
    name=$(basename "$1")
    mkdir -p "$out"
    "$etc" emit-c "$dir/names.etir" --data "$dir/names.data" -o "$out/$1.c" --main -q || return 1
    gcc -std=c99 -O0 $strict -o "$out/exe" "$out/$1.c" "$out/$1_main.c" -lm || return 1
    gcc -std=c99 -O0 $strict -fsyntax-only "$out/$1_avx2.c" || return 1
    run_same "$out/exe"
}

refused() { # stem
    ! "$etc" emit-c "$dir/names.etir" --data "$dir/names.data" -o "$dir/names/$1.c" -q
}

names() {
    long=$(awk 'BEGIN { for (i = 0; i < 10000; i++) printf "%c", 97 + i % 26 }')
    sed "s/LONG/$long/g" "$root/tests/emitted/names.etir" >"$dir/names.etir"
    printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\200\100' >"$dir/names.data"
    i=0
    arguments=
    while [ $i -lt 14 ]; do
        "$npy" random f32 "$([ $i -eq 1 ] && echo 4,2 || echo 4)" $i "$dir/in$i.npy"
        arguments="$arguments --input $dir/in$i.npy"
        i=$((i + 1))
    done
    out=$dir/names
    mkdir -p "$out"
    # shellcheck disable=SC2086
    check "names: runtime-lite" "$etc" run "$dir/names.etir" --data "$dir/names.data" $arguments \
        --output-dir "$out/want" -q
    for stem in int 3d 'a b' 'system()' 'x*@y' _ 'é' '😀' etc_rt node w_0 etc run "$(echo "$long" | cut -c 1-200)"; do
        check "names: '$stem'" hostile "$stem"
    done
    nl='a
b'
    for stem in 'a"b' 'a\b' "$nl" "$(printf 'a\033[2J')"; do
        check "names: '$(printf %s "$stem" | tr '\n\033' '  ')' is refused" refused "$stem"
    done
}

# -- weights beside their assembly ---------------------------------------------------------------

# Assembles in one folder by a path that it knows; the .bin must be in it, to the byte.
from_folder() { # compiler, folder to run in, path of the model's folder from there, flags
    # shellcheck disable=SC2086
    (cd "$2" && $1 $4 -c "$3/${name}_weights.S" -o "$dir/weights.o") || return 1
    case $1 in
    arm*) arm-none-eabi-objcopy -O binary -j .rodata "$dir/weights.o" "$dir/weights.raw" ;;
    *) objcopy -O binary -j .rodata "$dir/weights.o" "$dir/weights.raw" ;;
    esac && cmp "$bin" "$dir/weights.raw"
}

# The .bin was moved, and only the macro says where to.
elsewhere() { # compiler
    cp "$bin" "$dir/other/moved" && mv "$bin" "$bin.hidden" || return 1
    ! from_folder "$1" "$dir/other" "../$odd" ""
    refused=$?
    mv "$bin.hidden" "$bin"
    printf moved >>"$dir/other/moved"
    from_folder "$1" "$dir/other" "../$odd" '-DNET_WEIGHTS_BIN="moved"' && return 1
    [ $refused -eq 0 ] && cmp "$dir/other/moved" "$dir/weights.raw"
}

weights() {
    name=net
    odd='a "folder", \b\\ #1; $x @(%y) //z'
    out="$dir/$odd"
    bin="$out/${name}_weights.S.bin"
    mkdir -p "$out" "$dir/other"
    check "weights: emit-c" "$etc" emit-c "$root/tests/data/mlp_digits/model.pt2" -o "$out/$name.c" \
        --weights-as incbin -q
    for cc in gcc $clang ${clang:+"$clang -fno-integrated-as"} arm-none-eabi-gcc; do
        if ! have "${cc%% *}"; then
            skip "weights: $cc" "no ${cc%% *} here"
            continue
        fi
        check "weights: $cc, in their folder" from_folder "$cc" "$out" . ""
        check "weights: $cc, by a relative path" from_folder "$cc" "$dir/other" "../$odd" ""
        check "weights: $cc, by a whole path" from_folder "$cc" / "$out" ""
        check "weights: $cc, a .bin elsewhere" elsewhere "$cc"
    done
    check "weights: the folder is not told" sh -c '! grep -q folder "$1"' sh "$out/${name}_weights.S"
}

# -- example ---------------------------------------------------------------------------------

example() {
    out=$dir
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$root/docs/emitted_c.md" >"$dir/example.c"
    "$etc" emit-c "$root/tests/data/mlp_digits/model.pt2" -o "$dir/digits.c" -q || return 1
    gcc -std=c11 -O2 $strict -o "$dir/example" "$dir/example.c" "$dir"/digits*.c -lm || return 1
    [ "$("$dir/example")" = "$(sed -n 's/^prints `\([^`]*\)`.*/\1/p' "$root/docs/emitted_c.md")" ]
}

# An int of 16 bits, as on AVR, is refused by name.
refuses_short_int() {
    "$etc" emit-c "$root/tests/data/mlp_digits/model.pt2" -o "$dir/short.c" --target cortex-m0plus -q || return 1
    ! gcc -U__INT_MAX__ -D__INT_MAX__=0x7fff -fsyntax-only "$dir/short.c" 2>"$dir/short.txt" &&
        [ "$(grep -c 'error: #error "int has fewer than 32 bits' "$dir/short.txt")" -eq 1 ]
}

cc -O1 -o "$npy" "$root/tests/emitted/npy.c" -lm || exit 1
case $part in
models)
    for m in add softmax mlp_digits cnn_digits ${full:+linear}; do
        model "$root/tests/data/$m"
    done
    [ -n "$full" ] && for m in "$root"/tests/data/tiny_*; do
        [ -d "$m" ] && model "$m"
    done
    ;;
cases)
    for f in "$root"/tests/emitted/cases/*.etir; do
        case_ "$f"
    done
    ;;
names) names ;;
weights) weights ;;
example)
    check "the example of docs/emitted_c.md" example
    check "an int of 16 bits is refused" refuses_short_int
    ;;
esac
finish 1
