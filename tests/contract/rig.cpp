// SPDX-License-Identifier: Apache-2.0
#include "rig.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>

#include "fabric.hpp"

namespace contract {

namespace {

constexpr std::uint64_t patience_ns = 20'000'000'000;

}  // namespace

std::uint64_t now_ns()
{
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(now.tv_nsec);
}

bytes pattern(std::size_t size, unsigned seed)
{
    bytes out(size);
    std::uint32_t state = seed * 2654435761u + 1;
    for (auto& byte : out)
        byte = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
    return out;
}

// ---- work items ----

spanker_work_item item(spk_opcode opcode)
{
    spanker_work_item out{};
    out.opcode = static_cast<std::uint8_t>(opcode);
    out.wait_signal = SPK_NO_SIGNAL;
    out.post_signal = SPK_NO_SIGNAL;
    return out;
}

spanker_work_item nop() { return item(SPK_OP_NOP); }

spanker_work_item fill(std::uint32_t tensor, std::uint64_t offset, std::uint64_t size,
                       std::uint32_t value)
{
    auto out = item(SPK_OP_FILL);
    out.dst = {.handle = tensor, .pitch = 0, .offset = offset};
    out.fill.bytes = size;
    out.fill.pattern = value;
    return out;
}

spanker_work_item dma_in(std::uint32_t tensor, std::uint32_t buffer, std::uint32_t size)
{
    auto out = item(SPK_OP_DMA_IN);
    out.dst.handle = tensor;
    out.src.handle = buffer;
    out.rows.rows = 1;
    out.rows.row_bytes = size;
    return out;
}

spanker_work_item dma_out(std::uint32_t buffer, std::uint32_t tensor, std::uint32_t size)
{
    auto out = item(SPK_OP_DMA_OUT);
    out.dst.handle = buffer;
    out.src.handle = tensor;
    out.rows.rows = 1;
    out.rows.row_bytes = size;
    return out;
}

spanker_work_item wait_for_ever(std::uint16_t signal) { return waiting(nop(), signal); }

spanker_work_item send(const channel_group& group, std::uint32_t tensor, std::uint32_t port,
                       std::uint32_t tag, std::uint32_t size, std::uint64_t offset)
{
    auto out = item(SPK_OP_LINK_SEND);
    out.group = group.id();
    out.src = {.handle = tensor, .pitch = 0, .offset = offset};
    out.link.rows = 1;
    out.link.row_bytes = size;
    out.link.tx_ports = static_cast<std::uint8_t>(1u << port);
    out.link.tx_tag = tag;
    return out;
}

spanker_work_item receive(const channel_group& group, std::uint32_t tensor, std::uint32_t port,
                          std::uint32_t tag, std::uint32_t size, std::uint64_t offset)
{
    auto out = item(SPK_OP_LINK_RECV);
    out.group = group.id();
    out.dst = {.handle = tensor, .pitch = 0, .offset = offset};
    out.link.rows = 1;
    out.link.row_bytes = size;
    out.link.rx_ports = static_cast<std::uint8_t>(1u << port);
    out.link.rx_tag = tag;
    return out;
}

spanker_work_item waiting(spanker_work_item what, std::uint16_t signal, std::uint32_t value)
{
    what.wait_signal = signal;
    what.wait_value = value;
    return what;
}

spanker_work_item posting(spanker_work_item what, std::uint16_t signal)
{
    what.post_signal = signal;
    return what;
}

// ---- the backend ----

void rig::SetUp()
{
    cards = tested_fabric().open();
    ASSERT_NE(cards, nullptr);
    if (cards->cards().empty())
        GTEST_SKIP() << "there is no card";
}

std::unique_ptr<card_file> rig::open(std::uint32_t card, std::uint32_t depth)
{
    auto opened = cards->open(card, depth);
    EXPECT_TRUE(opened) << text_of(opened);
    return opened ? std::move(*opened) : nullptr;
}

void rig::forgive(std::uint32_t card)
{
    ASSERT_EQ(errno_of(cards->card_reset(card, SPANKER_RESET_SOFT)), 0);
    settle();
}

void rig::settle() { tested_fabric().settle(*cards); }

std::vector<spanker_record> rig::wait(card_file& file, std::size_t count)
{
    std::vector<spanker_record> out;
    const std::uint64_t deadline = now_ns() + patience_ns;
    while (out.size() < count && now_ns() < deadline) {
        spanker_record got[16];
        const std::size_t n = file.poll(got);
        out.insert(out.end(), got, got + n);
        if (n != 0 || cards->drive())
            continue;
        // Sleep until the descriptor or the cards want something.
        const std::uint64_t next = cards->next_work_ns().value_or(now_ns() + 10'000'000);
        const std::uint64_t now = now_ns();
        const std::uint64_t left = next > now ? std::min<std::uint64_t>(next - now, 10'000'000) : 0;
        const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(left)};
        pollfd at{.fd = file.fd(), .events = POLLIN, .revents = 0};
        ::ppoll(&at, 1, &time, nullptr);
    }
    EXPECT_GE(out.size(), count) << "no record came";
    out.resize(std::max(out.size(), count));
    return out;
}

