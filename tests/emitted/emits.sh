#!/bin/sh
# emits.sh ROOT BUILD: an `etc` with sanitizers, BUILD/etc, emits C of every case and model that tests have, with flags
# of every kind, or refuses it, and writes a runtime for each model that it compiles.  What these compute is the
# concern of the other scripts.  Prints TAP.
set -u
root=$1
. "$root/tests/tap.sh"
etc=$2/etc
dir=$2/tests/emitted.emits
export ASAN_OPTIONS=exitcode=99:detect_leaks=0:detect_stack_use_after_return=0
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1

# An unknown exit code is a sanitizer's or a signal's.
ends_well() { # of emit-c...
    "$etc" emit-c -q "$@" -o model.c
    code=$?
    [ $code -le 2 ] || { echo "exit code $code: emit-c $*"; return 1; }
}

emits() { # of emit-c...
    ends_well "$@" --main && [ $code = 0 ] || return 1
    for flags in "--parallel 3 --weights-as array" "--math bf16 --report page.html" "--bank ram=64K --bank flash=1M:const" \
        "--math fast --freestanding --share-io --build-files cmake"; do
        # shellcheck disable=SC2086
        ends_well "$@" $flags || return 1
    done
    for target in x86-64-v4 armv8.2-a cortex-m4; do
        ends_well "$@" --target $target || return 1
    done
}

quantized() { # folder of a model
    mkdir -p words
    cp "$1/input_0.npy" words
    for target in generic x86-64-v4-vnni armv8.2-a rv32imc cortex-m0plus cortex-m4 cortex-m55; do
        ends_well "$1/model.pt2" --recipe int8 --calibrate words --target $target || return 1
    done
    ends_well "$1/model.pt2" --recipe int8 --calibrate words --target cortex-m4 --io int8
}

has_runtime() { # model
    rm -f model.pte
    "$etc" compile -q "$1" -o model.pte
    code=$?
    [ $code -le 2 ] || { echo "exit code $code: compile $1"; return 1; }
    [ ! -e model.pte ] || "$etc" runtime model.pte -o lib -q
}

for f in "$root"/tests/emitted/*/*.etir; do
    data=${f%.etir}.data
    [ -f "$data" ] || data=
    check "$(basename "$f")" emits "$f" ${data:+--data "$data"}
done
for f in "$root"/tests/data/*/model.pt2 "$root"/tests/mcu/*/model.pt2; do
    name=$(basename "${f%/*}")
    check "$name" emits "$f"
    check "$name, runtime" has_runtime "$f"
    [ -f "${f%/*}/input_1.npy" ] || check "$name, int8" quantized "${f%/*}"
done
finish 50
