# find_package(etc) gives
#
#   etc::runtime                      runtime-lite with all kernels: link it and include <etc_rt.h>
#   etc_emit_c(TARGET MODEL [FLAG ...])   a static library of the C that `etc emit-c` makes of a model;
#                                     its header is <TARGET.h>
#
# It lies in PREFIX/lib/cmake/etc, or PREFIX/lib/TRIPLET/cmake/etc.
get_filename_component(_etc_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(_etc_prefix "${_etc_lib}")
while(NOT EXISTS "${_etc_prefix}/include/etc/etc_rt.h" AND NOT _etc_prefix STREQUAL "/")
  get_filename_component(_etc_prefix "${_etc_prefix}" DIRECTORY)
endwhile()
find_program(ETC_EXECUTABLE etc HINTS "${_etc_prefix}/bin")

if(NOT TARGET etc::runtime)
  add_library(etc::runtime STATIC IMPORTED)
  set_target_properties(etc::runtime PROPERTIES
    IMPORTED_LOCATION "${_etc_lib}/libetc-runtime.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_etc_prefix}/include/etc"
    INTERFACE_LINK_LIBRARIES m)
endif()

function(etc_emit_c target model)
  get_filename_component(model "${model}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${target}.c")
  add_custom_command(OUTPUT "${out}" COMMAND "${ETC_EXECUTABLE}" emit-c "${model}" -o "${out}" -q
    --weights-as array ${ARGN} DEPENDS "${model}" VERBATIM)
  add_library(${target} STATIC "${out}")
  target_include_directories(${target} PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
  target_link_libraries(${target} PUBLIC m)
endfunction()
