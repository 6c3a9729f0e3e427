// SPDX-License-Identifier: Apache-2.0
//
// Cards that do what a test wants: answer late or never, come and go, flap their links, fail a reset. They compute
// nothing; what is submitted ends well at once. Everything but the start is asked for by inject(), so a test drives it over
// D-Bus like a simulator's faults:
//
//   link_down port=P    the cable at that port goes down at both ends     link_up port=P
//   flap port=P count=N the cable goes down and up N times
//   hang                questions to the card never return               clear hang
//   remove              the card is unplugged                            add card=N
//   no_return           the next reset never ends well: the card is dead
//   slow_reset          a reset stays in `resetting` until finish_reset
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/backend.hpp"

namespace spanker::daemon::fake {

struct fake_options {
    unsigned cards = 4;
    unsigned ports = 2;  // even: port 2j of a card leads to port 2j+1 of the next
    int slow_card = -1;  // this one answers its first question only when the process ends
};

// "cards=4 ports=2 slow=1"
fake_options parse_fake(const std::string& text);

class fake_backend final : public backend {
public:
    explicit fake_backend(const fake_options& wanted);
    ~fake_backend() override;

    std::string name() const override { return "embedded"; }
    std::vector<std::uint32_t> cards() override;
    result<spanker_get_info> info(std::uint32_t card) override;
    result<std::vector<port_info>> ports(std::uint32_t card) override;
    result<telemetry> read_telemetry(std::uint32_t card) override;
    result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t depth) override;
    result<std::unique_ptr<channel_group>>
    group_create(std::span<const group_member> members) override;
    result<void> link_train(std::uint32_t card, std::uint32_t port_mask, bool retrain) override;
    result<void> link_set_admin(std::uint32_t card, std::uint32_t port, bool enable) override;
    result<void> card_reset(std::uint32_t card, std::uint32_t mode) override;
    int event_fd() const override { return events_fd_.get(); }
    std::vector<event> take_events() override;
    bool drive() override { return false; }
    std::optional<std::uint64_t> next_work_ns() const override { return std::nullopt; }
    result<std::vector<trace_record>> trace(std::uint32_t card, std::size_t last) override;
    result<void> inject(std::uint32_t card, const std::string& what) override;

private:
    struct fake_card {
        std::uint32_t state = SPANKER_CARD_READY;
        std::uint32_t generation = 1;
        bool hangs = false, no_return = false, slow_reset = false;
        std::vector<bool> down;  // per port
    };
    using number = std::uint32_t;

    number after(number card) const { return (card + 1) % cards_total_; }
    number before(number card) const { return (card + cards_total_ - 1) % cards_total_; }
    void tell(const event& what);
    void set_link(number card, number port, bool down);
    result<void> act(number card, const std::string& verb, number port, number count);
    // Waits while the card hangs; nullptr: no such card.
    fake_card* answering(std::unique_lock<std::mutex>& guard, number card);

    const number cards_total_, ports_;
    unique_fd events_fd_;
    mutable std::mutex lock_;  // of all below
    std::condition_variable woken_;
    bool ending_ = false;
    std::map<number, fake_card> all_;
    std::vector<event> events_;
};

}  // namespace spanker::daemon::fake
