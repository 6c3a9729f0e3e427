# SPDX-License-Identifier: Apache-2.0
#
# The ABI test, static so that a guest needs nothing for it; and where the compiler can, as a 32-bit program, whose calls
# take the other entry of the kernel and must see the same layouts.
include(CheckCXXSourceCompiles)

set(abi_sources abi.cpp abi_epoll.cpp abi_law.cpp abi_objects.cpp abi_process.cpp abi_removal.cpp abi_signals.cpp
    abi_work.cpp)

function(spanker_abi_test name)
    add_executable(${name} ${abi_sources})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_features(${name} PRIVATE cxx_std_20)
    # Without the flags of the build: sanitizers and static programs exclude each other.
    target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror -O1 ${ARGN})
    target_link_options(${name} PRIVATE -static ${ARGN})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
endfunction()

if(SPANKER_SANITIZE STREQUAL "none")
    spanker_abi_test(vm_abi)
    set(CMAKE_REQUIRED_FLAGS -m32)
    set(CMAKE_REQUIRED_LINK_OPTIONS -static)
    check_cxx_source_compiles("#include <string>\nint main() { return std::string().size(); }" SPANKER_HAVE_M32)
    unset(CMAKE_REQUIRED_FLAGS)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    if(SPANKER_HAVE_M32)
        spanker_abi_test(vm_abi32 -m32)
    endif()
endif()
