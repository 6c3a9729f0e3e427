// SPDX-License-Identifier: Apache-2.0
#include "ring.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#if defined(__SANITIZE_THREAD__)
#define SPANKER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPANKER_THREAD_SANITIZER 1
#endif
#endif

namespace spanker::lib {
namespace {

bool fits(const spanker_rings& h, std::uint64_t bytes)
{
    const auto inside = [&](std::uint64_t offset, std::uint64_t entries, std::uint64_t size) {
        return offset % alignof(std::uint64_t) == 0 && offset <= bytes &&
               entries * size <= bytes - offset;
    };
    return h.magic == SPANKER_RINGS_MAGIC && h.version == SPANKER_RINGS_VERSION &&
           std::has_single_bit(h.sq_entries) && std::has_single_bit(h.cq_entries) &&
           h.sq_entries <= SPANKER_RINGS_MAX_ENTRIES &&
           h.cq_entries <= 4 * SPANKER_RINGS_MAX_ENTRIES &&
           inside(h.sq_offset, h.sq_entries, sizeof(spanker_sqe)) &&
           inside(h.cq_offset, h.cq_entries, sizeof(spanker_cqe));
}

std::atomic_ref<std::uint32_t> word(std::uint32_t& w) { return std::atomic_ref<std::uint32_t>(w); }

// ThreadSanitizer does not know fences; an exchange that writes back what it reads is one it does.
void full_fence()
{
#ifdef SPANKER_THREAD_SANITIZER
    static std::atomic<int> hub = 0;
    hub.fetch_add(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void ring_eventfd(const unique_fd& fd)
{
    const std::uint64_t one = 1;
    // A full counter wakes as well, so a short write is no loss.
    static_cast<void>(!::write(fd.get(), &one, sizeof one));
}

}  // namespace

std::uint64_t monotonic_ns()
{
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(now.tv_nsec);
}

ring::~ring() { close(); }

void ring::close()
{
    if (header_ != nullptr)
        munmap(header_, bytes_);
    header_ = nullptr;
    rings_ = unique_fd();
    sq_eventfd_ = unique_fd();
    cq_eventfd_ = unique_fd();
    control_ = unique_fd();
}

int ring::open(unique_fd rings, unique_fd sq_eventfd, unique_fd cq_eventfd, unique_fd control)
{
    struct stat st = {};
    if (fstat(rings.get(), &st) < 0)
        return -errno;
    const auto bytes = static_cast<std::size_t>(st.st_size);
    if (bytes < sizeof(spanker_rings))
        return -EPROTO;
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, rings.get(), 0);
    if (memory == MAP_FAILED)
        return -errno;
    auto* header = static_cast<spanker_rings*>(memory);
    if (!fits(*header, bytes)) {
        munmap(memory, bytes);
        return -EPROTO;
    }
    close();
    header_ = header;
    bytes_ = bytes;
    auto* base = static_cast<std::byte*>(memory);
    sq_ = reinterpret_cast<spanker_sqe*>(base + header->sq_offset);
    cq_ = reinterpret_cast<const spanker_cqe*>(base + header->cq_offset);
    sq_mask_ = header->sq_entries - 1;
    cq_mask_ = header->cq_entries - 1;
    sq_tail_ = header->sq.tail;
    cq_head_ = header->cq.head;
    rings_ = std::move(rings);
    sq_eventfd_ = std::move(sq_eventfd);
    cq_eventfd_ = std::move(cq_eventfd);
    control_ = std::move(control);
    ended_.store(false, std::memory_order_relaxed);
    return 0;
}

bool ring::push(const spanker_sqe& entry)
{
    // Pairs with the daemon's release store of sq.head after it copied the entry out.
    const std::uint32_t head = word(header_->sq.head).load(std::memory_order_acquire);
    if (sq_tail_ - head > sq_mask_)
        return false;
    sq_[sq_tail_ & sq_mask_] = entry;
    // Pairs with the daemon's acquire load of sq.tail before it reads the entry.
    word(header_->sq.tail).store(++sq_tail_, std::memory_order_release);
    return true;
}

void ring::ring_doorbell()
{
    // The tail must be visible before `sleeping` is read; pairs with the daemon's fence between
    // its store of `sleeping` and its last look at the tail.
    full_fence();
    if (word(header_->sq.sleeping).load(std::memory_order_relaxed) != 0)
        ring_eventfd(sq_eventfd_);
}

bool ring::empty() const
{
    // Pairs with the daemon's release store of cq.tail after it wrote the entry.
    return word(header_->cq.tail).load(std::memory_order_acquire) == cq_head_;
}

bool ring::pop(spanker_cqe& entry)
{
    if (empty())
        return false;
    entry = cq_[cq_head_ & cq_mask_];
    // Pairs with the daemon's acquire load of cq.head before it overwrites the slot.
    word(header_->cq.head).store(++cq_head_, std::memory_order_release);
    return true;
}

bool ring::is_dead() const
{
    return ended_.load(std::memory_order_acquire) ||
           word(header_->dead).load(std::memory_order_acquire) != 0;
}

bool ring::control_ended() const
{
    char ignored[64];  // later daemons may say things there that we need not know
    const ssize_t n = recv(control_.get(), ignored, sizeof ignored, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void ring::look_at_control()
{
    if (control_ended())
        ended_.store(true, std::memory_order_release);
}

std::uint64_t ring::predicted_ns() const
{
    return std::atomic_ref<unsigned long long>(header_->predicted_ns)
        .load(std::memory_order_relaxed);
}

void ring::sleep(std::uint64_t deadline_ns)
{
    word(header_->cq.sleeping).store(1, std::memory_order_relaxed);
    // `sleeping` must be visible before the last look; pairs with the daemon's fence between its
    // store of cq.tail and its load of `sleeping`.
    full_fence();
    const std::uint64_t now = monotonic_ns();
    if (empty() && !is_dead() && now < deadline_ns) {
        const std::uint64_t left = deadline_ns - now;
        timespec limit = {.tv_sec = static_cast<time_t>(left / 1'000'000'000),
                          .tv_nsec = static_cast<long>(left % 1'000'000'000)};
        pollfd fds[] = {{cq_eventfd_.get(), POLLIN, 0}, {control_.get(), POLLIN | POLLRDHUP, 0}};
        ppoll(fds, 2, deadline_ns == UINT64_MAX ? nullptr : &limit, nullptr);
        std::uint64_t count = 0;
        if ((fds[0].revents & POLLIN) != 0)
            static_cast<void>(!::read(cq_eventfd_.get(), &count, sizeof count));
        if (fds[1].revents != 0)
            look_at_control();
    }
    word(header_->cq.sleeping).store(0, std::memory_order_relaxed);
}

void ring::wake() const { ring_eventfd(cq_eventfd_); }

}  // namespace spanker::lib
