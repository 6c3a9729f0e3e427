// SPDX-License-Identifier: Apache-2.0
//
// The backend that needs no hardware and no kernel module: the driver core and
// the card model in this process, doing what the module does.
//
// With the fast pace, work happens on the thread that polls or drives. A
// file's descriptor becomes readable when its records were not picked up by
// the time the backend is driven again, and next_work_ns() asks for that: so
// who polls what it drives makes no system call.
#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>

#include "daemon/backend.hpp"
#include "daemon/embedded/cards_like.hpp"
#include "daemon/embedded/file.hpp"
#include "daemon/embedded/group.hpp"
#include "daemon/embedded/machine.hpp"
#include "daemon/refusals.hpp"
#include "sim/fault_text.hpp"

namespace spanker::daemon {

namespace {

using namespace embedded;

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t reference_memory_bytes = std::uint64_t{4} << 30;
constexpr std::uint64_t least_memory_bytes = 64 * mebibyte;
constexpr std::uint64_t events_per_drive = 4096;

std::uint64_t available_memory_bytes()
{
    std::ifstream info("/proc/meminfo");
    std::string key, unit;
    std::uint64_t kib = 0;
    while (info >> key >> kib)
        if (std::getline(info, unit); key == "MemAvailable:")
            return kib * 1024;
    return reference_memory_bytes;
}

std::uint64_t memory_per_card(const embedded_options& options)
{
    if (options.card_memory_bytes != 0)
        return options.card_memory_bytes;
    const std::uint64_t share = available_memory_bytes() / 2 / std::max(options.cards, 1u);
    return std::clamp(share / mebibyte * mebibyte, least_memory_bytes, reference_memory_bytes);
}

class embedded_backend final : public backend {
public:
    explicit embedded_backend(std::shared_ptr<machine> home) : home_(std::move(home)) {}

    std::string name() const override { return "embedded"; }
    std::vector<std::uint32_t> cards() override;
    result<spanker_get_info> info(std::uint32_t card) override;
    result<std::vector<port_info>> ports(std::uint32_t card) override;
    result<telemetry> read_telemetry(std::uint32_t card) override;
    result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t depth) override;
    result<std::unique_ptr<channel_group>>
    group_create(std::span<const group_member> members) override
    {
        return make_group(home_, members);
    }
    result<void> link_train(std::uint32_t card, std::uint32_t port_mask, bool retrain) override;
    result<void> link_set_admin(std::uint32_t card, std::uint32_t port, bool enable) override;
    result<void> card_reset(std::uint32_t card, std::uint32_t mode) override;
    int event_fd() const override { return home_->events.fd(); }
    std::vector<event> take_events() override;
    bool drive() override;
    std::optional<std::uint64_t> next_work_ns() const override { return home_->next_work_ns(); }
    result<std::vector<trace_record>> trace(std::uint32_t card, std::size_t last) override;
    result<void> inject(std::uint32_t card, const std::string& what) override;

private:
    // With the lock held: a card that works (or the error that says why not).
    result<driven_card*> find(std::uint32_t card);
    result<driven_card*> find_ready(std::uint32_t card);

