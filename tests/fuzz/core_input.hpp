// SPDX-License-Identifier: Apache-2.0
//
// Takes typed values off a fuzzer's input; zeros when it is used up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct fuzz_input {
    const std::uint8_t* data;
    std::size_t size;

    template <typename T>
    T take()
    {
        T value{};
        const std::size_t bytes = size < sizeof(T) ? size : sizeof(T);
        if (bytes)
            std::memcpy(&value, data, bytes);
        data += bytes;
        size -= bytes;
        return value;
    }
};

// A property that must hold for any input.
#define FUZZ_CHECK(condition)                                                    \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                        \
        }                                                                        \
    } while (false)
