// SPDX-License-Identifier: Apache-2.0
//
// Every way a command can be wrong, and the field or byte that its completion names.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>

#include "sim_bench.hpp"

namespace spanker::sim::bench {
namespace {

constexpr std::uint64_t ddr = 64 << 20;
constexpr rows some = {.count = 4, .bytes = 64, .pitch = 128};
constexpr std::size_t args = offsetof(spk_cmd, raw);
constexpr std::uint64_t list = arena::base;  // never read by a refused command

struct bad_command {
    const char* what;
    spk_cmd good;
    std::function<void(spk_cmd&)> spoil;
    std::uint64_t detail;
};

class sim_decode : public testing::Test {
protected:
    sim_decode() { it.train(); }

    void refuses(const std::vector<bad_command>& table, spanker_card_status status)
    {
        for (const bad_command& row : table) {
            spk_cmd cmd = row.good;
            row.spoil(cmd);
            const spk_completion done = it.execute(q, cmd);
            EXPECT_EQ(done.status, status) << row.what;
            EXPECT_EQ(done.detail, row.detail) << row.what;
        }
        EXPECT_EQ(it.load(0, 0, 1 << 20), bytes(1 << 20)) << "a refused command touches nothing";
    }

    rig it{small_config(2)};
    queue& q = it.open(0, 1);
};

TEST_F(sim_decode, common_fields)
{
    refuses(
        {
            {"unknown opcode", nop(), [](auto& c) { c.opcode = SPK_OP_COUNT; }, 0},
            {"opcode 255", nop(), [](auto& c) { c.opcode = 255; }, 0},
            {"unknown flag", nop(), [](auto& c) { c.flags = 4; }, 1},
            {"wait signal", nop(), [](auto& c) { c.wait_signal = SPK_SIGNALS; }, 4},
            {"post signal", nop(), [](auto& c) { c.post_signal = 0xfffe; }, 6},
            {"dtype", nop(), [](auto& c) { c.dtype = SPK_DTYPE_COUNT; }, 12},
            {"reduce", nop(), [](auto& c) { c.reduce = SPK_REDUCE_COUNT; }, 13},
            {"rx ports of no link command", fill(0, 4, 1), [](auto& c) { c.rx_ports = 1; }, 14},
            {"tx ports of no link command", fill(0, 4, 1), [](auto& c) { c.tx_ports = 1; }, 15},
        },
        SPANKER_CARD_INVALID);
}

TEST_F(sim_decode, reserved_fields)
{
    const auto last = [](spk_cmd& c) { reinterpret_cast<unsigned char*>(&c)[63] = 1; };
    const rows one = {.count = 1, .bytes = 4};
    refuses(
        {
            {"nop", nop(), last, args},
            {"nop, first", nop(), [](auto& c) { c.raw[0] = 1; }, args},
            {"fill", fill(0, 4, 1), last, args + offsetof(spk_op_fill, reserved)},
            {"copy", copy(0, 64, one), last, args + offsetof(spk_op_copy, reserved)},
            {"matmul", matmul(0, 0, 0, {1, 256, 1}), last,
             args + offsetof(spk_op_matmul, reserved)},
            {"reduce", reduce(0, 64, 1, 0, 0), last, args + offsetof(spk_op_reduce, reserved)},
            {"scale", scale(0, 1, 0, {}), last, args + offsetof(spk_op_scale, reserved)},
            {"send", send(0, one, {.ports = 1}), last, args + offsetof(spk_op_link, reserved)},
            {"gang", gang(1, 1, 1, 0), last, args + offsetof(spk_op_gang, reserved)},
            {"signal_set", signal_set(0, 1, 0), last, args + offsetof(spk_op_signal_set, reserved)},
        },
        SPANKER_CARD_INVALID);
    queue& kernel = it.open(0, 0);
    spk_cmd abort = abort_of(1, 1);
    last(abort);
    EXPECT_EQ(it.execute(kernel, abort).detail, args + offsetof(spk_op_abort, reserved));
}

TEST_F(sim_decode, dma_fields)
{
    const spk_cmd good = dma(SPK_OP_DMA_IN, 0, list, some);
    refuses(
        {
            {"no list", good, [](auto& c) { c.dma.list = 0; }, args + offsetof(spk_op_dma, list)},
            {"list beyond 48 bits", good, [](auto& c) { c.dma.list = 1ull << 48; },
             args + offsetof(spk_op_dma, list)},
            {"first entry", good, [](auto& c) { c.dma.first = SPK_SG_ENTRIES; },
             args + offsetof(spk_op_dma, first)},
            {"card pitch", good, [](auto& c) { c.dma.card_pitch = 63; },
             args + offsetof(spk_op_dma, card_pitch)},
            {"host pitch", good, [](auto& c) { c.dma.host_pitch = 63; },
             args + offsetof(spk_op_dma, host_pitch)},
        },
        SPANKER_CARD_INVALID);
}

TEST_F(sim_decode, matmul_fields)
{
    const spk_cmd good = matmul(0, 0, 0, {2, 512, 2});
    const auto field = [](std::size_t offset) { return args + offset; };
    refuses(
        {
            {"k 0", good, [](auto& c) { c.matmul.k = 0; }, field(offsetof(spk_op_matmul, k))},
            {"k 255", good, [](auto& c) { c.matmul.k = 255; }, field(offsetof(spk_op_matmul, k))},
            {"k 257", good, [](auto& c) { c.matmul.k = 257; }, field(offsetof(spk_op_matmul, k))},
            {"format", good, [](auto& c) { c.matmul.x_format = SPK_X_COUNT; },
             field(offsetof(spk_op_matmul, x_format))},
            {"mode", good, [](auto& c) { c.matmul.mode = 4; },
             field(offsetof(spk_op_matmul, mode))},
            {"exact without f32", good,
             [](auto& c) {
                 c.matmul.mode = SPK_MATMUL_EXACT;
                 c.matmul.x_format = SPK_X_Q8_K;
             },
             field(offsetof(spk_op_matmul, mode))},
            {"x pitch", good, [](auto& c) { c.matmul.x_pitch = 2047; },
             field(offsetof(spk_op_matmul, x_pitch))},
            {"y pitch", good, [](auto& c) { c.matmul.y_pitch = 7; },
             field(offsetof(spk_op_matmul, y_pitch))},
        },
        SPANKER_CARD_INVALID);
}

TEST_F(sim_decode, link_fields)
{
    const spk_cmd tx = send(0, some, {.ports = 2});
    const spk_cmd rx = recv(0, some, {.ports = 1});
    const spk_cmd fold = link(SPK_OP_LINK_RECV_REDUCE, some, {.ports = 1}, {});
    const auto field = [](std::size_t offset) { return args + offset; };
    refuses(
        {
            {"send to no port", tx, [](auto& c) { c.tx_ports = 0; }, 15},
            {"send to a port that is not there", tx, [](auto& c) { c.tx_ports = 4; }, 15},
            {"send that receives", tx, [](auto& c) { c.rx_ports = 1; }, 14},
            {"receive from no port", rx, [](auto& c) { c.rx_ports = 0; }, 14},
            {"receive from two ports", rx, [](auto& c) { c.rx_ports = 3; }, 14},
            {"receive that sends", rx, [](auto& c) { c.tx_ports = 1; }, 15},
            {"rx channel", rx, [](auto& c) { c.link.rx_channel = 8; },
             field(offsetof(spk_op_link, rx_channel))},
            {"tx channel", tx, [](auto& c) { c.link.tx_channel = 8; },
             field(offsetof(spk_op_link, tx_channel))},
            {"src pitch", tx, [](auto& c) { c.link.src_pitch = 63; },
             field(offsetof(spk_op_link, src_pitch))},
            {"dst pitch", rx, [](auto& c) { c.link.dst_pitch = 63; },
             field(offsetof(spk_op_link, dst_pitch))},
            {"rows of half elements", fold, [](auto& c) { c.link.row_bytes = 62; },
             field(offsetof(spk_op_link, row_bytes))},
        },
        SPANKER_CARD_INVALID);
}

TEST_F(sim_decode, a_channel_that_nobody_owns)
{
    it.own(0, 0, 0);
    it.own(0, 1, 0);
    const auto field = [](std::size_t offset) { return args + offset; };
    refuses(
        {
            {"send", send(0, some, {.ports = 2}), [](auto&) {},
             field(offsetof(spk_op_link, tx_channel))},
            {"receive", recv(0, some, {.ports = 1}), [](auto&) {},
             field(offsetof(spk_op_link, rx_channel))},
        },
        SPANKER_CARD_INVALID);
}

TEST_F(sim_decode, control_fields)
{
    const auto field = [](std::size_t offset) { return args + offset; };
    refuses(
        {
            {"gang without domain", gang(0, 1, 1, 0), [](auto&) {},
             field(offsetof(spk_op_gang, domain))},
            {"gang of nobody", gang(1, 1, 0, 0), [](auto&) {},
             field(offsetof(spk_op_gang, members))},
            {"gang of 17", gang(1, 1, 17, 0), [](auto&) {}, field(offsetof(spk_op_gang, members))},
            {"section as deep as the ring", gang(1, 1, 1, 64), [](auto&) {},
             field(offsetof(spk_op_gang, section))},
            {"first signal", signal_set(SPK_SIGNALS, 0, 0), [](auto&) {},
             field(offsetof(spk_op_signal_set, first))},
            {"signal count", signal_set(255, 2, 0), [](auto&) {},
             field(offsetof(spk_op_signal_set, count))},
            {"signal count that wraps", signal_set(1, ~0u, 0), [](auto&) {},
             field(offsetof(spk_op_signal_set, count))},
            {"abort outside queue 0", abort_of(1, 1), [](auto&) {}, 0},
            {"scale that multiplies and divides", scale(0, 1, 0, {.factor = 1, .divisor = 2}),
             [](auto&) {}, field(offsetof(spk_op_scale, factor))},
        },
        SPANKER_CARD_INVALID);
    queue& kernel = it.open(0, 0);
    EXPECT_EQ(it.execute(kernel, abort_of(16, 1)).detail, field(offsetof(spk_op_abort, queue)));
    EXPECT_EQ(it.execute(kernel, abort_of(1, 0x10000)).detail, field(offsetof(spk_op_abort, id)));
}

// The detail is the offset in the payload of the first byte outside.
TEST_F(sim_decode, ranges_end_with_the_last_byte_of_the_last_row)
{
    const std::uint64_t huge = ~std::uint64_t{0};
    const auto at = [](spk_cmd cmd) { return bad_command{"", cmd, [](auto&) {}, 0}; };
    const auto row = [&](const char* what, const spk_cmd& cmd, std::uint64_t detail) {
        bad_command out = at(cmd);
        out.what = what;
        out.detail = detail;
        return out;
    };
    spk_cmd wide = copy(0, 0, {.count = 2, .bytes = 64});
    wide.copy.src_pitch = huge;
    spk_cmd far = dma(SPK_OP_DMA_OUT, ddr - 64 - 3 * 128 + 1, list, some);
    spk_cmd many = copy(0, ddr / 2, {.count = 1u << 20, .bytes = 64});
    refuses(
        {
            row("fill one over", fill(ddr - 3, 4, 1), 3),
            row("fill from outside", fill(ddr, 1, 1), 0),
            row("fill from 2^63", fill(1ull << 63, 1, 1), 0),
            row("fill that wraps", fill(16, huge, 1), ddr - 16),
            row("fill at the last address that wraps", fill(huge, 2, 1), 0),
            row("copy whose source rows run out", many, ddr / 2),
            row("copy with a pitch that wraps", wide, 64),
            row("dma whose last row ends one byte outside", far, 4 * 64 - 1),
            row("reduce that wraps", reduce(0, 0, huge / 2, SPK_DTYPE_F32, 0), ddr),
            row("scale one element over", scale(ddr - 6, 2, SPK_DTYPE_I32, {}), 6),
            row("weights outside", matmul(ddr - 144, 0, 0, {2, 256, 1}), 144),
            row("activations outside", matmul(0, ddr - 1024, 0, {1, 256, 2}), 1024),
            row("results outside", matmul(0, 0, ddr - 4, {2, 256, 1}), 4),
            row("send from outside", send(ddr, some, {.ports = 2}), 0),
            row("receive one over", recv(ddr - 3 * 128 - 63, some, {.ports = 1}), 4 * 64 - 1),
        },
        SPANKER_CARD_RANGE);
}

TEST_F(sim_decode, the_last_byte_of_memory_can_be_used)
{
    EXPECT_EQ(it.execute(q, fill(ddr - 4, 4, 0x01010101)).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.execute(q, copy(0, ddr - 64 - 3 * 128, some)).status, SPANKER_CARD_OK);
    const spk_cmd one_row = copy(ddr - 4, 0, {.count = 1, .bytes = 4, .pitch = ~std::uint64_t{0}});
    EXPECT_EQ(it.execute(q, one_row).status, SPANKER_CARD_OK) << "one row has no pitch";
}

TEST_F(sim_decode, unused_operands_are_not_looked_at)
{
    spk_cmd cmd = waits(nop(), SPK_NO_SIGNAL, 12345);
    EXPECT_EQ(it.execute(q, cmd).status, SPANKER_CARD_OK);
    queue& partner = it.open(1, 1);
    spk_cmd tx = send(0, some, {.ports = 2});
    tx.link.dst = ~std::uint64_t{0};
    tx.link.rx_channel = 255;
    spk_cmd rx = recv(0, some, {.ports = 1});
    rx.link.src = ~std::uint64_t{0};
    rx.link.tx_channel = 255;
    partner.put(rx);
    partner.ring();
    EXPECT_EQ(it.execute(q, tx).status, SPANKER_CARD_OK);
    EXPECT_EQ(statuses(partner.collect()), (std::vector<int>{SPANKER_CARD_OK}));
}

// ---- scatter lists come from outside too ----

class sim_scatter : public testing::Test {
protected:
    spk_sg_page& page(std::uint64_t address)
    {
        return *reinterpret_cast<spk_sg_page*>(it.memory.at(address));
    }
    std::uint64_t new_page()
    {
        const std::uint64_t address = it.memory.allocate(SPK_SG_PAGE_BYTES);
        std::memset(it.memory.at(address), 0, SPK_SG_PAGE_BYTES);
        return address;
    }
    spk_completion transfer(std::uint64_t first_page, std::uint32_t count, std::uint32_t first = 0)
    {
        spk_cmd cmd = dma(SPK_OP_DMA_IN, 0, first_page, {.count = 1, .bytes = count});
        cmd.dma.first = first;
        return it.execute(q, cmd);
    }
    void faults(const spk_completion& done, std::uint64_t detail)
    {
        EXPECT_EQ(done.status, SPANKER_CARD_HOST_FAULT);
        EXPECT_EQ(done.detail, detail);
    }

