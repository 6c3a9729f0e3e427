// SPDX-License-Identifier: Apache-2.0
//
// A client of vfio-user small enough for tests, and a place to try it.
//
//   client   one connection: messages out, replies in, nothing hidden
//   stand    a server of small cards, with sockets in a folder of their own
//   memory   a memfd as guest memory
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/unix_socket.hpp"
#include "sim/vfio_user/message.hpp"
#include "sim/vfio_user/server.hpp"

namespace spanker::sim::vfio_user::bench {

using bytes = buffer;

// True as soon as `holds` does; false when it still does not after some seconds.
template <typename condition>
bool soon(const condition& holds)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

inline unique_fd new_eventfd() { return unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

// What was signalled since it was last asked.
inline std::uint64_t taken_from(const unique_fd& eventfd)
{
    std::uint64_t count = 0;
    return ::read(eventfd.get(), &count, sizeof count) == sizeof count ? count : 0;
}

inline bool is_signalled_soon(const unique_fd& eventfd)
{
    pollfd wait = {.fd = eventfd.get(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 20'000) == 1;
}

class memory final {
public:
    explicit memory(std::size_t size, unsigned flags = MFD_CLOEXEC)
        : fd_(::memfd_create("guest", flags)), size_(size)
    {
        if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0)
            throw std::runtime_error("ftruncate");
        void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        if (at == MAP_FAILED)
            throw std::runtime_error("mmap");
        base_ = static_cast<std::byte*>(at);
    }
    ~memory() { ::munmap(base_, size_); }
    memory(const memory&) = delete;
    memory& operator=(const memory&) = delete;

    const unique_fd& fd() const { return fd_; }
    std::byte* at(std::size_t offset) { return base_ + offset; }
    std::size_t size() const { return size_; }
    void put(std::size_t offset, std::span<const std::byte> from)
    {
        std::memcpy(at(offset), from.data(), from.size());
    }

private:
    unique_fd fd_;
    std::size_t size_;
    std::byte* base_ = nullptr;
};

struct answer {
    header head = {};
    bytes payload;
    bool came = false;  // false: the server closed the connection

    int error() const { return (head.flags & flag_error) != 0 ? static_cast<int>(head.error) : 0; }
    template <typename structure>
    structure as() const
    {
        structure out = {};
        if (payload.size() >= sizeof out)
            std::memcpy(&out, payload.data(), sizeof out);
        return out;
    }
};

class client final {
public:
    explicit client(unique_fd socket) : socket_(std::move(socket))
    {
        const timeval patience = {.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }

    // ---- as bytes ----

    bool send_raw(std::span<const std::byte> what, const std::vector<int>& fds = {})
    {
        alignas(cmsghdr) std::array<char, CMSG_SPACE(64 * sizeof(int))> control = {};
        iovec piece = {.iov_base = const_cast<std::byte*>(what.data()), .iov_len = what.size()};
        msghdr message = {};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        if (!fds.empty()) {
            message.msg_control = control.data();
            message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
            cmsghdr* const at = CMSG_FIRSTHDR(&message);
            at->cmsg_level = SOL_SOCKET;
            at->cmsg_type = SCM_RIGHTS;
            at->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
            std::memcpy(CMSG_DATA(at), fds.data(), fds.size() * sizeof(int));
        }
        return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) ==
               static_cast<ssize_t>(what.size());
    }

    answer receive()
    {
        answer out;
        if (!receive_all(std::as_writable_bytes(std::span(&out.head, 1))))
            return out;
        out.payload.resize(out.head.size - sizeof out.head);
        out.came = receive_all(out.payload);
        return out;
    }

    // True: the server has closed the connection, and nothing else came.
    bool is_closed()
    {
        std::byte one;
        const ssize_t got = ::recv(socket_.get(), &one, 1, 0);
        return got == 0 || (got < 0 && errno == ECONNRESET);
    }

    // ---- as messages ----

    static bytes message(std::uint16_t id, std::uint16_t command, const bytes& payload,
                         std::uint32_t flags = type_command)
    {
        bytes out;
        append(out, header{.id = id,
                           .command = command,
                           .size = static_cast<std::uint32_t>(sizeof(header) + payload.size()),
                           .flags = flags,
                           .error = 0});
        out.insert(out.end(), payload.begin(), payload.end());
        return out;
    }
    bool post(command what, const bytes& payload, const std::vector<int>& fds = {},
              std::uint32_t flags = type_command)
    {
        return send_raw(message(++last_id_, static_cast<std::uint16_t>(what), payload, flags), fds);
    }
    // The answer must be that of this very request.
    answer call(command what, const bytes& payload, const std::vector<int>& fds = {})
    {
        EXPECT_TRUE(post(what, payload, fds));
        answer out = receive();
        EXPECT_TRUE(out.came);
        EXPECT_EQ(out.head.id, last_id_);
        EXPECT_EQ(out.head.command, static_cast<std::uint16_t>(what));
        EXPECT_EQ(out.head.flags & flag_type, type_reply);
        return out;
    }
    template <typename structure>
    answer call_with(command what, const structure& payload, const std::vector<int>& fds = {})
    {
        bytes raw;
        append(raw, payload);
        return call(what, raw, fds);
    }

    // ---- as a driver's host ----

    static bytes version_payload(std::uint16_t major = 0, std::uint16_t minor = 0,
                                 std::string_view json = R"({"capabilities":{"max_msg_fds":8}})")
    {
        bytes out;
        append(out, version{.major = major, .minor = minor});
        for (const char c : json)
            out.push_back(static_cast<std::byte>(c));
        out.push_back(std::byte{0});
        return out;
    }
    client& agree()
    {
        EXPECT_EQ(call(command::version, version_payload()).error(), 0);
        return *this;
    }
    int map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, int fd,
            std::uint32_t flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)
    {
        return call_with(command::dma_map,
                         dma_map_request{.argsz = sizeof(dma_map_request),
                                         .flags = flags,
                                         .offset = offset,
                                         .address = address,
                                         .bytes = size},
                         fd < 0 ? std::vector<int>{} : std::vector<int>{fd})
            .error();
    }
    int unmap(std::uint64_t address, std::uint64_t size)
    {
        return call_with(command::dma_unmap, dma_unmap_request{.argsz = sizeof(dma_unmap_request),
                                                               .flags = 0,
                                                               .address = address,
                                                               .bytes = size})
            .error();
    }
    int arm(std::uint32_t kind, std::uint32_t start, const std::vector<int>& fds)
    {
        return call_with(command::device_set_irqs,
                         irq_set{.argsz = sizeof(irq_set),
                                 .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                                 .index = kind,
                                 .start = start,
                                 .count = static_cast<std::uint32_t>(fds.size())},
                         fds)
            .error();
    }
    answer read_region(std::uint32_t region, std::uint64_t offset, std::uint32_t count)
    {
        return call_with(command::region_read,
                         region_access{.offset = offset, .region = region, .count = count});
    }
    int write_region(std::uint32_t region, std::uint64_t offset, std::uint64_t value,
                     std::uint32_t count)
    {
        bytes raw;
        append(raw, region_access{.offset = offset, .region = region, .count = count});
        append(raw, value);
        raw.resize(sizeof(region_access) + count);
        return call(command::region_write, raw).error();
    }
    std::uint32_t reg(std::uint32_t offset)
    {
        const answer got = read_region(VFIO_PCI_BAR0_REGION_INDEX, offset, 4);
        EXPECT_EQ(got.error(), 0) << offset;
        std::uint32_t value = 0;
        if (got.payload.size() == sizeof(region_access) + 4)
            std::memcpy(&value, got.payload.data() + sizeof(region_access), 4);
        return value;
    }
    void reg(std::uint32_t offset, std::uint32_t value)
    {
        EXPECT_EQ(write_region(VFIO_PCI_BAR0_REGION_INDEX, offset, value, 4), 0) << offset;
    }
    std::uint32_t config(std::uint32_t offset, std::uint32_t count = 4)
    {
        const answer got = read_region(VFIO_PCI_CONFIG_REGION_INDEX, offset, count);
        EXPECT_EQ(got.error(), 0) << offset;
        std::uint32_t value = 0;
        if (got.payload.size() == sizeof(region_access) + count)
            std::memcpy(&value, got.payload.data() + sizeof(region_access), count);
        return value;
    }
    void config(std::uint32_t offset, std::uint32_t count, std::uint32_t value)
    {
        EXPECT_EQ(write_region(VFIO_PCI_CONFIG_REGION_INDEX, offset, value, count), 0) << offset;
    }
    // Where a capability stands.
    std::uint32_t capability(unsigned id)
    {
        for (std::uint32_t at = config(0x34, 1), hops = 0; at != 0 && hops < 48;
             at = config(at + 1, 1), hops++)
            if (config(at, 1) == id)
                return at;
        ADD_FAILURE() << "the card has no capability " << id;
        return 0;
    }

    const unique_fd& socket() const { return socket_; }

private:
    bool receive_all(std::span<std::byte> to)
    {
        return to.empty() || ::recv(socket_.get(), to.data(), to.size(), MSG_WAITALL) ==
                                 static_cast<ssize_t>(to.size());
    }

    unique_fd socket_;
    std::uint16_t last_id_ = 0;
};

class stand final {
public:
    static fabric_config small_config(unsigned cards = 1)
    {
        card_config card;
        card.ddr_bytes = 1 << 20;
        return make_fabric_config(cards, "ring", card);
    }

    explicit stand(const fabric_config& config = small_config(),
                   std::vector<std::vector<register_lie>> lies = {})
    {
        std::string name = ::testing::TempDir() + "vfio-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr)
            throw std::runtime_error("mkdtemp");
        folder_ = name;
        lies.resize(config.cards.size());
        std::vector<card_outlet> outlets;
        for (unsigned card = 0; card < config.cards.size(); card++)
            outlets.push_back({.listener = listen_at(path(card)), .lies = lies[card]});
        server_ = std::make_unique<server>(
            config, std::move(outlets), [this](unsigned card, const std::string& line) {
                const std::lock_guard hold(lock_);
                said_ += "card " + std::to_string(card) + ": " + line + "\n";
            });
    }
    ~stand()
    {
        server_.reset();
        std::filesystem::remove_all(folder_);
    }
    stand(const stand&) = delete;
    stand& operator=(const stand&) = delete;

    server& served() { return *server_; }
    fabric& cards() { return server_->cards(); }
    std::string path(unsigned card = 0) const { return folder_ + "/" + std::to_string(card); }
    const std::string& folder() const { return folder_; }
    client connect(unsigned card = 0) { return client(connect_to(path(card))); }
    client agreed(unsigned card = 0)
    {
        client out = connect(card);
        out.agree();
        return out;
    }
    // A client that came before the last one was seen to leave would be turned away.
    bool is_free(unsigned card = 0)
    {
        return soon([&] { return !server_->guest_of(card).connected; });
    }
    std::string said()
    {
        const std::lock_guard hold(lock_);
        return said_;
    }
    void stop() { server_.reset(); }

private:
    std::string folder_;
    std::mutex lock_;
    std::string said_;
    std::unique_ptr<server> server_;
};

}  // namespace spanker::sim::vfio_user::bench
