#!/bin/sh
# build_files.sh ROOT BUILD: checks that the files of emit-c --build-files build, and give the outputs of a plain build.
# Prints TAP.
#
# Zephyr and the Arduino tools are not installed.  The sources that their files list are compiled for a Cortex-M;
# those of Zephyr by CMake, with stand-ins for the functions that Zephyr would define.
set -u
root=$1
. "$root/tests/tap.sh"
etc=$2/etc
dir=$2/tests/emitted.build_files
digits=$root/tests/data/mlp_digits
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1

emit() { # out, options...
    out=$1
    shift
    mkdir -p "$(dirname "$out")"
    "$etc" emit-c "$digits/model.pt2" --dim input.0=1..8 -o "$out" -q "$@"
}

has_tools() { # tools...
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "1..0 # SKIP no $tool here"; exit 0; }
    done
}

runs_right() { # program
    rm -rf outputs
    "$1" --input "$digits/input_0.npy" --output-dir outputs && cmp outputs/output_0.npy plain/output_0.npy
}

has_tools cmake meson ninja arm-none-eabi-gcc cc

plain_build() {
    emit plain/digits.c --main && cc -O3 -o plain/run plain/digits*.c -lm &&
        plain/run --input "$digits/input_0.npy" --output-dir plain
}

# -- CMake -----------------------------------------------------------------------------------

cmake_library() {
    emit cm/digits.c --main --weights-as incbin --build-files cmake &&
        mkdir -p cmake_app && cat >cmake_app/CMakeLists.txt <<'END' &&
cmake_minimum_required(VERSION 3.13)
project(app C)
add_subdirectory(../cm cm)
add_executable(app app.c)
target_link_libraries(app digits)
END
        cat >cmake_app/app.c <<'END' &&
#include "digits.h"
int main(void)
{
    static _Alignas(64) uint8_t arena[DIGITS_ARENA_BYTES + 1];
    static float x[8 * 64], y[8 * 10];
    return digits_run(x, y, 8, arena) || digits_run(x, y, 9, arena) != 2;
}
END
        cmake -G Ninja -S cmake_app -B cmake_app/build -DCMAKE_C_FLAGS=-Werror &&
        ninja -C cmake_app/build app digits_main && cmake_app/build/app && runs_right cmake_app/build/cm/digits_main
}

cmake_notices_weights() { # that only the .bin changed
    touch cm/digits_weights.S.bin && ninja -C cmake_app/build -n app | grep digits_weights
}

cmake_cross() {
    emit m4/digits.c --target cortex-m4 --build-files cmake &&
        cmake -G Ninja -S m4 -B m4/build -DCMAKE_SYSTEM_NAME=Generic -DCMAKE_C_COMPILER=arm-none-eabi-gcc \
            -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY &&
        ninja -C m4/build -v && arm-none-eabi-readelf -A m4/build/libdigits.a | grep 'Tag_ABI_VFP_args: VFP registers' &&
        grep -q -- '-O2 -mthumb -mcpu=cortex-m4' m4/build/build.ninja
}

cmake_of_other_core() { # by the compiler of this machine
    cmake -G Ninja -S m4 -B m4/host && ninja -C m4/host && ! grep -q -- -mthumb m4/host/build.ninja
}

cmake_threads() { # a C library of its own may have the functions of threads
    emit cm_threads/digits.c --main --parallel 2 --build-files cmake && cmake -G Ninja -S cm_threads -B cm_threads/build &&
        ninja -C cm_threads/build digits_main && runs_right cm_threads/build/digits_main &&
        grep -q 'LINK_FLAGS = .*-pthread' cm_threads/build/build.ninja
}

odd_name() { # a target is an identifier, a file is not
    emit odd/a.b-c.c --build-files cmake && cmake -G Ninja -S odd -B odd/build && ninja -C odd/build a_b_c
}

# -- Meson -----------------------------------------------------------------------------------

