// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/fake_backend.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <sstream>

namespace spanker::daemon::fake {

namespace {

constexpr std::uint64_t serial_base = 0x5a110000;

tl::unexpected<error> no_card(std::uint32_t card)
{
    return fail(SPANKER_ERR_CARD_LOST, fmt::format("card {} is gone", card));
}

// Whatever is submitted is done.
class fake_file final : public card_file {
public:
    explicit fake_file(const spanker_get_info& info)
        : info_(info), fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    {}

    result<spanker_get_info> info() override { return info_; }
    result<std::uint32_t> tensor_alloc(std::uint64_t) override { return ++last_handle_; }
    result<void> tensor_free(std::uint32_t) override { return {}; }
    result<unique_fd> tensor_export(std::uint32_t) override
    {
        return unique_fd(eventfd(0, EFD_CLOEXEC));
    }
    result<std::uint32_t> tensor_import(int) override { return ++last_handle_; }
    result<std::uint32_t> buffer_register(const buffer_spec&) override { return ++last_handle_; }
    result<void> buffer_unregister(std::uint32_t) override { return {}; }

    result<std::uint64_t> submit(std::span<const spanker_work_item>, std::uint64_t cookie) override
    {
        std::lock_guard guard(lock_);
        records_.push_back({.seq = ++seq_, .cookie = cookie, .item = SPANKER_NO_ITEM});
        eventfd_write(fd_.get(), 1);
        return seq_;
    }

    std::size_t poll(std::span<spanker_record> records) override
    {
        std::lock_guard guard(lock_);
        eventfd_t count;
        eventfd_read(fd_.get(), &count);
        std::size_t n = 0;
        for (; n < records.size() && !records_.empty(); n++) {
            records[n] = records_.front();
            records_.pop_front();
        }
        if (!records_.empty())
            eventfd_write(fd_.get(), 1);
        return n;
    }

    result<void> cancel(std::uint64_t) override { return {}; }
    result<void> cancel_all() override { return {}; }
    int fd() const override { return fd_.get(); }
    std::uint32_t depth() const override { return info_.out_queue_depth; }

private:
    const spanker_get_info info_;
    const unique_fd fd_;
    std::mutex lock_;  // of all below
    std::deque<spanker_record> records_;
    std::uint64_t seq_ = 0;
    std::uint32_t last_handle_ = 0;
};

class fake_group final : public channel_group {
public:
    std::uint32_t id() const override { return 1; }
};

}  // namespace

fake_options parse_fake(const std::string& text)
{
    fake_options wanted;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        const int value = std::stoi(word.substr(equals + 1));
        if (word.substr(0, equals) == "cards")
            wanted.cards = static_cast<unsigned>(value);
        else if (word.substr(0, equals) == "ports")
            wanted.ports = static_cast<unsigned>(value);
        else if (word.substr(0, equals) == "slow")
            wanted.slow_card = value;
    }
    return wanted;
}

fake_backend::fake_backend(const fake_options& wanted)
    : cards_total_(wanted.cards), ports_(wanted.ports),
      events_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    for (number card = 0; card < cards_total_; card++) {
        all_[card].down.resize(ports_);
        all_[card].hangs = static_cast<int>(card) == wanted.slow_card;
    }
}

fake_backend::~fake_backend()
{
    std::lock_guard guard(lock_);
    ending_ = true;
    woken_.notify_all();
}

std::vector<std::uint32_t> fake_backend::cards()
{
    std::lock_guard guard(lock_);
    std::vector<std::uint32_t> numbers;
    for (const auto& [card, state] : all_)
        numbers.push_back(card);
    return numbers;
}

fake_backend::fake_card* fake_backend::answering(std::unique_lock<std::mutex>& guard, number card)
{
    woken_.wait(guard, [&] {
        auto found = all_.find(card);
        return ending_ || found == all_.end() || !found->second.hangs;
    });
    auto found = all_.find(card);
    return found == all_.end() ? nullptr : &found->second;
}

result<spanker_get_info> fake_backend::info(std::uint32_t card)
{
    std::unique_lock guard(lock_);
    const fake_card* which = answering(guard, card);
    if (!which)
        return no_card(card);
    spanker_get_info info{};
    info.size = sizeof info;
    info.out_serial = serial_base + card;
    info.out_number = card;
    info.out_gateware = 0x01020003;
    info.out_card_abi = SPK_ABI_MAJOR << 16;
    info.out_state = which->state;
    info.out_reset_generation = which->generation;
    info.out_features = SPK_FEATURE_SIMULATED | SPK_FEATURE_CUT_THROUGH | SPK_FEATURE_GANG;
    info.out_queues = 16;
    info.out_queue_depth = 256;
    info.out_ports = ports_;
    info.out_lanes = 4;
    info.out_channels = 8;
    info.out_rx_buffer_bytes = 16384;
    info.out_hop_ns = 1000;
    info.out_issue_ns = 500;
    info.out_memory_bytes = info.out_memory_free_bytes = 1u << 30;
    info.out_ddr_bytes_per_s = 2'000'000'000;
    info.out_link_bytes_per_s = 500'000'000;
    info.out_host_bytes_per_s = 400'000'000;
    info.out_macs_per_s = 16'000'000'000;
    fmt::format_to_n(info.out_bus_id, sizeof info.out_bus_id - 1, "embedded:{}", card);
    return info;
}

