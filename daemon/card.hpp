// SPDX-License-Identifier: Apache-2.0
//
// The cards as the daemon last saw them. A card is asked only on its own
// strand; the loop works with the last answer, so a card that hangs costs
// nobody but itself:
//
//   added --> probing --answer--> ready, resetting, suspended, failed, lost (as it says)
//                |                    |
//                +---- no answer for the patience ----> failed "has not answered"
//                                     ^ the next answer brings it back
//
// Owned by the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/loop.hpp"
#include "daemon/topology.hpp"
#include "daemon/workers.hpp"

namespace spanker::daemon {

struct card {
    std::uint32_t index = 0;
    bool probed = false;  // info and ports are an answer of the card
    spanker_get_info info{};
    std::vector<port_info> ports;
    std::uint32_t state = SPANKER_CARD_PROBING;
    std::string reason;  // empty when there is nothing to say

    // How it is asked; nobody else's business.
    std::shared_ptr<strand> line;
    bool asking = false, ask_again = false;
    event_source patience;
};

class cards final {
public:
    struct patience {
        std::uint64_t probe_us = 90'000'000;  // for the first answer
        std::uint64_t look_us = 5'000'000;    // for what the daemon asks itself
        std::uint64_t call_us = 2'000'000;    // for what a client waits for
    };
    struct handlers {
        std::function<void(const card&)> added;
        std::function<void(const card&)> first_answer;  // its constant facts are known now
        std::function<void(const card&)> changed;
        std::function<void(std::uint32_t index)> removed;  // already forgotten
        std::function<void()> topology_changed;
        std::function<void(std::uint32_t index, std::uint32_t state)> state_event;
    };

    cards(loop& home, workers& pool, handlers watch, patience limits);

    // Once: takes the cards there are and follows the backend's events.
    void attach(std::shared_ptr<backend> source);
    bool attached() const { return backend_ != nullptr; }
    void set_patience(patience limits) { limits_ = limits; }  // for what is asked from now on

    const std::map<std::uint32_t, std::unique_ptr<card>>& all() const { return all_; }
    const card* find(std::uint32_t index) const;
    std::shared_ptr<const topology_snapshot> topology() const { return topology_.snapshot(); }
    // Every card has answered once or was given up.
    bool settled() const;
    // Some port with a partner has not finished training.
    bool training() const;

    // Asks a card something on its strand. done runs on the loop, exactly once: with the answer, NO_OBJECT, or
    // CARD_FAILED when it does not answer in time. While it has not answered another question for that long it is not
    // asked at all, so that questions do not pile up behind a card that hangs.
    template <typename T>
    void ask(std::uint32_t index, std::function<result<T>(backend&)> question,
             std::function<void(result<T>)> done)
    {
        card* who = find_mutable(index);
        if (!who)
            return done(tl::unexpected(no_such_card(index)));
        if (const std::uint64_t busy_us = who->line->busy_ns() / 1000; busy_us > limits_.call_us)
            return done(tl::unexpected(no_answer(index, busy_us)));
        ask_on<T>(who->line, index, limits_.call_us, std::move(question), std::move(done));
    }

    // The same beside the strand, for what must reach a card that hangs: its reset.
    template <typename T>
    void ask_beside(std::uint32_t index, std::uint64_t limit_us,
                    std::function<result<T>(backend&)> question,
                    std::function<void(result<T>)> done)
    {
        if (!find(index))
            return done(tl::unexpected(no_such_card(index)));
        ask_on<T>(strand::make(pool_), index, limit_us, std::move(question), std::move(done));
    }

    // Looks at the card again; changes are told by the handlers.
    void refresh(std::uint32_t index);

private:
    struct report {
        result<spanker_get_info> info;
        std::vector<port_info> ports;
    };

    template <typename T>
    void ask_on(std::shared_ptr<strand> line, std::uint32_t index, std::uint64_t limit_us,
                std::function<result<T>(backend&)> question, std::function<void(result<T>)> done)
    {
        auto once = std::make_shared<std::function<void(result<T>)>>(std::move(done));
        auto timer = std::make_shared<event_source>();
        *timer = home_.after(limit_us, [index, limit_us, once, timer] {
            if (auto late = std::exchange(*once, nullptr))
                late(tl::unexpected(no_answer(index, limit_us)));
            timer->reset();
        });
        daemon::ask<result<T>>(
            *line, home_, [source = backend_, question] { return question(*source); },
            [once, timer](result<T> answer) {
                timer->reset();
                if (auto in_time = std::exchange(*once, nullptr))
                    in_time(std::move(answer));
            });
    }

    card* find_mutable(std::uint32_t index);
    void add(std::uint32_t index);
    void remove(std::uint32_t index);
    void refresh(card& who);
    void take(std::uint32_t index, report answer);
    void give_up(card& who, std::uint64_t waited_us);
    void take_events();
    void publish(const card& who);
    void show(const card& who);
    static error no_such_card(std::uint32_t index);
    static error no_answer(std::uint32_t index, std::uint64_t waited_us);

    loop& home_;
    workers& pool_;
    handlers handlers_;
    patience limits_;
    std::shared_ptr<backend> backend_;
    event_source events_;
    std::map<std::uint32_t, std::unique_ptr<card>> all_;
    daemon::topology topology_;
};

}  // namespace spanker::daemon
