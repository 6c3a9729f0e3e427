// SPDX-License-Identifier: Apache-2.0
//
// What every contract test stands on: a backend of the fabric under test, open files, work items by opcode, and waiting
// that ends. Only daemon/backend.hpp is used, so that the suite runs on any backend.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/backend.hpp"

namespace contract {

using spanker::daemon::backend;
using spanker::daemon::buffer_spec;
using spanker::daemon::card_file;
using spanker::daemon::channel_group;
using spanker::daemon::result;
using spanker::daemon::unique_fd;
using member = spanker::daemon::group_member;
using bytes = std::vector<std::uint8_t>;

inline constexpr auto read_access = SPANKER_BUFFER_READ;
inline constexpr auto write_access = SPANKER_BUFFER_WRITE;

// The negative errno of a result, 0 if it is good.
template <typename T>
int errno_of(const result<T>& what)
{
    return what ? 0 : what.error().negative_errno();
}

template <typename T>
std::string text_of(const result<T>& what)
{
    return what ? "" : what.error().message;
}

std::uint64_t now_ns();
bytes pattern(std::size_t size, unsigned seed);

// ---- work items ----

spanker_work_item item(spk_opcode opcode);
spanker_work_item nop();
spanker_work_item fill(std::uint32_t tensor, std::uint64_t offset, std::uint64_t size,
                       std::uint32_t value);
spanker_work_item dma_in(std::uint32_t tensor, std::uint32_t buffer, std::uint32_t size);
spanker_work_item dma_out(std::uint32_t buffer, std::uint32_t tensor, std::uint32_t size);
// Waits for a signal that nobody posts.
spanker_work_item wait_for_ever(std::uint16_t signal = 255);
spanker_work_item send(const channel_group& group, std::uint32_t tensor, std::uint32_t port,
                       std::uint32_t tag, std::uint32_t size, std::uint64_t offset = 0);
spanker_work_item receive(const channel_group& group, std::uint32_t tensor, std::uint32_t port,
                          std::uint32_t tag, std::uint32_t size, std::uint64_t offset = 0);
spanker_work_item waiting(spanker_work_item what, std::uint16_t signal, std::uint32_t value = 1);
spanker_work_item posting(spanker_work_item what, std::uint16_t signal);

// ---- the backend ----

// Two joined ports.
struct cable {
    std::uint32_t card_a, port_a, card_b, port_b;
};

class rig : public testing::Test {
protected:
    void SetUp() override;

    std::unique_ptr<card_file> open(std::uint32_t card, std::uint32_t depth = 64);
    // Until the cards have nothing to do now.
    void settle();
    // At least `count` records, or a failure after some seconds.
    std::vector<spanker_record> wait(card_file& file, std::size_t count = 1);
    // Submits and waits for the record of the batch.
    spanker_record run(card_file& file, const std::vector<spanker_work_item>& items);
    std::uint64_t submit(card_file& file, const std::vector<spanker_work_item>& items,
                         std::uint64_t cookie = 0);

    std::uint32_t alloc(card_file& file, std::uint64_t size);
    std::uint32_t share(card_file& file, bytes& memory, std::uint32_t access);
    void upload(card_file& file, std::uint32_t tensor, const bytes& data);
    bytes download(card_file& file, std::uint32_t tensor, std::size_t size);

    std::vector<spanker::daemon::port_info> ports_of(std::uint32_t card);
    std::optional<cable> find_cable();
    // Skips the test where faults cannot be injected.
    bool can_inject(std::uint32_t card);
    // What an administrator's reset does: whatever happened to the card before is no longer held against it.
    void forgive(std::uint32_t card);
    std::uint32_t card_count() { return static_cast<std::uint32_t>(cards->cards().size()); }

    std::unique_ptr<backend> cards;
};

// A file on each end of a cable, and a group that owns the cable.
class linked : public rig {
protected:
    void SetUp() override;

    cable joined{};
    std::unique_ptr<card_file> a, b;
    std::unique_ptr<channel_group> group;
};

}  // namespace contract