meson_library() {
    emit meson_app/subprojects/digits/digits.c --main --weights-as incbin --build-files meson &&
        cp cmake_app/app.c meson_app && cat >meson_app/meson.build <<'END' &&
project('app', 'c')
subproject('digits')
executable('app', 'app.c', dependencies : dependency('digits'))
END
        meson setup meson_app/build meson_app --werror && ninja -C meson_app/build app subprojects/digits/digits_main &&
        meson_app/build/app && runs_right meson_app/build/subprojects/digits/digits_main &&
        grep -q 'ARGS = .* -O3' meson_app/build/build.ninja
}

meson_threads() {
    emit meson_threads/digits.c --main --parallel 2 --build-files meson && meson setup meson_threads/build meson_threads &&
        ninja -C meson_threads/build digits_main && runs_right meson_threads/build/digits_main &&
        grep -q 'LINK_ARGS = .*-pthread' meson_threads/build/build.ninja
}

meson_notices_weights() {
    touch meson_app/subprojects/digits/digits_weights.S.bin && ninja -C meson_app/build -n | grep weights
}

meson_cross() {
    cat >cross.txt <<'END' &&
[binaries]
c = 'arm-none-eabi-gcc'
ar = 'arm-none-eabi-ar'
[host_machine]
system = 'none'
cpu_family = 'arm'
cpu = 'cortex-m4'
endian = 'little'
[properties]
needs_exe_wrapper = true
[built-in options]
c_link_args = ['--specs=nosys.specs']
END
        emit meson_m4/digits.c --target cortex-m4 --build-files meson &&
        meson setup --cross-file cross.txt meson_m4/build meson_m4 && ninja -C meson_m4/build &&
        cd meson_m4/build && arm-none-eabi-readelf -A "$(find . -name '*.o')" | grep 'Tag_ABI_VFP_args: VFP registers'
}

meson_of_other_core() {
    meson setup meson_m4/host meson_m4 && ninja -C meson_m4/host && ! grep -q -- -mthumb meson_m4/host/build.ninja
}

# -- Zephyr and Arduino ----------------------------------------------------------------------

zephyr_module() {
    emit zephyr_module/digits.c --target cortex-m4 --weights-as incbin --build-files zephyr &&
        mkdir -p zephyr_app && cat >zephyr_app/CMakeLists.txt <<'END' &&
cmake_minimum_required(VERSION 3.20)
project(stand_in C ASM)
set(CONFIG_ETC_DIGITS ${WANTED})
macro(zephyr_include_directories)
    include_directories(${ARGN})
endmacro()
macro(zephyr_library_named name)
    set(ZEPHYR_CURRENT_LIBRARY ${name})
    add_library(${name} STATIC "")
endmacro()
macro(zephyr_library_sources)
    target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endmacro()
macro(zephyr_library_compile_options)
    target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endmacro()
file(STRINGS ../zephyr_module/zephyr/module.yml cmake REGEX "^  cmake: ")
string(REPLACE "  cmake: " "" cmake "${cmake}")
add_subdirectory(../zephyr_module/${cmake} module)
END
        grep -qx 'name: digits' zephyr_module/zephyr/module.yml &&
        test -f "zephyr_module/$(sed -n 's/^  kconfig: //p' zephyr_module/zephyr/module.yml)" &&
        grep -qx 'config ETC_DIGITS' zephyr_module/zephyr/Kconfig &&
        cmake -G Ninja -S zephyr_app -B zephyr_app/build -DWANTED=y -DCMAKE_SYSTEM_NAME=Generic \
            -DCMAKE_C_COMPILER=arm-none-eabi-gcc -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
            "-DCMAKE_C_FLAGS=-mthumb -mcpu=cortex-m4" "-DCMAKE_ASM_FLAGS=-mthumb -mcpu=cortex-m4" &&
        ninja -C zephyr_app/build && arm-none-eabi-nm zephyr_app/build/module/libetc_digits.a | grep 'T digits_run' &&
        arm-none-eabi-nm zephyr_app/build/module/libetc_digits.a | grep 'R digits_weights'
}

