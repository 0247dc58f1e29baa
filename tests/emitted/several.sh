#!/bin/sh
# several.sh ROOT BUILD: a file of several models (emit-c --model) gives the bits of a file for each, and is smaller
# than these together.  Prints TAP.
set -u
root=$1
. "$root/tests/tap.sh"
etc=$2/etc
dir=$2/tests/emitted.several
data=$root/tests/data
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Werror"
asan="-O0 -fsanitize=address,undefined -fno-sanitize-recover"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1

emit() {
    "$etc" emit-c -q "$@"
}

runs() { # folder of outputs, program, inputs...
    out=$1
    program=$2
    shift 2
    rm -rf "$out"
    for x in "$@"; do
        set -- "$@" --input "$x"
        shift
    done
    ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 "./$program" "$@" --output-dir "$out"
}

# Two int8 models for a Cortex-M4; each is calibrated by samples of its own.
firmware() {
    mkdir -p kws vww &&
        cp "$data/tiny_kws_dscnn/input_0.npy" kws && cp "$data/tiny_vww_mobilenet/input_0.npy" vww &&
        emit --target cortex-m4 --recipe int8 --main --model kws="$data/tiny_kws_dscnn/model.pt2" --calibrate kws \
            --model vww="$data/tiny_vww_mobilenet/model.pt2" --calibrate vww -o lib.c &&
        emit --target cortex-m4 --recipe int8 --main "$data/tiny_kws_dscnn/model.pt2" --calibrate kws -o kws.c &&
        emit --target cortex-m4 --recipe int8 --main "$data/tiny_vww_mobilenet/model.pt2" --calibrate vww -o vww.c
}

flash() { # files: bytes of code and constants
    total=0
    for f in "$@"; do
        arm-none-eabi-gcc -O2 -mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -c "$f" -o "$f.o" || return 1
        set -- $(arm-none-eabi-size "$f.o" | tail -n 1)
        total=$((total + $1 + $2))
    done
    echo $total
}

firmware_is_smaller() {
    together=$(flash lib.c) && apart=$(flash kws.c vww.c) &&
        echo "$together bytes together, $apart apart" && [ $((apart - together)) -ge 2048 ]
}

firmware_has_same_bits() {
    for model in kws vww; do
        case $model in
        kws) x=$data/tiny_kws_dscnn/input_0.npy ;;
        vww) x=$data/tiny_vww_mobilenet/input_0.npy ;;
        esac
        cc -std=c99 $strict $asan -o lib_$model lib.c lib_${model}_main.c -lm &&
            cc -std=c99 $strict $asan -o own_$model $model.c ${model}_main.c -lm &&
            runs together lib_$model "$x" && runs apart own_$model "$x" && diff -r together apart || return 1
    done
}

same_arenas() { # in integers no memory is shared
    for model in KWS VWW; do
        grep "define ${model}_.*BYTES" lib.h >together.txt && grep -h "define ${model}_.*BYTES" kws.h vww.h >apart.txt &&
            diff together.txt apart.txt || return 1
    done
}

# One model twice, once in 8 bits, with a state machine and a network of open sizes beside it: all names meet.
mixed() {
    cases=$root/tests/emitted/cases
    emit --main --model small="$data/cnn_digits/model.pt2" --recipe int8 \
        --calibrate "$data/quantized/cnn_digits_calibration.npy" --model full="$data/cnn_digits/model.pt2" \
        --model state="$cases/states_change_at_the_end.etir" --data "$cases/states_change_at_the_end.data" \
        --weights-as "$1" -o mixed.c --model open="$data/mlp_digits/model.pt2" --dim input.0=1..8 &&
        emit --main "$data/cnn_digits/model.pt2" --recipe int8 --calibrate "$data/quantized/cnn_digits_calibration.npy" -o small.c &&
        emit --main "$data/cnn_digits/model.pt2" -o full.c && emit --main "$data/mlp_digits/model.pt2" --dim input.0=1..8 -o open.c
}

own_files() { # what each model gives from a file of its own
    for model in small full open; do
        cc -O1 -o own_$model $model.c ${model}_main.c -lm && runs apart_$model own_$model "$(input_of $model)" || return 1
    done
}

input_of() { # model
    [ "$1" = open ] && echo "$data/mlp_digits/input_0.npy" || echo "$data/cnn_digits/input_0.npy"
}

