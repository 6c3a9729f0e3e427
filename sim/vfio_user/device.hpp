// SPDX-License-Identifier: Apache-2.0
//
// One card as its client sees it: what each command of the protocol means for it. No sockets here; bytes and descriptors go
// in, bytes come out.
//
// Threads: that which serves the client. The card and its guest may be used by others meanwhile.
#pragma once

#include <span>
#include <vector>

#include "sim/card.hpp"
#include "sim/unique_fd.hpp"
#include "sim/vfio_user/guest_bus.hpp"
#include "sim/vfio_user/message.hpp"

namespace spanker::sim::vfio_user {

// A register that reads otherwise than the card says, for tests of drivers.
struct register_lie {
    std::uint32_t offset;
    std::uint32_t value;
};

class device final {
public:
    device(fabric& cards, unsigned card, guest& its_guest, std::vector<register_lie> lies = {});

    // Does what the command asks: 0 and the payload of its reply, or an errno.
    // Unknown commands are ENOSYS, what is not supported EOPNOTSUPP, what makes no sense EINVAL. A client agrees on the
    // version first. Descriptors that nobody keeps are the caller's.
    int handle(std::uint16_t command, std::span<const std::byte> payload,
               std::vector<unique_fd>& fds, buffer& reply);

    // The client is gone: bus reset, and nothing of it is kept.
    void forget_client();

private:
    struct request {
        std::span<const std::byte> payload;
        std::vector<unique_fd>& fds;
    };
    struct row {
        command number;
        std::size_t least_bytes, most_bytes;  // of the payload
        std::size_t most_fds;
        int (device::*handle)(request& what, buffer& reply);
    };
    static const row table[];
    static const row* find(std::uint16_t number);

    int agree(request& what, buffer& reply);
    int map(request& what, buffer& reply);
    int unmap(request& what, buffer& reply);
    int describe_device(request& what, buffer& reply);
    int describe_region(request& what, buffer& reply);
    int describe_region_fds(request& what, buffer& reply);
    int describe_irqs(request& what, buffer& reply);
    int set_irqs(request& what, buffer& reply);
    int read_region(request& what, buffer& reply);
    int write_region(request& what, buffer& reply);
    int reset(request& what, buffer& reply);
    int refuse_dirty_pages(request& what, buffer& reply);

    std::uint64_t region_bytes(std::uint32_t region) const;
    int judge(const region_access& what) const;
    std::uint32_t read_register(std::uint32_t offset);
    void read_bar(std::uint32_t offset, std::span<std::byte> to);
    void write_bar(std::uint32_t offset, std::span<const std::byte> from);
    void read_config(std::uint32_t offset, std::span<std::byte> to);
    void write_config(std::uint32_t offset, std::span<const std::byte> from);

    fabric& cards_;
    const unsigned card_;
    guest& guest_;
    const std::vector<register_lie> lies_;
    bool agreed_ = false;  // on the version
};

}  // namespace spanker::sim::vfio_user
