#!/bin/sh
# runtime.sh ROOT BUILD: checks that the sources of `etc runtime` build, compute what runtime-lite
# computes, and stay small.  Prints TAP.
set -u
root=$1
. "$root/tests/tap.sh"
build=$2
etc=$build/etc
data=$root/tests/data
dir=$build/tests/runtime
strict="-Wall -Wextra -Wpedantic -Werror"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1

have() {
    command -v "$1" >/dev/null
}

raw() { # .npy, to: its elements
    header=$(od -An -tu2 -j8 -N2 "$1" | tr -d ' ')
    tail -c +$((10 + header + 1)) "$1" >"$2"
}

# Without it products of floats call fmaf, of libm.
wide=
grep -qw fma /proc/cpuinfo && grep -qw avx2 /proc/cpuinfo && [ "$(uname -m)" = x86_64 ] && wide=-march=x86-64-v3

# -- a model -----------------------------------------------------------------------------------

expected() { # name, options of compile
    name=$1
    mkdir -p "$name"
    # shellcheck disable=SC2086
    "$etc" compile "$data/$1/model.pt2" $2 -o "$name/model.pte" -q &&
        "$etc" run "$name/model.pte" --input "$data/$1/input_0.npy" --output-dir "$name/want" -q &&
        raw "$data/$1/input_0.npy" "$name/input.bin" && raw "$name/want/output_0.npy" "$name/want.bin"
}

files_of() { # name, rows, bytes of planned memory: macros of start.c
    echo "-DMODEL=\"$dir/$1/model.pte\" -DINPUT=\"$dir/$1/input.bin\" -DWANT=\"$dir/$1/want.bin\"" \
        "-DROWS=$2 -DPOOL_BYTES=$3"
}

# The folder with the library, then macros of start.c: linked with nothing but that, and run.
runs_alone() {
    lib=$1
    shift
    # shellcheck disable=SC2086
    gcc -O2 $wide -ffreestanding -fno-builtin -fno-stack-protector -fno-pie -I"$lib" -c "$@" -o "$lib/start.o" \
        "$root/tests/runtime/start.c" &&
        gcc -nostdlib -static -no-pie -Wl,--gc-sections -o "$lib/alone" "$lib/start.o" "$lib/libetc_runtime.a" &&
        "$lib/alone"
}

makes() { # folder, CFLAGS
    # shellcheck disable=SC2086
    make -s -C "$1" clean && make -s -j2 -C "$1" CC=gcc CFLAGS="$2"
}

model() { # name, rows, bytes of planned memory
    check "$1: compile and run" expected "$1" "" || return
    check "$1: etc runtime" "$etc" runtime "$1/model.pte" -o "$1/lib" -q || return
    check "$1: make, without a warning" makes "$1/lib" "-O1 $wide $strict -ffreestanding"
    if [ -z "$wide" ]; then
        skip "$1: the same bits, linked with no library" "this CPU has no fma"
        return
    fi
    # shellcheck disable=SC2046
    check "$1: the same bits, linked with no library" runs_alone "$1/lib" $(files_of "$1" "$2" "$3")
}

# -- other builds --------------------------------------------------------------------------------

by_meson() { # the library's folder
    meson setup "$1/by_meson" "$1" && ninja -j2 -C "$1/by_meson" && [ -f "$1/by_meson/libetc_runtime.a" ]
}

by_cmake() {
    cmake -S "$1" -B "$1/by_cmake" && cmake --build "$1/by_cmake" && [ -f "$1/by_cmake/libetc_runtime.a" ]
}

clang_too() {
    make -s -C "$1" clean && make -s -j2 -C "$1" CC=clang CFLAGS="-O1 $strict"
}

same_bytes() {
    "$etc" runtime mlp_digits/model.pte -o again -q && "$etc" runtime ./mlp_digits/model.pte -o again -q &&
        make -s -C mlp_digits/lib clean && rm -rf mlp_digits/lib/by_* mlp_digits/lib/start.o mlp_digits/lib/alone &&
        diff -r again mlp_digits/lib
}

# -- what it refuses -----------------------------------------------------------------------------

# The library of one model is given another: 16 + ETC_UNSUPPORTED.
refuses_others() {
    # shellcheck disable=SC2046
    runs_alone mlp_digits/lib $(files_of cnn_digits 1 4000000)
    [ $? = 19 ]
}

says() { # exit code, texts in lines of their own, arguments
    should=$1
    parts=$2
    shift 2
    "$etc" runtime "$@" -o refused >said 2>&1
    code=$?
    cat said
    echo "$parts" | while read -r part; do
        grep -qF -e "$part" said || exit 1
    done && [ $code = "$should" ] && [ ! -e refused ]
}