    rig it;
    queue& q = it.open(0, 1);
};

TEST_F(sim_scatter, a_list_that_ends_too_early_faults_at_its_end)
{
    faults(transfer(it.list_of(it.memory.allocate(100), 100), 101), 100);
}

TEST_F(sim_scatter, an_entry_that_leads_nowhere_faults_where_it_begins)
{
    const std::uint64_t list_page = new_page();
    page(list_page).entry[0] = {it.memory.allocate(64), 64};
    page(list_page).entry[1] = {it.memory.end(), 64};
    page(list_page).used = 2;
    faults(transfer(list_page, 128), 64);
    page(list_page).entry[1].address = 1ull << 50;  // more than the card's DMA address bits
    faults(transfer(list_page, 128), 64);
    page(list_page).entry[1].address = ~std::uint64_t{0};
    faults(transfer(list_page, 128), 64);
}

TEST_F(sim_scatter, pages_that_are_no_pages_fault)
{
    faults(transfer(it.memory.end(), 64), 0);
    const std::uint64_t list_page = new_page();
    page(list_page).used = SPK_SG_ENTRIES + 1;
    faults(transfer(list_page, 64), 0);
    page(list_page).used = 1;
    page(list_page).reserved = 1;
    faults(transfer(list_page, 64), 0);
    page(list_page).reserved = 0;
    faults(transfer(list_page, 64, 2), 0);
}

TEST_F(sim_scatter, circles_of_empty_pages_end)
{
    const std::uint64_t list_page = new_page();
    page(list_page).next = list_page;
    faults(transfer(list_page, 64), 0);
    page(list_page).used = SPK_SG_ENTRIES;  // entries of no bytes
    faults(transfer(list_page, 64), 0);
}

TEST_F(sim_scatter, entries_of_no_bytes_are_passed_over)
{
    const bytes data = pattern(64, 1);
    const std::uint64_t buffer = it.memory.allocate(64);
    it.memory.put(buffer, data);
    const std::uint64_t list_page = new_page();
    page(list_page).entry[1] = {buffer, 64};
    page(list_page).used = 2;
    EXPECT_EQ(transfer(list_page, 64).status, SPANKER_CARD_OK);
    EXPECT_EQ(it.load(0, 0, 64), data);
}

TEST_F(sim_scatter, bus_master_off_makes_a_transfer_fault)
{
    const auto big = rows{.count = 1, .bytes = 1 << 20};
    q.put(dma(SPK_OP_DMA_IN, 0, it.list_of(it.memory.allocate(big.bytes), big.bytes), big));
    q.ring();
    it.cards.run(1);
    it.cards.config_write(0, 0x04, 2, 0x0002);
    it.cards.run();
    it.cards.config_write(0, 0x04, 2, 0x0006);
    it.cards.run();
    const auto done = q.collect();
    ASSERT_EQ(done.size(), 1u);
    faults(done[0], 0);
}

}  // namespace
}  // namespace spanker::sim::bench
