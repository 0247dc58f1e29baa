#!/bin/sh
# demo.sh -- two trained classifiers of handwritten digits, each compiled to .pte and to C and run on
# 360 labelled images.  Prints accuracy beside what torch reached, plan, sizes and times.
#
#     demo.sh BUILD_FOLDER [--counts FILE]
#
# Needs BUILD_FOLDER/etc and a C compiler, no Python.  Fails where an accuracy is not torch's or the
# two ways of running differ in a bit; appends "passed failed skipped" to FILE.
set -eu
export LC_ALL=C
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(cd "$1" && pwd)
COUNTS=/dev/null
[ "${2:-}" != --counts ] || COUNTS=$(realpath "$3")
WORK=$BUILD/demo
CC=${CC:-cc}
etc=$BUILD/etc
passed=0
failed=0

rm -rf "$WORK"
mkdir -p "$WORK"
$CC -O2 -o "$WORK/digits" "$ROOT/tests/demo/digits.c"

milliseconds() { date +%s%N | sed 's/......$//'; }
bytes() { stat -Lc %s "$1"; }
verdict() { # text, what came out, what was expected
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1: $2, expected $3"
    fi
}
timed() { # runs the rest; leaves the milliseconds in $ms
    start=$(milliseconds)
    "$@"
    ms=$(($(milliseconds) - start))
}

build() { # model folder
    "$etc" compile "$1/model.pt2" -o "$name.pte"
    "$etc" emit-c "$1/model.pt2" -o "$name.c" --main
    weights=
    [ ! -e "${name}_weights.S" ] || weights=${name}_weights.S
    # shellcheck disable=SC2086
    timed $CC -O3 -o "$name" "$name.c" "${name}_main.c" $weights -lm
    printf '  sizes: model.pt2 %s, .pte %s, .c %s, program %s bytes; cc took %s ms\n' \
        "$(bytes "$1/model.pt2")" "$(bytes "$name.pte")" "$(bytes "$name.c")" "$(bytes "$name")" "$ms"
}

calls() { # name of the model, its folder: the arguments that run all images
    if [ "$1" = one ]; then
        echo "--input $2/extra_test_x.npy"
        return
    fi
    mkdir -p "$name.images"
    n=$(./digits split "$2/extra_test_x.npy" "$name.images")
    seq 0 $((n - 1)) | sed "s|.*|--next --input $name.images/&.npy|" | tr '\n' ' ' |
        sed 's/^--next //'
}

score() { # what ran, folder of its outputs, model folder
    got=$(./digits score "$3/extra_test_y.npy" "$2")
    want=$(sed -n 's/.*"program_test_accuracy": \([0-9.]*\).*/\1/p' "$3/manifest.json")
    want=$(printf '%.4f' "$want")
    printf '  %-14s %s (torch: %s), %s ms for the whole process\n' "$1" "$got" "$want" "$ms"
    verdict "$name, $1" "${got##* }" "$want"
}

model() { # folder of the model, "one" for one call with all images or "each"
    name=${1##*/}
    echo "$name"
    build "$1"
    arguments=$(calls "$2" "$1")
    # shellcheck disable=SC2086
    timed "$etc" run -q "$name.pte" $arguments --output-dir "$name.lite"
    score "runtime-lite" "$name.lite" "$1"
    # shellcheck disable=SC2086
    timed "./$name" $arguments --output-dir "$name.out"
    score "emitted C" "$name.out" "$1"
    same=different
    diff -rq "$name.lite" "$name.out" > /dev/null && same="the same"
    verdict "bits of both runs of $name" "$same" "the same"
    echo "  bits of both runs: $same"
}

cd "$WORK"
echo "the first test image, and what is done with 360 of them:"
./digits show "$ROOT/tests/data/cnn_digits/extra_test_x.npy" 0
model "$ROOT/tests/data/mlp_digits" one
model "$ROOT/tests/data/cnn_digits" each
echo "etc itself: $(bytes "$etc") bytes"
echo "$passed $failed 0" >> "$COUNTS"
[ "$failed" = 0 ]