    std::shared_ptr<machine> home_;
};

result<driven_card*> embedded_backend::find(std::uint32_t card)
{
    if (driven_card* found = home_->find(card))
        return found;
    return fail(SPANKER_ERR_NO_OBJECT, "there is no card " + std::to_string(card) +
                                           "; the backend has " +
                                           std::to_string(home_->cards.size()));
}

result<driven_card*> embedded_backend::find_ready(std::uint32_t card)
{
    auto found = find(card);
    if (!found)
        return found;
    (*found)->check_presence();
    if (const int err = (*found)->gate((*found)->generation()))
        return tl::unexpected(refusals::gate(card, err));
    return found;
}

std::vector<std::uint32_t> embedded_backend::cards()
{
    std::vector<std::uint32_t> out;
    for (const auto& card : home_->cards)
        out.push_back(card->number());
    return out;
}

result<spanker_get_info> embedded_backend::info(std::uint32_t card)
{
    const std::lock_guard hold(home_->lock);
    auto found = find(card);
    if (!found)
        return tl::unexpected(found.error());
    (*found)->check_presence();
    home_->exports.sweep();  // so that free memory is what it is
    return (*found)->info();
}

result<std::vector<port_info>> embedded_backend::ports(std::uint32_t card)
{
    const std::lock_guard hold(home_->lock);
    auto found = find_ready(card);
    if (!found)
        return tl::unexpected(found.error());
    std::vector<port_info> out;
    out.reserve((*found)->caps().ports);
    for (std::uint32_t port = 0; port < (*found)->caps().ports; port++)
        out.push_back((*found)->port(port));
    return out;
}

result<telemetry> embedded_backend::read_telemetry(std::uint32_t card)
{
    const std::lock_guard hold(home_->lock);
    auto found = find_ready(card);
    if (!found)
        return tl::unexpected(found.error());
    const driven_card& it = **found;
    telemetry out;
    out.temperature_mc = static_cast<std::int32_t>(it.read(SPK_REG_TEMP_MC));
    out.power_mw = it.read(SPK_REG_POWER_MW);
    for (std::uint32_t n = 0; n < SPK_VOLTAGES; n++)
        out.voltage_mv[n] = it.read(SPK_REG_VOLT_MV(n));
    for (std::uint32_t n = 0; n < SPK_ENGINE_CLASSES; n++)
        out.busy_ns[n] = it.read64(SPK_REG_BUSY_LO(n));
    out.device_ns = it.read64(SPK_REG_CLOCK_LO);
    return out;
}

result<std::unique_ptr<card_file>> embedded_backend::open(std::uint32_t card, std::uint32_t depth)
{
    const std::lock_guard hold(home_->lock);
    auto found = find_ready(card);
    if (!found)
        return tl::unexpected(found.error());
    return embedded_file::open(home_, **found, depth);
}

result<void> embedded_backend::link_train(std::uint32_t card, std::uint32_t port_mask, bool retrain)
{
    const std::lock_guard hold(home_->lock);
    auto found = find_ready(card);
    if (!found)
        return tl::unexpected(found.error());
    return (*found)->train(port_mask, retrain);
}

result<void> embedded_backend::link_set_admin(std::uint32_t card, std::uint32_t port, bool enable)
{
    const std::lock_guard hold(home_->lock);
    auto found = find_ready(card);
    if (!found)
        return tl::unexpected(found.error());
    if (port >= (*found)->caps().ports)
        return tl::unexpected(refusals::no_such_port(card, (*found)->caps().ports, port));
    (*found)->set_admin(port, enable);
    return {};
}

result<void> embedded_backend::card_reset(std::uint32_t card, std::uint32_t mode)
{
    const std::lock_guard hold(home_->lock);
    auto found = find(card);
    if (!found)
        return tl::unexpected(found.error());
    if (mode >= SPANKER_RESET_MODES)
        return tl::unexpected(refusals::no_reset_mode(mode));
    return (*found)->reset(mode);
}

std::vector<event> embedded_backend::take_events()
{
    const std::lock_guard hold(home_->lock);
    return home_->events.take();
}

bool embedded_backend::drive()
{
    {
        const std::lock_guard hold(home_->lock);
        home_->tell_files();
    }
    return !home_->advance(events_per_drive) && !home_->event_is_later();
}

result<std::vector<trace_record>> embedded_backend::trace(std::uint32_t card, std::size_t last)
{
    if (auto found = find(card); !found)
        return tl::unexpected(found.error());
    std::vector<trace_record> out;
    for (const sim::trace_entry& entry : home_->fabric->trace(card, last))
        out.push_back({.opcode = entry.opcode,
                       .status = entry.status,
                       .queue = entry.queue,
                       .dims = {entry.dims[0], entry.dims[1], entry.dims[2]},
                       .bytes = entry.bytes,
                       .start_ns = entry.start_ns,
                       .end_ns = entry.end_ns});
    return out;
}

result<void> embedded_backend::inject(std::uint32_t card, const std::string& what)
{
    if (auto found = find(card); !found)
        return tl::unexpected(found.error());
    try {
        sim::obey(*home_->fabric, sim::parse_fault(card, what));
    } catch (const std::invalid_argument& wrong) {
        return fail(SPANKER_ERR_INVALID, wrong.what());
    }
    const std::lock_guard hold(home_->lock);
    home_->cards[card]->check_presence();
    return {};
}

// Probes every card, then lets ports train and memory be zeroed.
result<void> start(machine& home, const sim::fabric_config& config)
{
    spk_group_init(&home.channels);
    home.fabric = std::make_unique<sim::fabric>(config, home.bus);
    {
        const std::lock_guard hold(home.lock);
        for (unsigned card = 0; card < config.cards.size(); card++) {
            home.cards.push_back(std::make_unique<driven_card>(home, card));
            if (auto probed = home.cards.back()->probe(); !probed)
                return probed;
        }
    }
    while (!home.advance() && !home.event_is_later())
        ;
    return {};
}

}  // namespace

result<std::unique_ptr<backend>> make_embedded_backend(const embedded_options& options)
{
    return make_embedded_backend(options, {});
}

result<std::unique_ptr<backend>> make_embedded_backend(const embedded_options& options,
                                                       sim::card_config pattern)
{
    pattern.ddr_bytes = memory_per_card(options);
    auto home = std::make_shared<machine>();
    home->real_pace = options.real_pace;
    home->default_deadline_ns = options.default_deadline_ns;
    home->hang_ns = options.hang_ns;
    try {
        auto config = sim::make_fabric_config(options.cards, options.topology, pattern);
        config.speed = options.real_pace ? sim::pace::real : sim::pace::fast;
        if (auto started = start(*home, config); !started)
            return tl::unexpected(started.error());
    } catch (const std::invalid_argument& problem) {
        return fail(SPANKER_ERR_INVALID, std::string("embedded cards: ") + problem.what());
    } catch (const std::exception& problem) {
        return fail(SPANKER_ERR_NO_MEMORY, std::string("embedded cards: ") + problem.what());
    }
    return std::make_unique<embedded_backend>(std::move(home));
}

}  // namespace spanker::daemon
