// SPDX-License-Identifier: Apache-2.0
//
// A driver at work over the protocol: commands and completions in guest memory, doorbells as messages, interrupts as
// eventfds. Everything that a guest does, without the guest.
#include <fstream>

#include "sim_bench.hpp"
#include "vfio_user_bench.hpp"

namespace spanker::sim::vfio_user::bench {
namespace {

using sim::bench::dma;
using sim::bench::fill;
using sim::bench::flagged;
using sim::bench::nop;

constexpr std::uint64_t ram_base = 0x4000'0000;
constexpr std::uint32_t sq_at = 0x0000, cq_at = 0x4000, list_at = 0x8000, data_at = 0x10000;
constexpr std::uint32_t depth = 64;
constexpr unsigned queue = 1, vector = 5;
constexpr std::uint32_t command_register = 0x04;
constexpr std::uint32_t memory_and_master = 0x6;

// One card with one queue of depth 64; interrupts of all kinds go to `vector`.
class guest_driver {
public:
    explicit guest_driver(stand& home, unsigned card = 0) : us(home.agreed(card))
    {
        EXPECT_EQ(us.map(ram_base, ram.size(), 0, ram.fd().get()), 0);
    }

    void enable(std::uint16_t command = memory_and_master)
    {
        us.config(command_register, 2, command);
    }
    void enable_msix()
    {
        EXPECT_EQ(us.arm(VFIO_PCI_MSIX_IRQ_INDEX, vector, {event.get()}), 0);
        us.config(us.capability(0x11) + 2, 2, 0x8000);
    }
    void open_queue(unsigned its_vector = vector)
    {
        head = tail = 0;
        std::memset(ram.at(cq_at), 0, depth * sizeof(spk_completion));
        const auto reg = [&](std::uint32_t r, std::uint32_t value) {
            us.reg(SPK_REG_Q(queue, r), value);
        };
        us.reg(SPK_REG_CTRL, SPK_CTRL_ENABLE);
        reg(SPK_Q_SQ_BASE_LO, ram_base + sq_at);
        reg(SPK_Q_CQ_BASE_LO, ram_base + cq_at);
        reg(SPK_Q_SQ_DEPTH, depth);
        reg(SPK_Q_CQ_DEPTH, depth);
        reg(SPK_Q_VECTOR, its_vector);
        reg(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
        EXPECT_EQ(us.reg(SPK_REG_Q(queue, SPK_Q_STATE)), std::uint32_t{SPK_QSTATE_RUNNING});
    }
    void put(spk_cmd cmd)
    {
        cmd.id = static_cast<std::uint16_t>(tail);
        std::memcpy(ram.at(sq_at + tail % depth * sizeof cmd), &cmd, sizeof cmd);
        tail++;
    }
    // As QEMU writes: posted.
    void ring()
    {
        bytes payload;
        append(payload, region_access{.offset = SPK_REG_SQ_TAIL(queue), .region = 0, .count = 4});
        append(payload, tail);
        ASSERT_TRUE(us.post(command::region_write, payload, {}, flag_no_reply));
    }
    bool is_done()
    {
        auto* const slot =
            reinterpret_cast<std::uint64_t*>(ram.at(cq_at + head % depth * sizeof(spk_completion)));
        const std::uint64_t last = std::atomic_ref(slot[3]).load(std::memory_order_acquire);
        return (last >> 40 & SPK_CQE_PHASE) == (head / depth % 2 == 0 ? 1u : 0u);
    }
    spk_completion wait()
    {
        spk_completion out = {};
        EXPECT_TRUE(soon([&] { return is_done(); }));
        std::memcpy(&out, ram.at(cq_at + head % depth * sizeof out), sizeof out);
        head++;
        us.reg(SPK_REG_CQ_HEAD(queue), head);
        return out;
    }
    spk_completion run(const spk_cmd& cmd)
    {
        put(cmd);
        ring();
        return wait();
    }
    // Host memory of that address as the operand of a transfer.
    spk_cmd transfer(unsigned opcode, std::uint64_t card, std::uint64_t host, std::uint32_t count)
    {
        auto& page = *reinterpret_cast<spk_sg_page*>(ram.at(list_at));
        page = {};
        page.entry[0] = {.address = host, .bytes = count};
        page.used = 1;
        return dma(opcode, card, ram_base + list_at, {.count = 1, .bytes = count});
    }

    memory ram{1 << 20};
    unique_fd event = new_eventfd();
    client us;
    std::uint32_t head = 0, tail = 0;
};

TEST(vfio_user_work, a_command_completes_and_interrupts)
{
    stand it;
    guest_driver guest(it);
    guest.enable();
    guest.enable_msix();
    guest.open_queue();
    const spk_completion done = guest.run(flagged(fill(0, 4096, 0x12345678), SPK_CMD_IRQ));
    EXPECT_EQ(done.status, SPANKER_CARD_OK);
    EXPECT_GT(done.end_ns, done.start_ns);
    EXPECT_TRUE(is_signalled_soon(guest.event));
    EXPECT_EQ(taken_from(guest.event), 1u);
}

TEST(vfio_user_work, data_goes_in_and_comes_back_through_the_guests_file)
{
    stand it;
    guest_driver guest(it);
    guest.enable();
    guest.open_queue();
    const bytes sent = sim::bench::pattern(100'000, 1);
    guest.ram.put(data_at, sent);
    ASSERT_EQ(guest.run(guest.transfer(SPK_OP_DMA_IN, 4096, ram_base + data_at, 100'000)).status,
              SPANKER_CARD_OK);
    std::memset(guest.ram.at(data_at), 0, sent.size());
    ASSERT_EQ(guest.run(guest.transfer(SPK_OP_DMA_OUT, 4096, ram_base + data_at, 100'000)).status,
              SPANKER_CARD_OK);
    EXPECT_EQ(std::memcmp(guest.ram.at(data_at), sent.data(), sent.size()), 0);
    const pin_counters counted = it.cards().counters(0);
    EXPECT_GE(counted.dma_read_bytes, 100'000u);
    EXPECT_GE(counted.dma_write_bytes, 100'000u);
}

TEST(vfio_user_work, a_steady_state_reads_no_register_and_rings_once_a_batch)
{
    stand it;
    guest_driver guest(it);
    guest.enable();
    guest.enable_msix();
    guest.open_queue();
    const pin_counters before = it.cards().counters(0);
    for (int batch = 0; batch < 10; batch++) {
        for (int n = 0; n < 8; n++)
            guest.put(n == 7 ? flagged(nop(), SPK_CMD_IRQ) : nop());
        guest.ring();
        for (int n = 0; n < 8; n++)
            EXPECT_EQ(guest.wait().status, SPANKER_CARD_OK);
    }
    const pin_counters after = it.cards().counters(0);
    EXPECT_EQ(after.register_reads, before.register_reads);
    EXPECT_EQ(after.sq_doorbells, before.sq_doorbells + 10);
    EXPECT_EQ(after.cq_doorbells, before.cq_doorbells + 80);
    EXPECT_TRUE(soon([&] { return it.cards().counters(0).interrupts == before.interrupts + 10; }));
}

TEST(vfio_user_work, memory_that_was_unmapped_ends_a_transfer_in_a_host_fault)
{
    stand it;
    guest_driver guest(it);
    memory buffer(1 << 16);
    constexpr std::uint64_t buffer_at = 0x9000'0000;
    ASSERT_EQ(guest.us.map(buffer_at, buffer.size(), 0, buffer.fd().get()), 0);
    guest.enable();
    guest.open_queue();
    ASSERT_EQ(guest.run(guest.transfer(SPK_OP_DMA_IN, 0, buffer_at, 65536)).status,
              SPANKER_CARD_OK);
    ASSERT_EQ(it.served().guest_of(0).dma.counters().faults, 0u);
    ASSERT_EQ(guest.us.unmap(buffer_at, buffer.size()), 0);
    const spk_completion late = guest.run(guest.transfer(SPK_OP_DMA_IN, 0, buffer_at, 65536));
    EXPECT_EQ(late.status, SPANKER_CARD_HOST_FAULT);
    EXPECT_EQ(late.detail, 0u);
    const dma_counters counted = it.served().guest_of(0).dma.counters();
    EXPECT_EQ(counted.faults, 1u);
    EXPECT_EQ(counted.last_fault, buffer_at);
    EXPECT_NE(it.said().find("card 0: DMA fault: reads 0x90000000, which is not mapped"),
              std::string::npos)
        << it.said();
}

TEST(vfio_user_work, memory_without_a_file_ends_a_transfer_in_a_host_fault)
{
    stand it;
    guest_driver guest(it);
    ASSERT_EQ(guest.us.map(0x9000'0000, 1 << 16, 0, -1), 0);
    guest.enable();
    guest.open_queue();
    EXPECT_EQ(guest.run(guest.transfer(SPK_OP_DMA_OUT, 0, 0x9000'0000, 4096)).status,
              SPANKER_CARD_HOST_FAULT);
    EXPECT_EQ(it.served().guest_of(0).dma.counters().faults, 1u);
}

TEST(vfio_user_work, without_bus_master_nothing_is_fetched_and_nothing_interrupts)
{
    stand it;
    guest_driver guest(it);
    guest.enable(0x2);
    guest.enable_msix();
    guest.open_queue();
    guest.put(flagged(nop(), SPK_CMD_IRQ));
    guest.ring();
    guest.us.reg(SPK_REG_MAGIC);  // the doorbell has arrived
    ASSERT_TRUE(soon([&] { return it.cards().idle(); }));
    EXPECT_FALSE(guest.is_done());
    EXPECT_EQ(it.cards().counters(0).dma_reads, 0u);
    EXPECT_EQ(taken_from(guest.event), 0u);
    guest.enable();
    EXPECT_EQ(guest.wait().status, SPANKER_CARD_OK);
    EXPECT_TRUE(is_signalled_soon(guest.event));
}

TEST(vfio_user_work, an_interrupt_that_comes_before_its_eventfd_is_rung_when_that_comes)
{
    stand it;
    guest_driver guest(it);
    guest.enable();
    guest.us.config(guest.us.capability(0x11) + 2, 2, 0x8000);
    guest.open_queue();
    EXPECT_EQ(guest.run(flagged(nop(), SPK_CMD_IRQ)).status, SPANKER_CARD_OK);
    EXPECT_TRUE(soon([&] { return guest.us.reg(SPK_MSIX_PBA_OFFSET) == 1u << vector; }));
    ASSERT_EQ(guest.us.arm(VFIO_PCI_MSIX_IRQ_INDEX, vector, {guest.event.get()}), 0);
    EXPECT_TRUE(is_signalled_soon(guest.event));
    EXPECT_EQ(guest.us.reg(SPK_MSIX_PBA_OFFSET), 0u);
}

TEST(vfio_user_work, with_msi_vectors_wrap_to_the_messages_granted)
{
    fabric_config config = stand::small_config();
    config.cards[0].msix = false;
    stand it(config);
    guest_driver guest(it);
    guest.enable();
    const unique_fd second = new_eventfd();
    ASSERT_EQ(guest.us.arm(VFIO_PCI_MSI_IRQ_INDEX, 0, {guest.event.get(), second.get()}), 0);
    guest.us.config(guest.us.capability(0x05) + 2, 2, 1u << 4 | 1);  // two messages, on
    guest.open_queue(5);
    EXPECT_EQ(guest.run(flagged(nop(), SPK_CMD_IRQ)).status, SPANKER_CARD_OK);
    EXPECT_TRUE(is_signalled_soon(second));
    EXPECT_EQ(taken_from(guest.event), 0u);
}

TEST(vfio_user_work, after_a_function_level_reset_eventfds_and_memory_are_still_there)
{
    stand it;
    guest_driver guest(it);
    guest.enable();
    guest.enable_msix();
    guest.open_queue();
    guest.us.config(guest.us.capability(0x10) + 8, 2, 1u << 15);
    EXPECT_EQ(guest.us.config(command_register, 2), 0u);
    EXPECT_EQ(guest.us.reg(SPK_REG_Q(queue, SPK_Q_STATE)), std::uint32_t{SPK_QSTATE_OFF});
    guest.enable();  // as an operating system restores configuration space
    guest.us.config(guest.us.capability(0x11) + 2, 2, 0x8000);
    guest.open_queue();
    EXPECT_EQ(guest.run(flagged(nop(), SPK_CMD_IRQ)).status, SPANKER_CARD_OK);
    EXPECT_TRUE(is_signalled_soon(guest.event)) << "the client was not told of the reset";
}

TEST(vfio_user_work, cards_of_one_fabric_train_their_link)
{
    stand it(stand::small_config(2));
    guest_driver one(it, 0), two(it, 1);
    one.us.reg(SPK_REG_PORT(1, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ);
    two.us.reg(SPK_REG_PORT(0, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ);
    EXPECT_TRUE(soon([&] {
        return one.us.reg(SPK_REG_PORT(1, SPK_P_STATE)) == SPK_PORT_UP &&
               two.us.reg(SPK_REG_PORT(0, SPK_P_STATE)) == SPK_PORT_UP;
    }));
    EXPECT_EQ(one.us.reg(SPK_REG_PORT(1, SPK_P_PARTNER_LO)), two.us.reg(SPK_REG_SERIAL_LO));
}

TEST(vfio_user_work, when_a_client_dies_at_work_its_partners_lose_the_link_and_its_memory_is_left)
{
    stand it(stand::small_config(2));
    guest_driver other(it, 1);
    other.us.reg(SPK_REG_PORT(0, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ);
    {
        guest_driver guest(it, 0);
        guest.enable();
        guest.us.reg(SPK_REG_PORT(1, SPK_P_CTRL), SPK_PCTRL_TRAIN_REQ);
        ASSERT_TRUE(
            soon([&] { return other.us.reg(SPK_REG_PORT(0, SPK_P_STATE)) == SPK_PORT_UP; }));
        guest.open_queue();
        for (int n = 0; n < 32; n++)
            guest.put(fill(0, 1 << 20, 1));
        guest.ring();
    }
    ASSERT_TRUE(it.is_free(0));
    EXPECT_TRUE(soon([&] { return other.us.reg(SPK_REG_PORT(0, SPK_P_STATE)) == SPK_PORT_FAULT; }));
    EXPECT_EQ(other.us.reg(SPK_REG_PORT(0, SPK_P_REASON)), std::uint32_t{SPK_REASON_REMOTE_LOST});
    guest_driver next(it, 0);
    next.enable();
    next.open_queue();
    EXPECT_EQ(next.run(nop()).status, SPANKER_CARD_OK);
}

TEST(vfio_user_work, the_real_pace_takes_the_time_that_hardware_takes)
{
    fabric_config config = stand::small_config();
    config.cards[0].ddr_bytes_per_s = 20'000'000;  // 1 MiB in some 50 ms
    config.speed = pace::real;
    stand it(config);
    guest_driver guest(it);
    guest.enable();
    guest.open_queue();
    const auto start = std::chrono::steady_clock::now();
    const spk_completion done = guest.run(fill(0, 1 << 20, 1));
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(done.status, SPANKER_CARD_OK);
    EXPECT_GE(took, std::chrono::nanoseconds((done.end_ns - done.start_ns) * 9 / 10));
    EXPECT_GE(done.end_ns - done.start_ns, 10'000'000u);
}

TEST(vfio_user_work, many_cards_of_full_size_cost_what_is_written_to_them)
{
    card_config card;
    card.ddr_bytes = std::uint64_t{4} << 30;
    stand it(make_fabric_config(16, "ring", card));
    for (unsigned n = 0; n < 16; n++) {
        client us = it.agreed(n);
        EXPECT_EQ(us.reg(SPK_REG_CAP_DDR_LO), 0u);
        EXPECT_EQ(us.reg(SPK_REG_CAP_DDR_HI), 1u);
    }
    std::uint64_t resident_kib = 0;
    std::ifstream file("/proc/self/smaps");
    bool ours = false;
    for (std::string line; std::getline(file, line);) {
        if (line.find('-') < line.find(' '))  // a mapping: its addresses come first
            ours = line.find("sail-ddr") != std::string::npos;
        else if (ours && line.starts_with("Rss:"))
            resident_kib += std::stoull(line.substr(4));
    }
    EXPECT_LT(resident_kib, 1024u);
}

}  // namespace
}  // namespace spanker::sim::vfio_user::bench