mixed_has_same_bits() { # a variant's file or "", options of cc
    variant=$1
    shift
    rm -f mixed*.o
    for f in mixed.c $variant $(ls mixed_*_weights.S 2>/dev/null); do
        cc "$@" -c "$f" -o "$f.o" || return 1
    done
    for model in small full open; do
        cc "$@" -o mixed_$model mixed*.o mixed_${model}_main.c -lm && runs together mixed_$model "$(input_of $model)" &&
            diff -r together apart_$model || return 1
    done
}

mixed_is_strict() {
    cc -std=c99 $strict -O1 -fsyntax-only mixed.c && c++ -std=c++11 $strict -fsyntax-only -x c++ mixed.c
}

mixed_with_incbin() {
    mixed incbin && ls mixed_small_weights.S mixed_full_weights.S mixed_state_weights.S mixed_open_weights.S.bin && mixed_has_same_bits "" -O1
}

built_by_cmake() {
    mkdir -p cm && emit --main --build-files cmake --model full="$data/cnn_digits/model.pt2" --target host \
        --model open="$data/mlp_digits/model.pt2" --dim input.0=1..8 --weights-as incbin -o cm/two.c &&
        cmake -G Ninja -S cm -B cm/build && ninja -C cm/build two two_full_main two_open_main &&
        runs together cm/build/two_open_main "$(input_of open)" && diff -r together apart_open
}

states_are_apart() {
    cases=$root/tests/emitted/cases
    emit --model state="$cases/states_change_at_the_end.etir" --data "$cases/states_change_at_the_end.data" \
        --model other="$cases/states_change_at_the_end.etir" --data "$cases/states_change_at_the_end.data" -o states.c &&
        grep 'void state_init_state(void \*state);' states.h && grep 'void other_init_state(void \*state);' states.h &&
        cc -std=c99 $strict -O1 -c states.c -o states.o
}

# The arena of a header that was written for another core would have the wrong size.
refuses_headers_of_other_runs() {
    emit "$data/cnn_digits/model.pt2" --target cortex-m4 -o two.c && mv two.h m4.h &&
        emit "$data/cnn_digits/model.pt2" --main --parallel 2 -o two.c && cc -fsyntax-only two*.c && cp m4.h two.h || return 1
    for f in two.c two_avx2.c two_main.c two_threads.c; do
        cc -fsyntax-only -fmax-errors=1 $f 2>err
        grep '#error "two.h was not written with this file: take both from one run of etc"' err || return 1
    done
    cp two.c own.c && emit "$data/cnn_digits/model.pt2" --main --parallel 2 -o two.c && cmp two.c own.c && cc -fsyntax-only two.c
}

# Files that a run for any CPU left behind do not disturb one CPU's file of the same name.
ignores_variants_of_other_runs() {
    emit "$data/cnn_digits/model.pt2" --main -o left.c && cp left_avx2.c old.c &&
        emit "$data/cnn_digits/model.pt2" --main --target "$1" -o left.c && cmp old.c left_avx2.c &&
        cc -O1 -Wall -Werror -o left left*.c -lm && runs together left "$(input_of full)" && diff -r together apart_full
}

tells_all_and_writes_nothing() { # a fault of each model is told
    printf 'program "a" stage core method @f(%%x: f32[2]) { %%y = aten.nothing.default(%%x) : f32[2] return %%y }' >bad.etir
    ! "$etc" emit-c --model a=bad.etir --model b=missing.etir -o none.c 2>err
    grep -q bad.etir err && grep -q missing.etir err && test ! -e none.c && test ! -e none.h
}

command -v arm-none-eabi-gcc >/dev/null || { echo "1..0 # SKIP no arm-none-eabi-gcc here"; exit 0; }
check "two int8 models for a Cortex-M4" firmware
check "their code and constants are smaller than those of two files" firmware_is_smaller
check "their bits are those of two files, under ASan" firmware_has_same_bits
check "their memory is that of two files" same_arenas
check "four models of all kinds" mixed array
check "strict C99 and C++11" mixed_is_strict
check "a file for each of them" own_files
check "the bits of four files" mixed_has_same_bits mixed_avx2.c -O1
check "the same under ASan" mixed_has_same_bits "" $asan
check "the same with weights in files" mixed_with_incbin
check "two of them built by CMake" built_by_cmake
check "two models with states" states_are_apart
check "headers of other runs are refused" refuses_headers_of_other_runs
for target in host cortex-m4; do
    check "variants of other runs are ignored by $target" ignores_variants_of_other_runs $target
done
check "faults of all models are told" tells_all_and_writes_nothing
finish 1