std::uint64_t rig::submit(card_file& file, const std::vector<spanker_work_item>& items,
                          std::uint64_t cookie)
{
    auto seq = file.submit(items, cookie);
    EXPECT_TRUE(seq) << text_of(seq);
    return seq.value_or(0);
}

spanker_record rig::run(card_file& file, const std::vector<spanker_work_item>& items)
{
    submit(file, items);
    return wait(file)[0];
}

std::uint32_t rig::alloc(card_file& file, std::uint64_t size)
{
    auto tensor = file.tensor_alloc(size);
    EXPECT_TRUE(tensor) << text_of(tensor);
    return tensor.value_or(0);
}

std::uint32_t rig::share(card_file& file, bytes& memory, std::uint32_t access)
{
    auto handle = file.buffer_register({.memfd = -1,
                                        .address = memory.data(),
                                        .offset = 0,
                                        .bytes = memory.size(),
                                        .access = access});
    EXPECT_TRUE(handle) << text_of(handle);
    return handle.value_or(0);
}

void rig::upload(card_file& file, std::uint32_t tensor, const bytes& data)
{
    bytes copy = data;
    const std::uint32_t buffer = share(file, copy, read_access);
    EXPECT_EQ(run(file, {dma_in(tensor, buffer, static_cast<std::uint32_t>(data.size()))}).result,
              0);
    EXPECT_EQ(errno_of(file.buffer_unregister(buffer)), 0);
}

bytes rig::download(card_file& file, std::uint32_t tensor, std::size_t size)
{
    bytes out(size, 0xa5);
    const std::uint32_t buffer = share(file, out, write_access);
    EXPECT_EQ(run(file, {dma_out(buffer, tensor, static_cast<std::uint32_t>(size))}).result, 0);
    EXPECT_EQ(errno_of(file.buffer_unregister(buffer)), 0);
    return out;
}

std::vector<spanker::daemon::port_info> rig::ports_of(std::uint32_t card)
{
    auto got = cards->ports(card);
    EXPECT_TRUE(got) << text_of(got);
    return got.value_or(std::vector<spanker::daemon::port_info>());
}

std::optional<cable> rig::find_cable()
{
    for (const auto a : cards->cards())
        for (const auto b : cards->cards()) {
            const auto ports = cards->ports(a);
            const auto other = cards->info(b);
            if (a == b || !ports || !other)
                continue;
            for (const auto& port : *ports)
                if (port.state == SPK_PORT_UP && port.partner_serial == other->out_serial)
                    return cable{a, port.port, b, port.partner_port};
        }
    return std::nullopt;
}

bool rig::can_inject(std::uint32_t card) { return cards->inject(card, "clear gone").has_value(); }

void linked::SetUp()
{
    rig::SetUp();
    if (IsSkipped() || HasFatalFailure())
        return;
    const auto found = find_cable();
    if (!found)
        GTEST_SKIP() << "no two cards are joined by a cable";
    joined = *found;
    a = open(joined.card_a);
    b = open(joined.card_b);
    const member members[] = {{a.get(), 1u << joined.port_a, 0}, {b.get(), 1u << joined.port_b, 0}};
    auto made = cards->group_create(members);
    ASSERT_TRUE(made) << text_of(made);
    group = std::move(*made);
}

}  // namespace contract
