// SPDX-License-Identifier: Apache-2.0
//
// A row of the grammar: what a verb takes, what it may answer beyond the law, and what the kernel may write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "fuzz.hpp"

namespace fuzz {

struct range {
    std::size_t from, to;
};

struct errnos {
    std::array<bool, 256> known{};
    constexpr errnos(std::initializer_list<int> all)
    {
        for (const int one : all)
            known[static_cast<std::size_t>(one)] = true;
    }
};

struct verb {
    const char* name;
    unsigned long request;
    std::size_t bytes;
    bool on_card;
    std::uint32_t known_flags;
    errnos errors;  // beside the law's
    std::array<range, 2> out;
    std::array<range, 1> told;  // with an error as well
    std::size_t reserved;       // offset, or 0
    void (*fill)(thread&, slot&, std::uint8_t*);
    void (*done)(thread&, slot&, const std::uint8_t*);
};

extern const std::array<verb, verb_count> verbs;

inline std::uint64_t to_word(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace fuzz