result<std::vector<port_info>> fake_backend::ports(std::uint32_t card)
{
    std::unique_lock guard(lock_);
    const fake_card* which = answering(guard, card);
    if (!which)
        return no_card(card);
    std::vector<port_info> ports(ports_);
    for (number p = 0; p < ports_; p++) {
        const number partner = p % 2 ? before(card) : after(card);
        const bool up = !which->down[p] && partner != card && all_.contains(partner);
        port_info& port = ports[p];
        port.port = p;
        port.state = up ? SPK_PORT_UP : SPK_PORT_DOWN;
        port.reason = up ? SPK_REASON_NONE : SPK_REASON_NOT_CONNECTED;
        port.lanes = 4;
        port.width = up ? 4 : 0;
        port.partner_serial = up ? serial_base + partner : 0;
        port.partner_port = p ^ 1;
        for (unsigned lane = 0; lane < 4; lane++)
            port.lane[lane] = {up ? std::uint32_t{SPK_LANE_LOCKED} : SPK_LANE_OFF, 10 * p + lane};
        port.crc_errors = 100 + p;
        port.bytes_tx = 1000 * card + p;
    }
    return ports;
}

result<telemetry> fake_backend::read_telemetry(std::uint32_t card)
{
    std::unique_lock guard(lock_);
    if (!answering(guard, card))
        return no_card(card);
    return telemetry{.temperature_mc = 41500, .power_mw = 5200, .voltage_mv = {1100, 1350, 3300}};
}

result<std::unique_ptr<card_file>> fake_backend::open(std::uint32_t card, std::uint32_t)
{
    auto known = info(card);
    if (!known)
        return tl::unexpected(known.error());
    return std::make_unique<fake_file>(*known);
}

result<std::unique_ptr<channel_group>> fake_backend::group_create(std::span<const group_member>)
{
    return std::make_unique<fake_group>();
}

result<void> fake_backend::link_train(std::uint32_t, std::uint32_t, bool) { return {}; }
result<void> fake_backend::link_set_admin(std::uint32_t, std::uint32_t, bool) { return {}; }

// Reaches a card that hangs, as a reset must.
result<void> fake_backend::card_reset(std::uint32_t card, std::uint32_t)
{
    std::lock_guard guard(lock_);
    auto found = all_.find(card);
    if (found == all_.end())
        return no_card(card);
    fake_card& which = found->second;
    which.hangs = false;
    which.generation++;
    which.state = which.no_return    ? SPANKER_CARD_DEAD
                  : which.slow_reset ? SPANKER_CARD_RESETTING
                                     : SPANKER_CARD_READY;
    tell(event_card_state{card, SPANKER_CARD_RESETTING});
    if (which.state != SPANKER_CARD_RESETTING)
        tell(event_card_state{card, which.state});
    woken_.notify_all();
    return {};
}

void fake_backend::tell(const event& what)
{
    events_.push_back(what);
    eventfd_write(events_fd_.get(), 1);
}

std::vector<event> fake_backend::take_events()
{
    std::lock_guard guard(lock_);
    eventfd_t count;
    eventfd_read(events_fd_.get(), &count);
    return std::exchange(events_, {});
}

result<std::vector<trace_record>> fake_backend::trace(std::uint32_t, std::size_t last)
{
    std::vector<trace_record> all{
        {SPK_OP_DMA_IN, SPANKER_CARD_OK, 1, {1, 4096, 0}, 4096, 100, 200},
        {SPK_OP_MATMUL_Q4_K, SPANKER_CARD_LINK_DOWN, 2, {512, 256, 3}, 73728, 200, 900},
    };
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(std::min(last, all.size())));
    return all;
}

void fake_backend::set_link(number card, number port, bool down)
{
    const number partner = port % 2 ? before(card) : after(card);
    all_.at(card).down.at(port) = down;
    tell(event_link{card, port});
    if (auto other = all_.find(partner); other != all_.end()) {
        other->second.down.at(port ^ 1) = down;
        tell(event_link{partner, port ^ 1});
    }
}

result<void> fake_backend::act(number card, const std::string& verb, number port, number count)
{
    if (verb == "add") {
        all_[card] = {};
        all_[card].down.resize(ports_);
        tell(event_card_added{card});
        return {};
    }
    auto found = all_.find(card);
    if (found == all_.end())
        return no_card(card);
    fake_card& which = found->second;
    if (verb == "link_down" || verb == "link_up") {
        set_link(card, port, verb == "link_down");
    } else if (verb == "flap") {
        for (number i = 0; i < 2 * count; i++)
            set_link(card, port, i % 2 == 0);
    } else if (verb == "hang") {
        which.hangs = true;
        tell(event_card_state{card, which.state});
    } else if (verb == "clear_hang") {
        which.hangs = false;
    } else if (verb == "no_return") {
        which.no_return = true;
    } else if (verb == "slow_reset") {
        which.slow_reset = true;
    } else if (verb == "finish_reset") {
        which.state = SPANKER_CARD_READY;
        tell(event_card_state{card, which.state});
    } else if (verb == "remove") {
        all_.erase(found);
        tell(event_card_removed{card});
    } else {
        return fail(SPANKER_ERR_INVALID, fmt::format("'{}' is no fault of a fake card", verb));
    }
    woken_.notify_all();
    return {};
}

// "VERB [card=N] [port=P] [count=N]"; card= reaches beyond the object it is asked of.
result<void> fake_backend::inject(std::uint32_t card, const std::string& what)
{
    std::istringstream words(what);
    std::string verb;
    words >> verb;
    number port = 0, count = 1;
    for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        const auto value = static_cast<number>(std::stoul(word.substr(equals + 1)));
        const std::string key = word.substr(0, equals);
        (key == "card" ? card : key == "port" ? port : count) = value;
    }
    std::lock_guard guard(lock_);
    return act(card, verb, port, count);
}

}  // namespace spanker::daemon::fake
