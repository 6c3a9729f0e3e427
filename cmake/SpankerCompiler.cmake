# SPDX-License-Identifier: Apache-2.0
#
# How everything is compiled: language levels, where products go, warnings, sanitizers. Included once by the top file.

set(SPANKER_SANITIZE "none" CACHE STRING "Sanitizers of the whole build: none, address,undefined or thread")
set_property(CACHE SPANKER_SANITIZE PROPERTY STRINGS none "address,undefined" thread)
option(SPANKER_WERROR "Treat warnings as errors" ON)
option(SPANKER_FUZZ "Build the fuzzers against libFuzzer (clang only)" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # gnu11, the dialect of the kernel, for kernel/core and uapi
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

find_program(SPANKER_CCACHE ccache)
if(SPANKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER "${SPANKER_CCACHE}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${SPANKER_CCACHE}")
endif()

# What every target of the tree links privately. Tables and requests are written with designated initialisers that
# name only what differs from zero, so missing-field-initializers is off. SD_BUS_ERROR_NULL is a compound literal, which
# clang notes even where the macro comes from a system header.
add_library(spanker_flags INTERFACE)
target_compile_options(spanker_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-c99-extensions>
    $<$<BOOL:${SPANKER_WERROR}>:-Werror>)
target_compile_definitions(spanker_flags INTERFACE SPANKER_VERSION="${PROJECT_VERSION}")

# Sanitizers must cover every object of a program, so they are set for the directory tree and not per target.
if(SPANKER_SANITIZE STREQUAL "address,undefined")
    set(spanker_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(SPANKER_SANITIZE STREQUAL "thread")
    set(spanker_sanitizers -fsanitize=thread)
elseif(NOT SPANKER_SANITIZE STREQUAL "none")
    message(FATAL_ERROR "SPANKER_SANITIZE is '${SPANKER_SANITIZE}'; it must be none, 'address,undefined' or thread")
endif()
if(spanker_sanitizers)
    add_compile_options(${spanker_sanitizers} -O1 -g1 -fno-omit-frame-pointer) # -g1: lines for the reports
    add_link_options(${spanker_sanitizers})
    set(SPANKER_SANITIZED ON)
endif()

if(SPANKER_FUZZ)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "SPANKER_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
