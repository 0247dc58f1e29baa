#!/bin/sh
# parallel.sh ROOT BUILD: C of emit-c --parallel gives the bits of C without it, for any number of parts and threads,
# without a race and without memory beyond what its header states.  Prints TAP.
#
# Files for other CPUs are built with those of integers alone, or with EMITTED_FULL=1 always.
# "; SPLIT n" in a case of tests/emitted/parallel is how many of its nodes are split.
set -u
root=$1
. "$root/tests/tap.sh"
. "$root/tests/emitted/inputs.sh"
etc=$2/etc
dir=$2/tests/emitted.parallel
data=$root/tests/data
npy=$dir/npy
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Werror"
asan="-O0 -fsanitize=address,undefined -fno-sanitize-recover"
export ASAN_OPTIONS=max_malloc_fill_size=100000000:detect_leaks=0:detect_stack_use_after_return=0 TSAN_OPTIONS=halt_on_error=1
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1

# Links what was emitted as $name.c with the program and the pool.
build() { # program, flags
    sources=
    for s in _main.c .c _threads.c _weights.S $3; do
        [ -f "$name$s" ] && sources="$sources $name$s"
    done
    # shellcheck disable=SC2086
    cc -std=c99 $2 -o "$1" $sources -lm -pthread
}

# Two calls, so that the threads are used again.
same_bits() { # program, flags of the program
    rm -rf got
    # shellcheck disable=SC2086
    "./$1" $2 $arguments --next $arguments --output-dir got && diff -r want got
}

whole() { # of emit-c...: what C without parts gives
    "$etc" emit-c -q "$@" --main -o "$name.c" && build "$name.one" -O1 "" &&
        rm -rf want && "./$name.one" $arguments --next $arguments --output-dir want && rm "$name"*.c &&
        "$etc" emit-c -q "$@" --main --parallel 3 -o "$name.c"
}

is_split() { # nodes
    [ "$(grep -c '^        etc_split(' "$name.c")" -eq "$1" ]
}

split_model() { # nodes that are split, of emit-c...
    nodes=$1
    shift
    check "$name: emit-c" whole "$@"
    check "$name: $nodes nodes are split" is_split "$nodes"
    variants=
    [ "$name" = kws8 ] || [ -n "${EMITTED_FULL:-}" ] && variants="_avx2.c _avx512.c _vnni.c"
    check "$name: strict" build "$name" "-O1 $strict" "$variants"
    for threads in "" "--threads 1" "--threads 2" "--threads 3" "--threads 7"; do
        check "$name: the same bits, ${threads:-no threads}" same_bits "$name" "$threads"
    done
    check "$name: ASan and UBSan" build "$name.asan" "$asan" ""
    for threads in 1 2 3; do
        check "$name: $threads threads, ASan and UBSan" same_bits "$name.asan" "--threads $threads"
    done
    check "$name: TSan" build "$name.tsan" "-O1 -fsanitize=thread" ""
    for threads in 2 3; do
        check "$name: $threads threads, TSan" same_bits "$name.tsan" "--threads $threads"
    done
    if command -v g++ >/dev/null; then
        check "$name: C++" g++ -x c++ -std=c++11 -Wall -Wextra -Wshadow -Werror -fsyntax-only "$name.c" "${name}_threads.c"
    fi
}

trained() { # nodes that are split, folder of tests/data, of emit-c...
    nodes=$1
    model=$2
    shift 2
    arguments="--input $data/$model/input_0.npy"
    split_model "$nodes" "$data/$model/model.pt2" "$@"
}

case_() { # .etir
    name=$(basename "$1" .etir)
    inputs "$1" "$dir"
    split_model "$(sed -n 's/^; SPLIT //p' "$1")" "$1"
}

# Threads that cannot be started, and a microcontroller, which has none.
refused() {
    "$etc" emit-c -q "$data/mlp_digits/model.pt2" --target cortex-m4 --parallel 2 -o small.c
    [ $? -eq 2 ] && [ ! -f small.c ]
}

no_pool() {
    ! "./$name" --threads 0 $arguments && ! "./$name" --threads x $arguments
}

# Both models run on one pool.
several() {
    "$etc" emit-c -q --parallel 2 --main --model cnn="$data/cnn_digits/model.pt2" \
        --model kws="$data/tiny_kws_dscnn/model.pt2" -o lib.c &&
        cc -std=c99 -O1 $strict -o lib_cnn lib_cnn_main.c lib.c lib_threads.c -lm -pthread &&
        rm -rf one two && ./lib_cnn --input "$data/cnn_digits/input_0.npy" --output-dir one &&
        ./lib_cnn --threads 2 --input "$data/cnn_digits/input_0.npy" --output-dir two && diff -r one two
}

cc -O1 -o "$npy" "$root/tests/emitted/npy.c" -lm || exit 1
for f in "$root"/tests/emitted/parallel/*.etir; do
    case_ "$f"
done
name=cnn
trained 2 cnn_digits
check "cnn: what is no number of threads is refused" no_pool
name=kws
trained 9 tiny_kws_dscnn
mkdir "$dir/words"
cp "$data/tiny_kws_dscnn/input_0.npy" "$dir/words"
name=kws8
trained 9 tiny_kws_dscnn --recipe int8 --calibrate words
check "a microcontroller is refused" refused
check "several models in one file" several
finish 99
