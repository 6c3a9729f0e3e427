# SPDX-License-Identifier: Apache-2.0
#
# Tests, fuzzers and benchmarks register here.
#
#   spanker_test(NAME SOURCES file... [LIBS target...] [LABELS word...] [TIMEOUT seconds] [ENVIRONMENT VAR=value...]
#                [NO_MAIN] [SERIAL])
#       A GoogleTest program; each of its tests becomes the ctest test NAME.Suite.Test. Its label is the name of the
#       folder under tests/ (unit, contract, daemon, service) plus LABELS; the label `tsan` asks for a run under
#       ThreadSanitizer. The program sees SPANKER_TEST_DATA (tests/data) and SPANKER_BIN_DIR (build/bin) as string
#       macros. NO_MAIN: the sources bring main(). SERIAL: never beside another test.
#
#   spanker_fuzzer(NAME SOURCES file... [LIBS target...] [CORPUS folder])
#       A file with LLVMFuzzerTestOneInput. With SPANKER_FUZZ it becomes the libFuzzer program build/bin/fuzz/NAME.
#       Without, it is linked to tests/fuzz/replay_main.cpp and ctest runs it over its corpus and over a fixed number of
#       pseudo-random inputs, so that every compiler and sanitizer walks the same code.
#
#   spanker_bench(NAME SOURCES file... [LIBS target...])
#       A program of `make bench`, in build/bin/bench/NAME, started with the path of the JSON file it is to write.
include(GoogleTest)

# Paths reach the tests by a forced header and not by -D, so that only the files that use one miss the compiler cache when
# the tree is cloned to another folder.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/test_paths.h" CONTENT [[
#define SPANKER_TEST_DATA "@PROJECT_SOURCE_DIR@/tests/data"
#define SPANKER_BIN_DIR "@CMAKE_BINARY_DIR@/bin"
]] @ONLY)

# The areas that bring tests. Each writes tests/<kind>/<area>.cmake and nobody shares a file.
set(SPANKER_TEST_AREAS timing sim engine core planner data lib status backend daemon cli)

macro(spanker_include_areas)
    foreach(area IN LISTS SPANKER_TEST_AREAS)
        include("${CMAKE_CURRENT_SOURCE_DIR}/${area}.cmake" OPTIONAL)
    endforeach()
endmacro()

function(spanker_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "NO_MAIN;SERIAL" "TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT")
    spanker_refuse_leftovers("spanker_test(${name})" "${arg_UNPARSED_ARGUMENTS}")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 60)
    endif()
    if(SPANKER_SANITIZED)
        math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
    endif()
    if(arg_NO_MAIN)
        set(main GTest::gtest)
    else()
        set(main GTest::gtest_main)
    endif()
    spanker_executable(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} ${main} GTest::gmock Threads::Threads)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
    target_compile_options(${name} PRIVATE -include "${PROJECT_BINARY_DIR}/test_paths.h")

    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME kind)
    foreach(label IN LISTS kind arg_LABELS) # `cmake --build build --target tests-unit` builds what `ctest -L unit` runs
        if(NOT TARGET tests-${label})
            add_custom_target(tests-${label})
        endif()
        add_dependencies(tests-${label} ${name})
    endforeach()
    gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)

    # gtest_discover_tests() flattens lists in PROPERTIES, so ctest reads these from a script of its own.
    set(script "${CMAKE_CURRENT_BINARY_DIR}/${name}-properties.cmake")
    list(JOIN arg_ENVIRONMENT ";" environment)
    file(WRITE "${script}"
        "if(NOT ${name}_TESTS)\n    return() # not built\nendif()\n"
        "set_tests_properties(\${${name}_TESTS} PROPERTIES LABELS [[${kind};${arg_LABELS}]]\n"
        "    TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL} ENVIRONMENT [[${environment}]])\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()

function(spanker_fuzzer name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;LIBS")
    spanker_refuse_leftovers("spanker_fuzzer(${name})" "${arg_UNPARSED_ARGUMENTS}")
    if(arg_CORPUS)
        cmake_path(ABSOLUTE_PATH arg_CORPUS BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    endif()
    if(SPANKER_FUZZ)
        spanker_executable(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        set_property(GLOBAL APPEND PROPERTY SPANKER_FUZZERS "${name}|${arg_CORPUS}")
    else()
        spanker_executable(${name} SOURCES ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp"
            LIBS ${arg_LIBS})
        add_test(NAME fuzz.${name}.replay COMMAND ${name} ${arg_CORPUS})
        set_tests_properties(fuzz.${name}.replay PROPERTIES LABELS fuzz TIMEOUT 300)
    endif()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/fuzz")
endfunction()

function(spanker_bench name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
    spanker_refuse_leftovers("spanker_bench(${name})" "${arg_UNPARSED_ARGUMENTS}")
    spanker_executable(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/bench")
endfunction()
