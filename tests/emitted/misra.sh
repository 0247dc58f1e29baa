#!/bin/sh
# misra.sh ROOT BUILD: docs/misra.md names each rule of MISRA C:2012 that cppcheck reports for emitted C.  Prints TAP.
set -u
root=$1
. "$root/tests/tap.sh"
etc=$2/etc
dir=$2/tests/emitted.misra
rm -rf "$dir"
mkdir -p "$dir/words"
cd "$dir" || exit 1
cp "$root/tests/data/tiny_kws_dscnn/input_0.npy" words
sed -nE 's/^\| ((Directive|Rule)[^|]*)\|.*/\1/p' "$root/docs/misra.md" | grep -oE '[0-9]+\.[0-9]+' | sort -u > named

rules() { # file: prints them
    cppcheck --addon=misra --max-configs=1 --std=c99 -q "$1" 2>&1 | sed -nE 's/.*\[misra-c2012-([0-9.]+)\]$/\1/p' | sort -u
}

are_named() { # name, model, options of emit-c
    name=$1
    model=$2
    shift 2
    "$etc" emit-c -q "$root/tests/data/$model/model.pt2" -o "$name.c" "$@" && rules "$name.c" > "$name.rules" &&
        grep -qx 18.4 "$name.rules" && ! grep -vxFf named "$name.rules"
}

if [ "$(cppcheck --version 2>/dev/null)" = "Cppcheck 2.10" ]; then # others report other rules
    check "integers on a Cortex-M4" are_named integers tiny_kws_dscnn --recipe int8 --calibrate words --target cortex-m4
    check "floats on a Cortex-M4" are_named floats cnn_digits --target cortex-m4
    check "integers on any CPU" are_named any tiny_kws_dscnn --recipe int8 --calibrate words
else
    skip "docs/misra.md" "there is no cppcheck 2.10"
fi
finish 1
