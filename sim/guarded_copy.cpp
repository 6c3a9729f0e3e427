// SPDX-License-Identifier: Apache-2.0
//
// The copy leaves a way out in a variable of its thread before it touches shared memory; the handler takes it. A jump out of
// a handler is sound here because the signal is the thread's own access, and what it interrupts is memcpy or a single store.
#include "sim/guarded_copy.hpp"

#include <setjmp.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace spanker::sim {
namespace {

thread_local sigjmp_buf* volatile way_out = nullptr;
struct sigaction action_before;

void on_sigbus(int number, siginfo_t* info, void* context)
{
    if (way_out != nullptr)
        siglongjmp(*way_out, 1);
    if ((action_before.sa_flags & SA_SIGINFO) != 0 && action_before.sa_sigaction != nullptr) {
        action_before.sa_sigaction(number, info, context);
        return;
    }
    struct sigaction fallback = {};
    fallback.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &fallback, nullptr);  // the access is repeated and ends us
}

// SA_NODEFER: the jump leaves the handler for good, so the signal must not stay blocked.
bool install()
{
    struct sigaction action = {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    return sigaction(SIGBUS, &action, &action_before) == 0;
}

template <typename copy_function>
bool guarded(const copy_function& copy)
{
    [[maybe_unused]] static const bool installed = install();
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        way_out = nullptr;
        return false;
    }
    way_out = &here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    copy();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    way_out = nullptr;
    return true;
}

template <typename word>
bool store_word(std::byte* to, const std::byte* from, std::size_t bytes)
{
    if (bytes != sizeof(word) || reinterpret_cast<std::uintptr_t>(to) % sizeof(word) != 0)
        return false;
    word value;
    std::memcpy(&value, from, sizeof value);
    std::atomic_ref(*reinterpret_cast<word*>(to)).store(value, std::memory_order_release);
    return true;
}

}  // namespace

bool guarded_read(std::byte* to, const std::byte* from_shared, std::size_t bytes)
{
    return guarded([&] { std::memcpy(to, from_shared, bytes); });
}

bool guarded_write(std::byte* to_shared, const std::byte* from, std::size_t bytes)
{
    return guarded([&] {
        const bool stored = store_word<std::uint64_t>(to_shared, from, bytes) ||
                            store_word<std::uint32_t>(to_shared, from, bytes) ||
                            store_word<std::uint16_t>(to_shared, from, bytes) ||
                            store_word<std::uint8_t>(to_shared, from, bytes);
        if (!stored)
            std::memcpy(to_shared, from, bytes);
    });
}

}  // namespace spanker::sim
