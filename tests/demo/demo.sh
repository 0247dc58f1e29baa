#!/bin/sh
# demo.sh -- compiles two trained classifiers of handwritten digits to .pte and to C, as floats, as
# int8 and with int4 weights, and runs them on 360 labelled images.  Prints their accuracy beside that
# of torch, plan, sizes and times.
#
#     demo.sh BUILD_FOLDER [--counts FILE]
#
# Needs BUILD_FOLDER/etc and a C compiler, but no Python.  Fails if an accuracy differs from torch's,
# if int8 loses more than 0.3 points of it or int4 more than 1, or if a bit differs between the two
# ways of running (except for int8, whose sums are exact in C).  Appends "passed failed skipped" to
# FILE.
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

build() { # flags of etc: makes $name of the model in $folder
    "$etc" compile "$folder/model.pt2" -o "$name.pte" "$@"
    "$etc" emit-c "$folder/model.pt2" -o "$name.c" --main "$@"
    weights=
    [ ! -e "${name}_weights.S" ] || weights=${name}_weights.S
    # shellcheck disable=SC2086
    timed $CC -O3 -o "$name" "$name.c" "${name}_main.c" $weights -lm
    printf '  sizes: model.pt2 %s, .pte %s, .c %s, program %s bytes; cc took %s ms\n' \
        "$(bytes "$folder/model.pt2")" "$(bytes "$name.pte")" "$(bytes "$name.c")" \
        "$(bytes "$name")" "$ms"
}

calls() { # "one" call with all images, or "each": the arguments that run them all
    if [ "$1" = one ]; then
        echo "--input $folder/extra_test_x.npy"
        return
    fi
    mkdir -p "$name.images"
    n=$(./digits split "$folder/extra_test_x.npy" "$name.images")
    seq 0 $((n - 1)) | sed "s|.*|--next --input $name.images/&.npy|" | tr '\n' ' ' |
        sed 's/^--next //'
}

score() { # what ran, folder of its outputs, points it may lose; none means torch's accuracy exactly
    got=$(./digits score "$folder/extra_test_y.npy" "$2")
    want=$(sed -n 's/.*"program_test_accuracy": \([0-9.]*\).*/\1/p' "$folder/manifest.json")
    want=$(printf '%.4f' "$want")
    printf '  %-14s %s (torch: %s), %s ms for the whole process\n' "$1" "$got" "$want" "$ms"
    enough=$want
    if awk "BEGIN { exit !($3 > 0 && 100 * ($want - ${got##* }) <= $3) }"; then
        enough=${got##* }
    fi
    verdict "$name, $1" "${got##* }" "$enough"
}

program() { # "one" or "each", points it may lose, flags of etc: builds $name, runs it both ways
    how=$1
    may_lose=$2
    shift 2
    build "$@"
    arguments=$(calls "$how")
    # shellcheck disable=SC2086
    timed "$etc" run -q "$name.pte" $arguments --output-dir "$name.lite"
    score "runtime-lite" "$name.lite" "$may_lose"
    # shellcheck disable=SC2086
    timed "./$name" $arguments --output-dir "$name.out"
    score "emitted C" "$name.out" "$may_lose"
    same=different
    diff -rq "$name.lite" "$name.out" > /dev/null && same="the same"
    echo "  bits of both runs: $same"
    case "$*" in
    *"--recipe int8 "*) ;; # C multiplies integers, which the kernels of a .pte do as floats
    *) verdict "bits of both runs of $name" "$same" "the same" ;;
    esac
}

model() { # folder of the model, "one" for one call with all images or "each"
    folder=$1
    name=${1##*/}
    images=$ROOT/tests/data/quantized/${name}_calibration.npy
    echo "$name"
    program "$2" 0
    name=${1##*/}_int8
    echo "${1##*/} as int8, with ranges of 64 other images"
    program "$2" 0.3 --recipe int8 --calibrate "$images"
    name=${1##*/}_int4
    echo "${1##*/} with weights as int4 in groups of 32"
    program "$2" 1.0 --recipe int4-group32
}

cd "$WORK"
echo "the first test image, and what is done with 360 of them:"
./digits show "$ROOT/tests/data/cnn_digits/extra_test_x.npy" 0
model "$ROOT/tests/data/mlp_digits" one
model "$ROOT/tests/data/cnn_digits" each
echo "etc itself: $(bytes "$etc") bytes"
echo "$passed $failed 0" >> "$COUNTS"
[ "$failed" = 0 ]
