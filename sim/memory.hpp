// SPDX-License-Identifier: Apache-2.0
//
// A card's DDR: a memfd of the full size, mapped without reservation, so that a card of 4 GiB costs what is written to it.
//
// The caller keeps addresses inside size() and serialises access.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spanker::sim {

class card_memory final {
public:
    // Throws std::system_error when the machine does not give the address space.
    explicit card_memory(std::uint64_t bytes);
    ~card_memory();
    card_memory(const card_memory&) = delete;
    card_memory& operator=(const card_memory&) = delete;

    std::uint64_t size() const { return bytes_; }
    std::byte* at(std::uint64_t address) { return base_ + address; }
    const std::byte* at(std::uint64_t address) const { return base_ + address; }

    // Repeats the pattern, byte 0 first. Whole pages of zeros go back to the machine.
    void fill(std::uint64_t address, std::uint64_t bytes, std::uint32_t pattern);

    std::uint64_t resident_bytes() const;  // what the card costs the machine now

private:
    std::uint64_t bytes_;
    int fd_ = -1;
    std::byte* base_ = nullptr;
};

}  // namespace spanker::sim
