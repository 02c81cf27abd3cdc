# How everything is compiled: warnings, sanitizers, linker, compiler cache, precompiled headers.
option(FAIRLEAD_WERROR "Treat warnings as errors" ON)
option(FAIRLEAD_PCH "Precompile the headers that nearly every file includes" OFF)
set(FAIRLEAD_UNITY_FILES 0 CACHE STRING "Files of a target that are compiled as one; 0: each alone")
set(FAIRLEAD_SANITIZE "" CACHE STRING "Sanitizers for everything, as in -fsanitize=<value>")

add_library(fairlead_options INTERFACE)
target_include_directories(fairlead_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(fairlead_options INTERFACE -Wall -Wextra -Wpedantic
  -Wnon-virtual-dtor -Wcast-align -Wconversion -Wno-sign-conversion -Woverloaded-virtual)
# False warnings of gcc 12 about Abseil and the standard library after inlining.
target_compile_options(fairlead_options INTERFACE
  $<$<NOT:$<CONFIG:Debug>>:-Wno-maybe-uninitialized;-Wno-uninitialized;-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overread;-Wno-mismatched-new-delete>)
if(FAIRLEAD_WERROR)
  target_compile_options(fairlead_options INTERFACE -Werror)
endif()

# The program names files relative to the sources, wherever it was built (checks, generated code), and so
# is the same in every folder. ccache passes relative paths to the compiler: both forms become one.
file(RELATIVE_PATH sources_from_build ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
string(REGEX REPLACE "/$" "" sources_from_build ${sources_from_build})
foreach(prefix ${CMAKE_SOURCE_DIR} ${sources_from_build} ${CMAKE_BINARY_DIR})
  add_compile_options($<$<CONFIG:Release>:-ffile-prefix-map=${prefix}/=>)
endforeach()

# Most of the time that a file takes is spent on headers. Names of one target must not collide, not even
# in anonymous namespaces: files of one unit see them, and gcc takes them for those of a header.
if(FAIRLEAD_UNITY_FILES GREATER 0)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE ${FAIRLEAD_UNITY_FILES})
  target_compile_options(fairlead_options INTERFACE -Wshadow=local -Wno-subobject-linkage)
else()
  target_compile_options(fairlead_options INTERFACE -Wshadow)
endif()

if(FAIRLEAD_SANITIZE)
  target_compile_options(fairlead_options INTERFACE -fsanitize=${FAIRLEAD_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(fairlead_options INTERFACE -fsanitize=${FAIRLEAD_SANITIZE})
  if(FAIRLEAD_SANITIZE MATCHES "address,undefined")
    # They check every access once more: a quarter of the time to compile, and half of the code. What
    # null pointers and wrong sizes do, AddressSanitizer finds; x86-64 and arm64 align by themselves.
    target_compile_options(fairlead_options INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
  if(FAIRLEAD_SANITIZE MATCHES "thread")
    target_compile_definitions(fairlead_options INTERFACE FAIRLEAD_TSAN=1)
    target_compile_options(fairlead_options INTERFACE -Wno-tsan)
  endif()
endif()

# fairlead_use_allocator(PROGRAM): it allocates with tcmalloc, which takes a tenth of the processor time
# off this kind of work. Sanitizers have an allocator of their own.
function(fairlead_use_allocator PROGRAM)
  if(NOT FAIRLEAD_SANITIZE)
    target_link_libraries(${PROGRAM} PRIVATE PkgConfig::TCMALLOC)
  endif()
endfunction()

find_program(MOLD_LINKER mold)
if(MOLD_LINKER)
  target_link_options(fairlead_options INTERFACE -fuse-ld=mold)
endif()

# One cache entry serves every build folder and every clone whose build folder is as deep: paths are
# taken relative to the sources, and the folder is not part of the hash (debug information is -g1).
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${CCACHE_PROGRAM})
endif()

# Two sets, for files of modules and for files of tests. No header of ours is in them: a change of it
# would compile everything again. clang-tidy reads each file alone, and so shows a forgotten #include.
if(FAIRLEAD_PCH)
  set(common_headers <algorithm> <cstdint> <functional> <limits> <map> <memory> <optional> <set>
    <string> <tuple> <utility> <variant> <vector> <absl/container/btree_map.h>
    <absl/container/btree_set.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/container/inlined_vector.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
    <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/strings/string_view.h>
    <absl/time/time.h> <absl/types/span.h>)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/empty.cc CONTENT "")
  add_library(fairlead_pch OBJECT ${CMAKE_BINARY_DIR}/generated/empty.cc)
  target_link_libraries(fairlead_pch PRIVATE fairlead_options absl::flat_hash_map)
  target_precompile_headers(fairlead_pch PRIVATE ${common_headers})
  add_library(fairlead_test_pch OBJECT ${CMAKE_BINARY_DIR}/generated/empty.cc)
  target_link_libraries(fairlead_test_pch PRIVATE fairlead_options absl::flat_hash_map GTest::gmock)
  target_precompile_headers(fairlead_test_pch PRIVATE ${common_headers} <gmock/gmock.h>
    <gtest/gtest.h>)
  # The cache must see the text behind a precompiled header.
  target_compile_options(fairlead_options INTERFACE -fpch-preprocess)
endif()

# fairlead_precompile(TARGET fairlead_pch|fairlead_test_pch): the target uses that set, if any.
function(fairlead_precompile TARGET SET)
  if(FAIRLEAD_PCH)
    target_precompile_headers(${TARGET} REUSE_FROM ${SET})
  endif()
endfunction()
