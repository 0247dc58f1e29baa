#!/bin/sh
# sizes.sh ROOT BUILD SIZES [c]: calls models with symbolic sizes, as a .pte and as C, with every
# combination of sizes in and near their ranges.  A call that is not refused must give the right
# results, and must not read or write memory that is not its own (tests/emitted/sizes.c).  Prints TAP.
#
# Without "c" nothing is called as C: an `etc` with sanitizers only has to emit it.
#
# "; ACCEPTS C PTE" in a text of tests/emitted/sizes says how many calls each of them must accept.
# Random models follow: ETC_SIZES=N of them, or with ETC_SEED=K only that one.
set -u
root=$1
. "$root/tests/tap.sh"
dir=$2/tests/emitted.sizes
etc=$2/etc
sizes=$3
as_c=$4
npy=$dir/npy
rm -rf "$dir"
mkdir -p "$dir"

# Runs the rest, which is to accept so many calls and get none of them wrong.
accepts() { # what, number, command...
    what=$1
    want=$2
    shift 2
    if "$@" >"$dir/log" 2>&1 && grep -q "^accepted $want of" "$dir/log"; then
        report ok "$what"
    else
        report "not ok" "$what, to accept $want"
        tail -n 8 "$dir/log" | sed 's/^/# /'
    fi
}

in_c() { # text
    "$etc" emit-c "$1" -o "$out/model.c" -q && "$sizes" driver "$1" >"$out/driver.c" &&
        "$sizes" c "$1" "$out/calls" &&
        cc -std=c11 -g -O0 -fsanitize=address,undefined -fno-sanitize-recover=all -o "$out/exe" \
            "$out/driver.c" "$out/model.c" -lm && "$out/exe" "$out/calls"
}

in_pte() { # text
    "$etc" compile "$1" -o "$out/model.pte" -q && "$sizes" pte "$1" "$out/model.pte"
}

# A model at random may be refused, but by exit code 1 or 4.
is_refused() { # command...
    "$@" >"$dir/log" 2>&1
    status=$?
    [ $status -eq 1 ] || [ $status -eq 4 ]
}

random() { # seed
    out=$dir/random
    mkdir -p "$out"
    "$sizes" random "$1" >"$out/m.etir"
    is_refused "$etc" emit-c "$out/m.etir" -o "$out/model.c" -q &&
        is_refused "$etc" compile "$out/m.etir" -o "$out/model.pte" -q && return
    [ -z "$as_c" ] || accepts "random $1: C" "[0-9]*" in_c "$out/m.etir"
    accepts "random $1: .pte" "[0-9]*" in_pte "$out/m.etir"
}

# The program beside NAME.c reads files: what each says of itself is held against the input.
main_says() { # words, TYPE DIMS of x, of y
    "$npy" random "$2" "$3" 1 "$dir/x.npy" && "$npy" random "$4" "$5" 2 "$dir/y.npy" &&
        "$npy" random f32 2,1,3,3 3 "$dir/k.npy" || return 1
    "$out/main" --input "$dir/x.npy" --input "$dir/y.npy" --input "$dir/k.npy" >"$dir/log" 2>&1
    status=$?
    if [ -z "$1" ]; then
        [ $status -eq 0 ]
    else
        [ $status -eq 1 ] && grep -q "$1" "$dir/log"
    fi
}

says() { # words, as main_says
    if main_says "$@"; then
        report ok "main: $2 $3, $4 $5: ${1:-taken}"
    else
        report "not ok" "main: $2 $3, $4 $5: ${1:-taken}"
        tail -n 6 "$dir/log" | sed 's/^/# /'
    fi
}

mains() {
    out=$dir/main
    mkdir -p "$out"
    "$etc" emit-c "$root/tests/emitted/sizes/fixed_sizes_beside_open_ones.etir" -o "$out/model.c" \
        --main -q && cc -std=c11 -g -O0 -fsanitize=address,undefined -fno-sanitize-recover=all \
        -o "$out/main" "$out/model_main.c" "$out/model.c" -lm
    says "" f32 2,1,4,3 f32 4,2
    says "x: dimension 1 is 2, expected 1" f32 2,2,4,3 f32 4,2
    says "x: dimension 2 is 5, expected 4" f32 2,1,5,3 f32 4,2
    says "x: dimension 3 is 0, expected 3" f32 2,1,4,0 f32 4,2
    says "x: dimension 0 is 4, expected b, 1 to 3" f32 4,1,4,3 f32 8,2
    says "y: dimension 0 is 6, expected (2\*b), 2 to 6" f32 2,1,4,3 f32 6,2
    says "its number of dimensions differs from that of the input" f32 2,4,3 f32 4,2
    says "its dtype differs from that of the input" f64 2,1,4,3 f32 4,2
    says "its dtype differs from that of the input" i32 2,1,4,3 f32 4,2
}

export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0
cc -O1 -o "$npy" "$root/tests/emitted/npy.c" -lm || exit 1
for text in "$root"/tests/emitted/sizes/*.etir; do
    name=$(basename "$text" .etir)
    out=$dir/$name
    mkdir -p "$out"
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^; ACCEPTS //p' "$text") none none
    [ -z "$as_c" ] || accepts "$name: C" "$1" in_c "$text"
    accepts "$name: .pte" "$2" in_pte "$text"
done
[ -z "$as_c" ] || mains
for seed in ${ETC_SEED:-$(seq "${ETC_SIZES:-20}")}; do
    random "$seed"
done
[ -z "$as_c" ] || least=61
finish "${least:-26}"