zephyr_module_off() {
    cmake -G Ninja -S zephyr_app -B zephyr_app/off -DWANTED= -DCMAKE_C_COMPILER=cc && ! grep -q digits.c zephyr_app/off/build.ninja
}

arduino_library() {
    emit Digits/src/digits.c --target cortex-m0plus --build-files arduino &&
        for key in name=digits version= author= maintainer= sentence= paragraph= category= url= architectures='\*' includes=digits.h; do
            grep -q "^$key" Digits/library.properties || return 1
        done &&
        test "$(ls Digits)" = "library.properties
src" &&
        for f in Digits/src/*.c; do
            arm-none-eabi-gcc -Os -mthumb -mcpu=cortex-m0plus -c "$f" -o "$f.o" || return 1
        done &&
        printf '#include <digits.h>\nint sketch(void *arena) { static float x[64], y[10]; return digits_run(x, y, 1, arena); }\n' >sketch.cpp &&
        arm-none-eabi-gcc -Os -mthumb -mcpu=cortex-m0plus -IDigits/src -c sketch.cpp -o sketch.o
}

# -- files that are there already --------------------------------------------------------------

same_bytes() {
    for system in cmake meson zephyr; do
        emit "first/$system/digits.c" --build-files $system --main && emit "second/$system/digits.c" --build-files $system --main &&
            emit "second/$system/digits.c" --build-files $system --main || return 1
    done
    diff -r first second
}

keeps() { # system, file: one of the user's own stays as it is, and nothing else is written
    rm -rf own && mkdir -p "$(dirname "own/src/$2")" && echo "# mine" >"own/src/$2" &&
        ! emit own/src/digits.c --build-files "$1" 2>err && grep -q "not made by etc for this model" err &&
        test "$(cat "own/src/$2")" = "# mine" && test "$(find own -type f | wc -l)" = 1
}

keeps_other_model() {
    rm -rf two && emit two/a.c --build-files cmake && ! emit two/b.c --build-files cmake 2>err && test ! -e two/b.c &&
        grep -q 'model a;' two/CMakeLists.txt
}

leaves_no_folder() {
    rm -rf none && mkdir -p none/digits.h && ! emit none/digits.c --build-files zephyr 2>err && test ! -e none/zephyr
}

no_input_is_overwritten() {
    rm -rf in && mkdir -p in && cp "$digits/model.pt2" in/CMakeLists.txt &&
        ! "$etc" emit-c in/CMakeLists.txt -o in/digits.c --build-files cmake 2>err && cmp in/CMakeLists.txt "$digits/model.pt2"
}

check "a plain build, to compare with" plain_build
check "cmake: a library, a program and an application" cmake_library
check "cmake: weights that change are built again" cmake_notices_weights
check "cmake: a Cortex-M4 gets its flags" cmake_cross
check "cmake: the compiler of a PC does not get them" cmake_of_other_core
check "cmake: a pool of threads" cmake_threads
check "cmake: a file's name that is no identifier" odd_name
check "meson: a library, a program and an application" meson_library
check "meson: a pool of threads" meson_threads
check "meson: weights that change are built again" meson_notices_weights
check "meson: a Cortex-M4 gets its flags" meson_cross
check "meson: the compiler of a PC does not get them" meson_of_other_core
check "zephyr: the module, with stand-ins for Zephyr's functions" zephyr_module
check "zephyr: nothing is built without CONFIG_ETC_DIGITS" zephyr_module_off
check "arduino: what lies in src compiles, and a sketch that calls it" arduino_library
check "the same bytes again" same_bytes
check "cmake: a file of the user's stays" keeps cmake CMakeLists.txt
check "meson: a file of the user's stays" keeps meson meson.build
check "zephyr: a file of the user's stays" keeps zephyr zephyr/Kconfig
check "arduino: a file of the user's stays" keeps arduino ../library.properties
check "another model's file stays" keeps_other_model
check "a failed run leaves no folder" leaves_no_folder
check "an input is not overwritten" no_input_is_overwritten
finish 1
