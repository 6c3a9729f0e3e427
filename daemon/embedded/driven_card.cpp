// SPDX-License-Identifier: Apache-2.0
//
// Probe, loss and return.
#include "daemon/embedded/driven_card.hpp"

#include <time.h>

#include <cstdio>
#include <cstring>

#include "daemon/embedded/file.hpp"
#include "daemon/embedded/machine.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::embedded {

namespace {

constexpr std::uint32_t all_ones = ~std::uint32_t{0};
constexpr std::uint32_t heap_nodes = 1 << 15;  // pieces of card memory at a time
constexpr std::uint32_t own_vector = 0;

constexpr unsigned pci_command = 0x04;
constexpr std::uint32_t pci_memory_and_master = 0x6;
constexpr unsigned pci_first_capability = 0x34;
constexpr std::uint32_t pci_capability_msix = 0x11;
constexpr std::uint32_t pci_msix_enable = 1u << 15;
constexpr std::uint32_t msix_entry_bytes = 16, msix_entry_control = 12;

std::uint64_t boottime_ns()
{
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint32_t driven_card::read(std::uint32_t reg) const
{
    return home_.fabric->bar_read(number_, reg);
}

// For pairs whose low half latches the high one.
std::uint64_t driven_card::read64(std::uint32_t lo) const
{
    const std::uint64_t low = read(lo);
    return std::uint64_t{read(lo + 4)} << 32 | low;
}

void driven_card::write(std::uint32_t reg, std::uint32_t value)
{
    home_.fabric->bar_write(number_, reg, value);
}

error driven_card::failed(const std::string& what) const
{
    return {SPANKER_ERR_CARD_FAILED, "card " + std::to_string(number_) + ": " + what};
}

void driven_card::set_state(spanker_card_state next)
{
    if (state_ == next || !spk_gate_may_move(state_, next))
        return;
    state_ = next;
    home_.events.add(event_card_state{number_, static_cast<std::uint32_t>(next)});
}

// ---- probe ----

result<void> driven_card::identify()
{
    u32 words[SPK_CAPS_WORDS];
    for (std::uint32_t n = 0; n < SPK_CAPS_WORDS; n++)
        words[n] = read(4 * n);
    const char* why = nullptr;
    const int err = spk_caps_decode(words, &caps_, &why);
    if (err == -EINVAL)
        return tl::unexpected(failed(std::string("the driver cannot use its ") + why));
    return err ? result<void>(tl::unexpected(failed(why))) : result<void>();
}

result<void> driven_card::wait_ready()
{
    const std::uint32_t status = read(SPK_REG_STATUS);
    if (status == all_ones || (status & SPK_STATUS_READY) == 0)
        return tl::unexpected(failed("it does not come out of reset"));
    if ((status & SPK_STATUS_DDR_OK) == 0)
        return tl::unexpected(failed("its memory is not calibrated"));
    if (status & SPK_STATUS_FATAL)
        return tl::unexpected(
            failed("fatal error, reason " + std::to_string(read(SPK_REG_FATAL_REASON))));
    return {};
}

void driven_card::enable_bus_and_vectors()
{
    sim::fabric& pins = *home_.fabric;
    pins.config_write(number_, pci_command, 2, pci_memory_and_master);
    for (unsigned at = pins.config_read(number_, pci_first_capability, 1); at != 0 && at < 256;
         at = pins.config_read(number_, at + 1, 1))
        if (pins.config_read(number_, at, 1) == pci_capability_msix)
            pins.config_write(number_, at + 2, 2, pci_msix_enable);
    for (std::uint32_t vector = 0; vector < caps_.vectors; vector++)
        write(SPK_MSIX_TABLE_OFFSET + vector * msix_entry_bytes + msix_entry_control, 0);
}

// From a card fresh out of reset to one that works.
result<void> driven_card::bring_up()
{
    if (auto ready = wait_ready(); !ready)
        return ready;
    generation_ = read(SPK_REG_RESET_GEN);
    enable_bus_and_vectors();
    write(SPK_REG_CARD_ID, number_);
    own_.start();
    zero_failures_ = 0;
    troubled_ = queue_faulted_ = false;
    write(SPK_REG_EVENT_VECTOR, own_vector);
    write(SPK_REG_EVENT_CAUSE, all_ones);
    write(SPK_REG_EVENT_MASK,
          SPK_EVENT_FATAL | SPK_EVENT_TEMP | SPK_EVENT_QUEUE_FAULT | ((1u << caps_.ports) - 1));
    write(SPK_REG_CTRL, SPK_CTRL_ENABLE);
    auto* nodes = static_cast<spk_region*>(nodes_.data());
    if (spk_heap_init(&heap_, caps_.ddr_bytes, nodes, heap_nodes))
        return tl::unexpected(failed("its memory size makes no sense"));
    set_state(SPANKER_CARD_READY);
    start_ports();
    zero_more();
    return {};
}

result<void> driven_card::probe()
{
    if (auto known = identify(); !known)
        return known;
    nodes_ = pages(heap_nodes * sizeof(spk_region));
    if (!nodes_ || !own_.make(home_.bus, {home_.fabric.get(), number_, 0, own_vector}))
        return fail(SPANKER_ERR_NO_MEMORY, "no memory for the driver's queue");
    // Whoever drove the card before may have left it in the middle of something.
    write(SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    auto up = bring_up();
    if (!up)
        set_state(SPANKER_CARD_DEAD);
    return up;
}

// ---- loss, return ----

void driven_card::end_all(int result, std::uint32_t card_status)
{
    for (embedded_file* file : files) {
        if (!file)
            continue;
        spk_batch_fail_all(&file->queue().batches(), result, card_status);
        file->update_fd();
    }
}

void driven_card::vanish()
{
    set_state(SPANKER_CARD_GONE);
    end_all(-ENODEV, SPANKER_CARD_RESET);
}

void driven_card::check_presence()
{
    const bool answers = read(SPK_REG_MAGIC) == SPK_MAGIC;
    // A card held in reset is silent as well, but its configuration space is not.
    const bool gone = !answers && home_.fabric->config_read(number_, 0, 2) == 0xffff;
    if (gone && state_ != SPANKER_CARD_GONE) {
        vanish();
    } else if (answers && state_ == SPANKER_CARD_GONE) {
        set_state(SPANKER_CARD_PROBING);
        if (!bring_up())
            set_state(SPANKER_CARD_DEAD);
    }
}

// ---- what it is ----

spanker_get_info driven_card::info() const
{
    spanker_get_info out{};
    out.size = sizeof(out);
    out.out_serial = caps_.serial;
    out.out_number = number_;
    out.out_gateware = caps_.gateware;
    out.out_card_abi = caps_.abi;
    out.out_state = state_;
    out.out_reset_generation = generation_;
    out.out_features = caps_.features;
    out.out_queues = caps_.queues;
    out.out_queue_depth = caps_.queue_depth;
    out.out_ports = caps_.ports;
    out.out_lanes = caps_.lanes;
    out.out_channels = caps_.channels;
    out.out_rx_buffer_bytes = caps_.rx_buffer_bytes;
    out.out_hop_ns = caps_.hop_ns;
    out.out_issue_ns = caps_.issue_ns;
    out.out_memory_bytes = caps_.ddr_bytes;
    out.out_memory_free_bytes = state_ == SPANKER_CARD_READY ? spk_heap_free_bytes(&heap_) : 0;
    out.out_ddr_bytes_per_s = caps_.ddr_bytes_per_s;
    out.out_link_bytes_per_s = caps_.link_bytes_per_s;
    out.out_host_bytes_per_s = caps_.host_bytes_per_s;
    out.out_macs_per_s = caps_.macs_per_s;
    out.out_device_ns = state_ == SPANKER_CARD_READY ? read64(SPK_REG_CLOCK_LO) : 0;
    out.out_boottime_ns = boottime_ns();
    std::snprintf(out.out_bus_id, sizeof(out.out_bus_id), "embedded:%02x.0", number_);
    return out;
}

}  // namespace spanker::daemon::embedded
