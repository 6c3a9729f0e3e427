// SPDX-License-Identifier: Apache-2.0
//
// The cards as the data plane holds them: on each two queues (one for requests,
// one for link and collective work), their signals and scratch memory, and one
// channel group over all ports that are up.
//
// Card life, the only setter is set_state():
//
//      open ok          RESETTING/DEAD/GONE, or a verb answers so
//   ABSENT ----> READY ----------------------------------------> LOST
//                  ^                       opened again            |
//                  +-----------------------------------------------+
//
// Each opening gives the card a new epoch: handles of an older one are stale.
// Plane thread only; the files themselves may be used by workers.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/collective/graph.hpp"
#include "daemon/data/signal_pool.hpp"
#include "daemon/topology.hpp"

namespace spanker::daemon::data {

enum queue_role : std::uint8_t { queue_requests = 0, queue_links = 1, queue_roles = 2 };

// Card memory for plans that need some while they run; kept for the next one
// until memory is short.
class scratch_pool final {
public:
    result<std::uint32_t> take(card_file& file, std::uint64_t bytes);
    void give_back(std::uint32_t handle, std::uint64_t bytes);
    // Frees what nobody uses; false if there was nothing.
    bool trim(card_file& file);
    std::uint64_t held_bytes() const { return held_bytes_; }

private:
    struct piece {
        std::uint64_t bytes;
        std::uint32_t handle;
    };
    static std::uint64_t size_class(std::uint64_t bytes);

    std::vector<piece> free_;
    std::uint64_t held_bytes_ = 0;
};

struct card_queue {
    std::shared_ptr<card_file> file;
    std::uint32_t depth = 0;
    std::uint32_t items = 0;  // submitted and not ended
    std::uint32_t batches = 0;
    signal_pool signals;
    scratch_pool scratch;

    std::uint32_t room() const { return depth > items ? depth - 1 - items : 0; }  // 0: closed
};

enum class card_life : std::uint8_t { absent, ready, lost };

struct plane_card {
    std::uint32_t number = 0;
    std::uint32_t index = 0;  // slot in the set, below SPK_MAX_CARDS
    std::uint32_t epoch = 0;  // 0: never opened
    card_life life = card_life::absent;
    bool gone = false;    // lost for good (DEAD, GONE), else by a reset
    bool reopen = false;  // ready again as far as we know
    std::uint64_t memory_bytes = 0;
    collective::card_costs costs;
    card_queue queue[queue_roles];

    bool ready() const { return life == card_life::ready; }
};

class card_set final {
public:
    struct hooks {
        // Files that polling should watch, or no longer.
        std::function<void(card_file&)> opened;
        std::function<void(card_file&)> closing;
        // Destroys a file where waiting for the card hurts nobody.
        std::function<void(std::shared_ptr<card_file>)> destroy;
        std::function<void(std::string)> warn;
    };

    card_set(backend& source, hooks h) : backend_(source), hooks_(std::move(h)) {}

    void set_topology(const topology_snapshot& snapshot);
    // The caller ends the flights of a card that is lost, before it opens again.
    void lose(plane_card& card, bool gone);
    void set_ready(std::uint32_t number);
    // Opens cards that are new or back and idle; true if any.
    bool open_ready();
    void close_all();

    plane_card* find(std::uint32_t number);
    plane_card& at(std::uint32_t index) { return *cards_[index]; }
    std::span<const std::unique_ptr<plane_card>> all() const { return cards_; }

    const collective::graph& graph() const { return graph_; }

    // The group for LINK_* and GANG items; made when first needed, or made anew
    // when ports came or went (nothing of the old one may be in flight).
    result<std::uint32_t> link_group();
    bool link_group_stale() const { return !group_ || group_stale_; }
    bool links_idle() const;  // nothing is on any link queue
    std::uint32_t link_channels() const { return channels_; }

    // The error a lost card gives to whoever named it.
    static error lost_error(const plane_card& card);

private:
    result<void> open(plane_card& card);
    void set_state(plane_card& card, card_life life);
    void rebuild_graph();

    backend& backend_;
    const hooks hooks_;
    std::vector<std::unique_ptr<plane_card>> cards_;
    topology_snapshot topology_;
    collective::graph graph_;
    std::uint64_t graph_changes_ = 0;
    std::uint32_t next_epoch_ = 1;
    std::unique_ptr<channel_group> group_;
    bool group_stale_ = true;
    std::uint32_t channels_ = 0;
};

}  // namespace spanker::daemon::data
