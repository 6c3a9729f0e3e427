// SPDX-License-Identifier: Apache-2.0
//
// The public face: every call finds its card, takes the lock, and hands over.
#include <cstring>
#include <stdexcept>
#include <string>

#include "sim/card.hpp"
#include "sim/check_config.hpp"
#include "sim/faults.hpp"
#include "sim/machine.hpp"
#include "sim/registers.hpp"
#include "sim/reset.hpp"
#include "sim/runner.hpp"

namespace spanker::sim {

struct fabric::impl {
    impl(const fabric_config& config, host& bus) : m(checked(config), bus), turns(m, config.speed)
    {}

    card_state& card(unsigned index)
    {
        if (index >= m.cards.size())
            throw std::out_of_range("there is no card " + std::to_string(index) +
                                    "; the fabric has " + std::to_string(m.cards.size()));
        return *m.cards[index];
    }

    machine m;
    runner turns;
};

namespace {

constexpr std::uint32_t all_ones = ~std::uint32_t{0};

std::uint32_t ones(unsigned bytes) { return bytes >= 4 ? all_ones : (1u << 8 * bytes) - 1; }

bool is_register(std::uint32_t offset) { return offset % 4 == 0 && offset < SPK_BAR_BYTES; }

// Registers that show the clockwork's own numbers.
bool shows_counters(std::uint32_t offset)
{
    return (offset >= SPK_REG_BUSY_LO(0) && offset <= SPK_REG_BUSY_HI(SPK_ENGINE_CLASSES - 1)) ||
           (offset >= SPK_REG_PORT(0, 0) && offset < SPK_REG_PORT(SPK_MAX_PORTS, 0));
}

}  // namespace

fabric::fabric(const fabric_config& config, host& bus) : impl_(std::make_unique<impl>(config, bus))
{}

fabric::~fabric() = default;

unsigned fabric::card_count() const { return static_cast<unsigned>(impl_->m.cards.size()); }

std::uint32_t fabric::config_read(unsigned card, std::uint32_t offset, unsigned bytes)
{
    const card_state& state = impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    return state.gone ? ones(bytes) : state.pci.read(offset, bytes);
}

void fabric::config_write(unsigned card, std::uint32_t offset, unsigned bytes, std::uint32_t value)
{
    card_state& state = impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    if (state.gone)
        return;
    const config_space::change change = state.pci.write(offset, bytes, value);
    if (change.function_reset) {
        card_reset(impl_->m, state, card_reset_kind::function);
    } else if (change.interrupts) {
        release_interrupts(impl_->m, state);
        queue_kick_all(impl_->m, state);
    }
}

std::uint32_t fabric::bar_read(unsigned card, std::uint32_t offset)
{
    card_state& state = impl_->card(card);
    if (shows_counters(offset))
        impl_->turns.if_at_rest([&] { impl_->m.publish_counters(card); });
    const std::lock_guard lock(impl_->m.mutex);
    state.counters.register_reads++;
    if (!state.answers())
        return all_ones;
    return is_register(offset) ? register_read(impl_->m, state, offset) : 0;
}

void fabric::bar_write(unsigned card, std::uint32_t offset, std::uint32_t value)
{
    card_state& state = impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    state.counters.register_writes++;
    if (state.answers() && is_register(offset))
        register_write(impl_->m, state, offset, value);
}

void fabric::reset(unsigned card, reset_kind kind)
{
    card_state& state = impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    card_reset(impl_->m, state,
               kind == reset_kind::bus ? card_reset_kind::bus : card_reset_kind::function);
}

void fabric::set_host_vectors(unsigned card, std::uint32_t vectors)
{
    card_state& state = impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    state.irq.set_host_vectors(vectors);
    release_interrupts(impl_->m, state);
}

bool fabric::run(std::uint64_t events) { return impl_->turns.run(events); }

bool fabric::refresh_status() { return impl_->turns.refresh_status(); }

bool fabric::idle() const
{
    const std::lock_guard lock(impl_->m.mutex);
    return impl_->m.actions.empty() && impl_->m.next_copy_ps.load() == timing::never;
}

std::uint64_t fabric::now_ns() const { return impl_->m.now_ns(); }

void fabric::advance_to(std::uint64_t ns)
{
    constexpr std::uint64_t last_ns = timing::never / timing::ps_per_ns - 1;
    impl_->turns.advance_to(static_cast<timing::time_ps>(std::min(ns, last_ns)) *
                            timing::ps_per_ns);
}

std::optional<std::uint64_t> fabric::next_event_ns() const
{
    const std::lock_guard lock(impl_->m.mutex);
    if (!impl_->m.actions.empty())
        return impl_->m.now_ns();
    const timing::time_ps next = impl_->m.next_copy_ps.load();
    if (next == timing::never)
        return std::nullopt;
    return static_cast<std::uint64_t>(next) / timing::ps_per_ns;
}

std::vector<trace_entry> fabric::trace(unsigned card, std::size_t last) const
{
    const card_state& state = impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    return state.trace.last(last);
}

bool fabric::snapshot(unsigned card, std::uint64_t address, std::span<std::byte> to) const
{
    const card_state& state = impl_->card(card);
    if (address > state.memory.size() || to.size() > state.memory.size() - address)
        return false;
    const std::lock_guard lock(impl_->m.data_mutex);
    if (!to.empty())
        std::memcpy(to.data(), state.memory.at(address), to.size());
    return true;
}

pin_counters fabric::counters(unsigned card) const
{
    const card_state& state = impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    return state.counters;
}

const card_config& fabric::config(unsigned card) const { return impl_->card(card).config; }

void fabric::inject(const fault& what)
{
    impl_->card(what.card);
    const std::lock_guard lock(impl_->m.mutex);
    fault_inject(impl_->m, what);
}

void fabric::fault_clear(unsigned card, fault_kind kind)
{
    impl_->card(card);
    const std::lock_guard lock(impl_->m.mutex);
    fault_heal(impl_->m, card, kind);
}

}  // namespace spanker::sim
