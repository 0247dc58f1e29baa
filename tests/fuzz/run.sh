#!/bin/sh
# run.sh -- every fuzz target: first with its planted bug, which it has to find within three minutes
# and which ends that run, then for some seconds as it is, where it has to find nothing.
#
#     run.sh BUILD_FOLDER SECONDS [TARGET ...]
#
# Seeds come from the tests' own files; what a run learns is kept in BUILD_FOLDER/corpus.  A target's
# dictionary is tests/fuzz/TARGET.dict.  Prints two rows per target as each run ends; files that break one are kept.
set -eu
PLANTED_SECONDS=180
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$(cd "$1" && pwd)
SECONDS_EACH=$2
shift 2
WORK=$BUILD/fuzz
SEEDS=$WORK/seeds
failed=0

mkdir -p "$SEEDS/text" "$SEEDS/pte"
python3 "$ROOT/tests/import/make_hostile.py" --seeds "$SEEDS" > /dev/null
find "$ROOT/tests/golden" "$ROOT/tests/data" -name '*.etir' -exec cp {} "$SEEDS/text" \;
find "$ROOT/tests/import/pte" -name '*.pte' -exec cp {} "$SEEDS/pte" \;
python3 "$ROOT/tests/fuzz/quant_seeds.py" "$ROOT" "$SEEDS"
python3 "$ROOT/tests/fuzz/xnn_seeds.py" "$ROOT/tests/data/official_pte" "$SEEDS/xnn"

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
    (cd "$WORK" && exec "$program" -max_total_time="$seconds" -rss_limit_mb=1500 -timeout=20 \
        -artifact_prefix="$program.found." -print_final_stats=1 "$@") > "$log" 2>&1 || status=$?
    took=$(($(date +%s) - start))
    return $status
}

row() { # verdict, target, text
    [ "$1" = ok ] || failed=1
    printf '%-4s %-6s %s\n' "$1" "$2" "$3"
}

summary() { sed -n 's/^stat::number_of_executed_units: *//p' "$log"; }

target() {
    rm -rf "$WORK/fuzz_$1_planted.corpus"
    if fuzz "$PLANTED_SECONDS" "$1" "fuzz_$1_planted"; then
        row FAIL "$1" "the planted bug was not found in $PLANTED_SECONDS s"
    else
        row ok "$1" "planted, found in $took s: $(grep -m 1 -E 'SUMMARY|ERROR: libFuzzer' "$log" | cut -c 1-100)"
    fi
    if fuzz "$SECONDS_EACH" "$1" "fuzz_$1"; then
        row ok "$1" "$(summary) runs in $took s, nothing found"
    else
        row FAIL "$1" "$(grep -m 1 -E 'SUMMARY|ERROR: libFuzzer' "$log" || tail -n 1 "$log")"
        echo "     see $log"
    fi
}

if [ $# = 0 ]; then
    for source in "$ROOT"/tests/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        set -- "$@" "${name%.c}"
    done
fi
for name in "$@"; do
    target "$name"
done
exit $failed