# A model with a part of XNNPACK's and one with an operator of the user's own.
strange_models() {
    cat >own.etir <<END
program "own" stage aten
method @forward(%x: f32[4]) {
  %y = my.f.default(%x) : f32[4]
  %z = aten.relu.default(%y) : f32[4]
  return %z
}
END
    cat >own.yaml <<END
operators:
  - schema: "my::f(Tensor x) -> Tensor"
    results:
      - {dtype: dtype(x), sizes: sizes(x)}
    kernel: my::f.out
END
    "$etc" compile own.etir --ops own.yaml -o own.pte -q &&
        "$etc" compile "$data/cnn_digits/model.pt2" --backend xnnpack -o delegated.pte -q
}

# The folder of the sources, whose copy stands for the installed one, is also that of the output.
clobbers() {
    cp -r again copy && cp "$root/runtime-lite/kernels/kernels.def" copy/runtime-lite/kernels &&
        ! "$etc" runtime mlp_digits/model.pte --runtime-dir copy -o copy >said 2>&1 && cat said &&
        grep -q "is read, so it is not written" said &&
        cmp "$root/runtime-lite/kernels/kernels.def" copy/runtime-lite/kernels/kernels.def
}

own_kernels() {
    "$etc" runtime own.pte --ops own.yaml -o own -q && grep -q 'HOST_KERNELS 1' own/runtime-lite/etc_build.h &&
        ! grep -q HOST_KERNELS.1 mlp_digits/lib/runtime-lite/etc_build.h && makes own "-O1 $strict"
}

# -- Cortex-M4 -------------------------------------------------------------------------------------

m4="-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard"

links_for_m4() {
    make -s -C mlp_digits/lib clean
    make -s -j2 -C mlp_digits/lib CC=arm-none-eabi-gcc AR=arm-none-eabi-ar \
        CFLAGS="-Os $m4 -ffreestanding -DETC_BUILD_TEXT=0" || return 1
    # shellcheck disable=SC2046,SC2086
    arm-none-eabi-gcc -Os $m4 -ffreestanding -fno-builtin -Imlp_digits/lib $(files_of mlp_digits 1 1024) \
        -c -o m4.o "$root/tests/runtime/start.c" &&
        arm-none-eabi-gcc $m4 -nostdlib -Wl,--gc-sections,-Map=m4.map -o m4.elf m4.o \
            mlp_digits/lib/libetc_runtime.a -lgcc
}

# Bytes of code and constants in the map, of object files whose names match: a section's name stands on
# the line before where it is long.
map_bytes() { # regular expression
    awk -v object="$1" '
        /^Linker script and memory map/ { in_map = 1 }
        in_map && NF == 1 && $1 ~ /^\.(text|rodata)/ { long = 1; next }
        in_map && long && NF >= 3 && $1 ~ /^0x/ { add($2, $3) }
        in_map && $1 ~ /^\.(text|rodata)/ && NF >= 4 && / \.(text|rodata)/ { add($3, $4) }
        { long = 0 }
        function hex(s,  i, v) {
            s = tolower(substr(s, 3))
            for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
            return v
        }
        function add(bytes, file) { if (file ~ object) sum += hex(bytes) }
        END { print sum + 0 }' m4.map
}

at_most() { # bytes, of what
    bytes=$(map_bytes "$2")
    echo "$bytes bytes"
    [ "$bytes" -gt 4096 ] && [ "$bytes" -le "$1" ]
}

core='libetc_runtime.a.(executor|flat_read|method|overlap|program|values|kernels)\.o'

cortex_m4() {
    if ! have arm-none-eabi-gcc; then
        skip "Cortex-M4" "no arm-none-eabi-gcc here"
        return
    fi
    check "Cortex-M4: links with no library but libgcc" links_for_m4 || return
    check "Cortex-M4: the core has at most 12 KB of code" at_most 12288 "$core"
    check "Cortex-M4: with the kernels of mlp_digits, and libgcc, at most 20 KB" at_most 20480 \
        'libetc_runtime.a|libgcc.a'
}

model mlp_digits 8 600000
model cnn_digits 1 4000000
model softmax 1 4000000
check "the same bytes again, over what is there" same_bytes
check "meson builds it" by_meson mlp_digits/lib
if have cmake; then
    check "cmake builds it" by_cmake mlp_digits/lib
else
    skip "cmake builds it" "no cmake here"
fi
if have clang; then
    check "clang builds it" clang_too cnn_digits/lib
else
    skip "clang builds it" "no clang here"
fi
check "library of mlp_digits again" makes mlp_digits/lib "-O1 $wide"
[ -z "$wide" ] || check "another model is refused" refuses_others
check "no file is written where one is no .pte" says 1 "identifier" mlp_digits/model.pte "$data/linear/model.etir"
check "no file is written where the sources are not found" says 3 "--runtime-dir" mlp_digits/model.pte --runtime-dir /
check "models with operators of others" strange_models
check "all that runtime-lite lacks is told at once" says 4 "own.pte: error: my::f.out: a kernel of your own
delegated.pte: error: parts are delegated to XnnpackBackend" own.pte mlp_digits/model.pte delegated.pte
check "kernels that --ops names are the host's" own_kernels
check "no source is written over itself" clobbers
cortex_m4
finish 1
