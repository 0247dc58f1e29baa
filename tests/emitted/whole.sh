#!/bin/sh
# whole.sh ROOT BUILD EVAL: checks that emitted C of tests/emitted/whole gives the evaluator's bits.
# C keeps these operators whole and a .pte does not, so `etc run` is no reference.  Prints TAP.
set -u
root=$1
. "$root/tests/tap.sh"
. "$root/tests/emitted/inputs.sh"
dir=$2/tests/emitted.whole
etc=$2/etc
eval=$3
npy=$dir/npy
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wvla -Werror"
rm -rf "$dir"
mkdir -p "$dir"

prepare() { # text
    mkdir -p "$dir/$name"
    inputs "$1" "$dir/$name"
    # shellcheck disable=SC2086
    "$etc" emit-c "$1" -o "$dir/$name/$name.c" --main -q &&
        "$eval" "$1" - $arguments --output-dir "$dir/$name/want"
}

same_outputs() {
    [ -f "$dir/$name/want/output_0.npy" ] || return 1
    for want in "$dir/$name"/want/*.npy; do
        "$npy" same "$dir/$name/got/${want##*/}" "$want" || return 1
    done
}

bits() { # suffixes of the files beside NAME_main.c, compiler and options
    files=
    for s in $1; do
        files="$files $dir/$name/$name$s"
    done
    shift
    command -v "$1" >/dev/null || return
    rm -rf "$dir/$name/got"
    # shellcheck disable=SC2086
    if "$@" -o "$dir/$name/exe" "$dir/$name/${name}_main.c" $files -lm >"$dir/log" 2>&1 &&
        "$dir/$name/exe" $arguments --output-dir "$dir/$name/got" >"$dir/log" 2>&1 &&
        same_outputs >"$dir/log" 2>&1; then
        report ok "$name: $*"
    else
        report "not ok" "$name: $*"
        tail -n 6 "$dir/log" | sed 's/^/# /'
    fi
}

cc -O1 -o "$npy" "$root/tests/emitted/npy.c" -lm || exit 1
for text in "$root"/tests/emitted/whole/*.etir; do
    name=$(basename "$text" .etir)
    if ! prepare "$text" >"$dir/log" 2>&1; then
        report "not ok" "$name: $(head -n 1 "$dir/log")"
        continue
    fi
    # shellcheck disable=SC2086
    {
        bits .c gcc -std=c99 -O0
        bits .c gcc -std=c99 -O2 $strict
        bits ".c _avx2.c _avx512.c" gcc -O3
        bits ".c _avx2.c _avx512.c" clang-14 -std=c99 -O2 $strict
    }
done
finish 9
