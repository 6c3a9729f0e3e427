// SPDX-License-Identifier: Apache-2.0
//
// Shared words are read and written by atomic builtins only, entries word by
// word, so that a client that changes them meanwhile gives a torn entry
// and never undefined behaviour.
#include "daemon/data/rings.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/os_error.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace spanker::daemon::data {
namespace {

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

std::uint32_t load_acquire(const std::uint32_t& word)
{
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

void store_release(std::uint32_t& word, std::uint32_t value)
{
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

template <typename T>
void copy_words(T* to, const T* from, bool to_shared)
{
    static_assert(sizeof(T) % 8 == 0 && alignof(T) == 8);
    auto* out = reinterpret_cast<std::uint64_t*>(to);
    auto* in = reinterpret_cast<const std::uint64_t*>(from);
    for (std::size_t i = 0; i < sizeof(T) / 8; i++)
        if (to_shared)
            __atomic_store_n(&out[i], in[i], __ATOMIC_RELAXED);
        else
            out[i] = __atomic_load_n(&in[i], __ATOMIC_RELAXED);
}

unique_fd make_memfd()
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    unique_fd fd(::memfd_create("spanker-rings", flags | MFD_NOEXEC_SEAL));
    if (!fd && errno == EINVAL)  // before Linux 6.3
        fd.reset(::memfd_create("spanker-rings", flags));
    return fd;
}

tl::unexpected<error> no_rings(const char* step)
{
    return fail_os(errno, std::string("cannot make the session's rings, ") + step);
}

}  // namespace

rings_layout rings_layout::of(std::uint32_t sq_entries, std::uint64_t arena_bytes)
{
    rings_layout l;
    l.sq_entries = sq_entries;
    l.cq_entries = 2 * sq_entries;
    l.sq_offset = round_up(sizeof(spanker_rings), 64);
    l.cq_offset = round_up(l.sq_offset + std::uint64_t{l.sq_entries} * sizeof(spanker_sqe), 64);
    l.arena_offset =
        round_up(l.cq_offset + std::uint64_t{l.cq_entries} * sizeof(spanker_cqe), page_bytes);
    l.arena_bytes = round_up(arena_bytes, page_bytes);
    l.bytes = l.arena_offset + l.arena_bytes;
    return l;
}

result<rings> rings::make(const rings_layout& layout)
{
    rings r;
    r.memfd_ = make_memfd();
    if (!r.memfd_)
        return no_rings("memfd_create");
    if (::ftruncate(r.memfd_.get(), static_cast<off_t>(layout.bytes)) != 0)
        return no_rings("ftruncate");
    if (::fcntl(r.memfd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return no_rings("seals");
    void* at = ::mmap(nullptr, layout.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      r.memfd_.get(), 0);
    if (at == MAP_FAILED)
        return no_rings("mmap");
    r.memory_ = at;
    r.layout_ = layout;
    *r.header() = spanker_rings{
        .magic = SPANKER_RINGS_MAGIC,
        .version = SPANKER_RINGS_VERSION,
        .sq_entries = layout.sq_entries,
        .cq_entries = layout.cq_entries,
        .sq_offset = layout.sq_offset,
        .cq_offset = layout.cq_offset,
        .arena_offset = layout.arena_offset,
        .arena_bytes = layout.arena_bytes,
    };
    return r;
}

rings& rings::operator=(rings&& other) noexcept
{
    std::swap(memfd_, other.memfd_);
    std::swap(memory_, other.memory_);
    std::swap(layout_, other.layout_);
    std::swap(sq_head_, other.sq_head_);
    std::swap(cq_tail_, other.cq_tail_);
    return *this;
}

rings::~rings()
{
    if (memory_)
        ::munmap(memory_, layout_.bytes);
}

result<std::uint32_t> rings::submitted() const
{
    const std::uint32_t tail = load_acquire(header()->sq.tail);  // pairs with the client's release
    const std::uint32_t waiting = tail - sq_head_;
    if (waiting > layout_.sq_entries)
        return fail(SPANKER_ERR_INVALID, "submission ring: tail " + std::to_string(tail) +
                                             " is not within " +
                                             std::to_string(layout_.sq_entries) +
                                             " entries of head " + std::to_string(sq_head_));
    return waiting;
}

spanker_sqe rings::front() const
{
    auto* base = static_cast<const std::byte*>(memory_) + layout_.sq_offset;
    auto* entries = reinterpret_cast<const spanker_sqe*>(base);
    spanker_sqe copy;
    copy_words(&copy, &entries[sq_head_ & (layout_.sq_entries - 1)], false);
    return copy;
}

void rings::pop()
{
    store_release(header()->sq.head, ++sq_head_);  // the slot may be written again
}

result<std::uint32_t> rings::completion_room() const
{
    const std::uint32_t head = load_acquire(header()->cq.head);
    const std::uint32_t unread = cq_tail_ - head;
    if (unread > layout_.cq_entries)
        return fail(SPANKER_ERR_INVALID, "completion ring: head " + std::to_string(head) +
                                             " is not within " +
                                             std::to_string(layout_.cq_entries) +
                                             " entries behind tail " + std::to_string(cq_tail_));
    return layout_.cq_entries - unread;
}

void rings::complete(const spanker_cqe& entry)
{
    auto* base = static_cast<std::byte*>(memory_) + layout_.cq_offset;
    auto* entries = reinterpret_cast<spanker_cqe*>(base);
    copy_words(&entries[cq_tail_ & (layout_.cq_entries - 1)], &entry, true);
    store_release(header()->cq.tail, ++cq_tail_);  // pairs with the client's acquire
}

bool rings::client_sleeps() const
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);  // pairs with the fence after the client's sleeping=1
    return __atomic_load_n(&header()->cq.sleeping, __ATOMIC_RELAXED) != 0;
}

bool rings::prepare_sleep()
{
    __atomic_store_n(&header()->sq.sleeping, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);  // pairs with the fence after the client's tail
    return load_acquire(header()->sq.tail) == sq_head_;
}

void rings::awake() { __atomic_store_n(&header()->sq.sleeping, 0, __ATOMIC_RELAXED); }

void rings::set_predicted_ns(std::uint64_t ns)
{
    __atomic_store_n(&header()->predicted_ns, ns, __ATOMIC_RELAXED);
}

void rings::set_dead() { store_release(header()->dead, 1); }

}  // namespace spanker::daemon::data
