// SPDX-License-Identifier: Apache-2.0
//
// The table of ranges is fixed and lock-free, for a signal handler may hold no
// lock. A slot is published by its begin and withdrawn before munmap; a thread
// that faults in a range keeps it mapped, so the handler never sees a reused one.
#include "daemon/data/guarded_map.hpp"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "daemon/os_error.hpp"

namespace spanker::daemon::data {
namespace {

struct range {
    std::atomic<bool> taken;
    std::atomic<std::uintptr_t> begin;  // 0: not published
    std::atomic<std::uintptr_t> end;
    std::atomic<int> protection;
    std::atomic<bool> broken;
};

range table[guarded_maps_max];
std::atomic<std::size_t> table_used{0};  // slots ever taken
struct sigaction previous_action;

range* find(std::uintptr_t address)
{
    const std::size_t used = table_used.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; i++) {
        const std::uintptr_t begin = table[i].begin.load(std::memory_order_acquire);
        if (begin != 0 && address >= begin && address < table[i].end.load())
            return &table[i];
    }
    return nullptr;
}

bool replace(range& r)
{
    r.broken.store(true, std::memory_order_release);
    const std::uintptr_t begin = r.begin.load();
    void* at = reinterpret_cast<void*>(begin);
    return ::mmap(at, r.end.load() - begin, r.protection.load(),
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == at;
}

// Not ours: what stood before us decides; the default ends the process.
void pass_on(int number, siginfo_t* info, void* context)
{
    if ((previous_action.sa_flags & SA_SIGINFO) && previous_action.sa_sigaction) {
        previous_action.sa_sigaction(number, info, context);
        return;
    }
    struct sigaction fallback = {};
    fallback.sa_handler = SIG_DFL;
    ::sigaction(SIGBUS, &fallback, nullptr);  // the access is repeated and ends us
}

void on_sigbus(int number, siginfo_t* info, void* context)
{
    const int saved = errno;
    range* r = find(reinterpret_cast<std::uintptr_t>(info->si_addr));
    if (!r || !replace(*r))
        pass_on(number, info, context);
    errno = saved;
}

void install_once()
{
    static const bool installed = [] {
        struct sigaction action = {};
        action.sa_sigaction = on_sigbus;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        return ::sigaction(SIGBUS, &action, &previous_action) == 0;
    }();
    (void)installed;
}

std::size_t take_slot()
{
    for (std::size_t i = 0; i < guarded_maps_max; i++) {
        bool expected = false;
        if (!table[i].taken.load(std::memory_order_relaxed) &&
            table[i].taken.compare_exchange_strong(expected, true)) {
            std::size_t used = table_used.load();
            while (used < i + 1 && !table_used.compare_exchange_weak(used, i + 1)) {
            }
            return i;
        }
    }
    return guarded_maps_max;
}

tl::unexpected<error> map_failure(int err, bool writable)
{
    if ((err == EACCES || err == EPERM) && writable)
        return fail(SPANKER_ERR_DENIED,
                    "the memfd cannot be mapped for writing (read-only descriptor or "
                    "F_SEAL_WRITE); register it with access \"r\" or pass a writable one");
    return fail_os(err, "cannot map the memfd");
}

result<void> bring_in(std::byte* data, std::uint64_t bytes, bool writable)
{
    if (::madvise(data, bytes, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
        return {};
    const int err = errno;
    if (err == EINVAL)  // before Linux 5.14: pages come in at first use
        return {};
    const spanker_error_kind kind = err == ENOMEM ? SPANKER_ERR_NO_MEMORY : SPANKER_ERR_HOST_FAULT;
    return fail(kind, "the memfd's pages cannot be brought in; is there memory for all of it?");
}

}  // namespace

result<guarded_map> guarded_map::map(int fd, std::uint64_t offset, std::uint64_t bytes,
                                     bool writable, bool populate)
{
    install_once();
    const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (at == MAP_FAILED)
        return map_failure(errno, writable);

    guarded_map made;
    made.slot_ = take_slot();
    if (made.slot_ == guarded_maps_max) {
        ::munmap(at, bytes);
        return fail(SPANKER_ERR_QUOTA, "the daemon maps too many buffers; unregister some");
    }
    made.data_ = static_cast<std::byte*>(at);
    made.bytes_ = bytes;
    range& r = table[made.slot_];
    r.broken.store(false);
    r.protection.store(protection);
    r.end.store(reinterpret_cast<std::uintptr_t>(at) + bytes);
    r.begin.store(reinterpret_cast<std::uintptr_t>(at), std::memory_order_release);
    if (populate)
        if (auto in = bring_in(made.data_, bytes, writable); !in)
            return tl::unexpected(in.error());
    return made;
}

guarded_map::~guarded_map()
{
    if (!data_)
        return;
    range& r = table[slot_];
    r.begin.store(0, std::memory_order_release);
    ::munmap(data_, bytes_);
    r.taken.store(false, std::memory_order_release);
}

bool guarded_map::broken() const
{
    return data_ && table[slot_].broken.load(std::memory_order_acquire);
}

}  // namespace spanker::daemon::data
