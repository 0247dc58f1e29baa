#!/bin/sh
# march.sh ROOT BUILD: checks that the cores give the same bits with every instruction set,
# optimisation level and compiler, and as C++, under the strict flags of emitted C.  Prints TAP.
set -u
root=$1
. "$root/tests/tap.sh"
dir=$2/march
mkdir -p "$dir"
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wvla -Werror"
first=
full=${EMITTED_FULL:-} # adds levels of clang and C++

runs() { # -march level, or -mfma: does this CPU have it?
    case $1 in
    x86-64-v3) grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo ;;
    -mfma) grep -qw fma /proc/cpuinfo ;;
    x86-64-v4) grep -qw avx512vl /proc/cpuinfo && grep -qw avx512dq /proc/cpuinfo ;;
    *) true ;;
    esac
}

one() { # compiler and standard, options
    name=$(echo "$1 $2" | sed "s|$root/||")
    exe=$dir/$(echo "$name" | tr -c 'a-z0-9\n' _)
    case $2 in
    *march=x86-64-v?* | *-mfma)
        level=${2##* }
        if ! runs "${level#-march=}"; then
            skip "$name" "this CPU lacks it"
            return
        fi ;;
    esac
    # shellcheck disable=SC2086
    if ! $1 $2 $strict -I"$root" -o "$exe" "$root/tests/ops/cores_hash.c" -lm 2>"$exe.log"; then
        report "not ok" "$name: $(head -n 3 "$exe.log" | tr '\n' ' ')"
        return
    fi
    "$exe" >"$exe.out" || { report "not ok" "$name does not run"; return; }
    if [ -z "$first" ]; then
        first=$exe.out
    fi
    if cmp -s "$first" "$exe.out"; then
        report ok "$name"
    else
        report "not ok" "$name: $(diff "$first" "$exe.out" | grep '^>' | head -n 3 | tr '\n' ' ')"
    fi
}

x86=$([ "$(uname -m)" = x86_64 ] && echo yes)
first_of() {
    for c in "$@"; do
        command -v "$c" >/dev/null && echo "$c" && return
    done
}

for c in $(first_of gcc) $(first_of clang clang-14); do
    one "$c -std=c99" "-O2"
    [ "$x86" ] || continue
    one "$c -std=c99" "-O2 -march=x86-64-v3"
    [ "$c" = gcc ] || [ "$full" ] || continue
    one "$c -std=c99" "-O1 -mfma" # without AVX2
    if runs x86-64-v4; then
        one "$c -std=c99" "-O2 -march=x86-64-v4"
    else
        one "$c -std=c99" "-DEMULATE_AVX512 -include $root/tests/ops/emulated.h -O0 -march=x86-64-v3"
    fi
    one "$c" "-O3 -march=native" # gnu mode, where gcc contracts unless told
done
for c in $(first_of g++) $(first_of clang++ clang++-14); do
    [ "$x86" ] && [ -z "$full" ] || one "$c -x c++" "-O2"
    [ "$x86" ] || continue
    one "$c -x c++" "-O2 -march=native"
done
finish 2
