// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations of the whole test program. A file of its own, so that the
// compiler does not look through the replaced operators.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> made{0};

}  // namespace

std::uint64_t allocations_so_far() { return made; }

void* operator new(std::size_t bytes)
{
    ++made;
    if (void* memory = std::malloc(bytes != 0 ? bytes : 1))
        return memory;
    throw std::bad_alloc();
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    ++made;
    return std::malloc(bytes != 0 ? bytes : 1);
}

void operator delete(void* memory) noexcept { std::free(memory); }

void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
