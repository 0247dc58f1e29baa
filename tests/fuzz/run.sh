#!/bin/sh
# run.sh -- runs every fuzz target: first with its planted bug, which it must find within ten minutes
# and which ends that run, then for some seconds without the bug, where it must find nothing.
#
#     run.sh BUILD_FOLDER SECONDS [TARGET ...]
#
# Seeds are made from files of the tests; seeds that must be compiled are made once per build folder.
# The inputs that a run finds are kept in BUILD_FOLDER/fuzz/fuzz_TARGET.corpus.  A target's dictionary
# is tests/fuzz/TARGET.dict.  Prints two rows per target, each when its run ends, and a third row that
# says which kernels or passes were reached.  Files that break a target are kept.
set -eu
PLANTED_SECONDS=600
CANNOT=77 # the exit code of a target that this CPU does not run
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(cd "$1" && pwd)
SECONDS_EACH=$2
shift 2
WORK=$BUILD/fuzz
SEEDS=$WORK/seeds
failed=0
export OPS="$ROOT/tests/ops" # of fuzz_kernel
export CC=clang # of fuzz_full: with sanitizers gcc takes more than twice as long for the same C
export ASAN_OPTIONS="quarantine_size_mb=16:${ASAN_OPTIONS:-}:abort_on_error=0" # all of it takes time to touch

mkdir -p "$SEEDS/text" "$SEEDS/pte" "$SEEDS/xnn_run" "$SEEDS/etdump" "$SEEDS/integer"
python3 "$ROOT/tests/import/make_hostile.py" --seeds "$SEEDS" > /dev/null
python3 "$ROOT/tests/fuzz/seeds.py" "$ROOT" "$SEEDS"
python3 "$ROOT/tests/import/onnx_files.py" --seeds "$SEEDS"
find "$ROOT/tests/golden" "$ROOT/tests/data" -name '*.etir' -exec cp {} "$SEEDS/text" \;
cp "$ROOT"/tests/data/etdump/*.etdp "$SEEDS/etdump"
find "$ROOT/tests/import/pte" -name '*.pte' -exec cp {} "$SEEDS/pte" \;
python3 "$ROOT/tests/fuzz/quant_seeds.py" "$ROOT" "$SEEDS"

# Makes seeds from programs of the goldens, from exported models and from files of the official exporter.
compile_seeds() {
    [ ! -e "$SEEDS/.compiled" ] || return 0
    C_EVERY=0 PTE_FOLDER=$SEEDS/pte ASAN_OPTIONS=detect_leaks=0 \
        "$BUILD/tests/fuzz/fuzz_full" -runs=0 "$SEEDS/full" > "$WORK/seeds.log" 2>&1 || {
        tail -n 5 "$WORK/seeds.log"
        exit 1
    }
    python3 "$ROOT/tests/fuzz/seeds.py" "$ROOT" "$SEEDS" "$BUILD/etc" "$ROOT/build"
    find "$ROOT/tests/data/official_pte" -name '*.pte' -size -200k -exec cp {} "$SEEDS/pte" \;
    grep -lr XnnpackBackend "$SEEDS/pte" | while read -r f; do cp "$f" "$SEEDS/xnn_run"; done
    python3 "$ROOT/tests/fuzz/xnn_seeds.py" "$SEEDS/xnn_run" "$SEEDS/xnn"
    touch "$SEEDS/.compiled"
}

fuzz() { # seconds, target, program: leaves its log in $log and its time in $took, fails as it does
    seconds=$1
    shift
    mkdir -p "$WORK/$2.corpus"
    log=$WORK/$2.log
    status=0
    start=$(date +%s)
    set -- "$1" "$2" "$WORK/$2.corpus" "$SEEDS/$1"
    [ ! -e "$ROOT/tests/fuzz/$1.dict" ] || set -- "$@" -dict="$ROOT/tests/fuzz/$1.dict"
    program=$BUILD/tests/fuzz/$2
    shift 2
    (cd "$WORK" && exec "$program" -max_total_time="$seconds" -rss_limit_mb=1500 -timeout=60 \
        -artifact_prefix="$program.found." -print_final_stats=1 -entropic=0 "$@") > "$log" 2>&1 || status=$?
    took=$(($(date +%s) - start))
    return $status
}

row() { # verdict, target, text
    [ "$1" != FAIL ] || failed=1
    printf '%-4s %-7s %s\n' "$1" "$2" "$3"
}

summary() { sed -n 's/^stat::number_of_executed_units: *//p' "$log"; }

target() {
    rm -rf "$WORK/fuzz_$1_planted.corpus"
    if fuzz "$PLANTED_SECONDS" "$1" "fuzz_$1_planted"; then
        row FAIL "$1" "the planted bug was not found in $PLANTED_SECONDS s"
    elif [ "$status" = "$CANNOT" ]; then
        row skip "$1" "this CPU does not run the code with the planted bug"
    else
        row ok "$1" "planted, found in $took s: $(grep -m 1 -E 'SUMMARY|ERROR: libFuzzer' "$log" | cut -c 1-100)"
    fi
    if fuzz "$SECONDS_EACH" "$1" "fuzz_$1"; then
        row ok "$1" "$(summary) runs in $took s, nothing found"
    else
        row FAIL "$1" "$(grep -m 1 -E 'SUMMARY|ERROR: libFuzzer' "$log" || tail -n 1 "$log")"
        echo "     see $log"
    fi
    sed -n 's/^skip //p' "$log" | while read -r what; do row skip "$1" "$what"; done
}

# The seeds call every kernel so that it does not refuse.
kernels() {
    rm -f "$WORK/kernels"
    KERNELS_REACHED=$WORK/kernels "$BUILD/tests/fuzz/fuzz_kernel" -runs=0 "$SEEDS/kernel" \
        > "$WORK/kernels.log" 2>&1 || {
        row FAIL kernel "the seeds did not run: see $WORK/kernels.log"
        return
    }
    missing=$(sed -n 's/ 0$//p' "$WORK/kernels" | tr '\n' ' ')
    row "$([ -z "$missing" ] && echo ok || echo FAIL)" kernel \
        "$(grep -vc ' 0$' "$WORK/kernels") kernels called by seeds${missing:+, not: $missing}"
}

# A pass may have nothing to change, as those that check.
passes() {
    [ -e "$WORK/passes" ] || return 0
    idle=$(sed -n 's/ [0-9]* 0$//p' "$WORK/passes" | tr '\n' ' ')
    row ok full "$(grep -vc ' 0$' "$WORK/passes") passes changed a program${idle:+, not: $idle}"
}

if [ $# = 0 ]; then
    for source in "$ROOT"/tests/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        set -- "$@" "${name%.c}"
    done
fi
case " $* " in
*" pte "* | *" xnn "* | *" xnn_run "*) compile_seeds ;;
esac
rm -f "$WORK/passes"
export PASSES_REACHED="$WORK/passes" # of fuzz_full, as it ends
for name in "$@"; do
    if [ ! -e "$BUILD/tests/fuzz/fuzz_$name" ]; then
        row skip "$name" "its library or CPU is not there"
        continue
    fi
    target "$name"
    case $name in
    kernel) kernels ;;
    full) passes ;;
    esac
done
exit $failed
