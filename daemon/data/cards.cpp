// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/cards.hpp"

#include <algorithm>
#include <bit>

namespace spanker::daemon::data {

// ---- scratch ----

std::uint64_t scratch_pool::size_class(std::uint64_t bytes)
{
    return std::bit_ceil(std::max<std::uint64_t>(bytes, 4096));
}

result<std::uint32_t> scratch_pool::take(card_file& file, std::uint64_t bytes)
{
    const std::uint64_t size = size_class(bytes);
    const auto fits = [&](const piece& p) { return p.bytes == size; };
    if (auto found = std::find_if(free_.begin(), free_.end(), fits); found != free_.end()) {
        const std::uint32_t handle = found->handle;
        *found = free_.back();
        free_.pop_back();
        return handle;
    }
    auto made = file.tensor_alloc(size);
    if (made)
        held_bytes_ += size;
    return made;
}

void scratch_pool::give_back(std::uint32_t handle, std::uint64_t bytes)
{
    free_.push_back({size_class(bytes), handle});
}

bool scratch_pool::trim(card_file& file)
{
    const bool any = !free_.empty();
    for (const piece& p : free_) {
        held_bytes_ -= p.bytes;
        (void)file.tensor_free(p.handle);
    }
    free_.clear();
    return any;
}

// ---- cards ----

plane_card* card_set::find(std::uint32_t number)
{
    for (const auto& card : cards_)
        if (card->number == number)
            return card.get();
    return nullptr;
}

void card_set::set_state(plane_card& card, card_life life)
{
    card.life = life;
    card.reopen = false;
    group_stale_ = true;
    rebuild_graph();
}

void card_set::set_topology(const topology_snapshot& snapshot)
{
    topology_ = snapshot;
    group_stale_ = true;
    for (const topology_card& seen : snapshot.cards)
        if (seen.state == SPANKER_CARD_READY)
            set_ready(seen.index);
    open_ready();
    rebuild_graph();
}

void card_set::set_ready(std::uint32_t number)
{
    plane_card* card = find(number);
    if (!card && cards_.size() < SPK_MAX_CARDS) {
        cards_.push_back(std::make_unique<plane_card>());
        card = cards_.back().get();
        card->number = number;
        card->index = static_cast<std::uint32_t>(cards_.size() - 1);
    }
    if (card && !card->ready())
        card->reopen = true;
}

bool card_set::open_ready()
{
    bool any = false;
    for (const auto& card : cards_) {
        if (!card->reopen || card->ready())
            continue;
        card->reopen = false;
        if (auto opened = open(*card))
            any = true;
        else
            hooks_.warn("card " + std::to_string(card->number) +
                        " cannot be opened for requests: " + opened.error().message);
    }
    return any;
}

result<void> card_set::open(plane_card& card)
{
    auto info = backend_.info(card.number);
    if (!info)
        return tl::unexpected(info.error());
    std::shared_ptr<card_file> files[queue_roles];
    for (auto& file : files) {
        auto opened = backend_.open(card.number, 0);
        if (!opened)
            return tl::unexpected(opened.error());
        file = std::move(*opened);
    }
    std::uint32_t depth = SPK_MAX_QUEUE_DEPTH;
    for (unsigned role = 0; role < queue_roles; role++) {
        card_queue& queue = card.queue[role];
        queue = card_queue();
        queue.file = std::move(files[role]);
        queue.depth = queue.file->depth();
        depth = std::min(depth, queue.depth);
        hooks_.opened(*queue.file);
    }
    card.costs = {.queue_depth = depth,
                  .ports = info->out_ports,
                  .channels = info->out_channels,
                  .rx_buffer_bytes = info->out_rx_buffer_bytes,
                  .hop_ns = info->out_hop_ns,
                  .issue_ns = info->out_issue_ns,
                  .features = info->out_features,
                  .ddr_bytes_per_s = info->out_ddr_bytes_per_s,
                  .link_bytes_per_s = info->out_link_bytes_per_s,
                  .host_bytes_per_s = info->out_host_bytes_per_s,
                  .macs_per_s = info->out_macs_per_s};
    card.memory_bytes = info->out_memory_bytes;
    card.epoch = next_epoch_++;
    card.gone = false;
    set_state(card, card_life::ready);
    return {};
}

void card_set::lose(plane_card& card, bool gone)
{
    card.gone = card.gone || gone;
    if (!card.ready())
        return;
    for (card_queue& queue : card.queue) {
        hooks_.closing(*queue.file);
        hooks_.destroy(std::move(queue.file));
        queue = card_queue();
    }
    set_state(card, card_life::lost);
}

void card_set::close_all()
{
    group_.reset();
    for (const auto& card : cards_)
        for (card_queue& queue : card->queue) {
            if (queue.file)
                hooks_.closing(*queue.file);
            queue = card_queue();
        }
    cards_.clear();
}

// The generation counts what changes the graph here too: a card that was lost and opened again
// may have other costs under the same topology.
void card_set::rebuild_graph()
{
    graph_.generation = (topology_.generation << 20) + ++graph_changes_;
    graph_.cards.clear();
    graph_.links.clear();
    for (const auto& card : cards_)
        if (card->ready())
            graph_.cards.push_back({.number = card->number, .costs = card->costs});
    std::sort(graph_.cards.begin(), graph_.cards.end(),
              [](const auto& x, const auto& y) { return x.number < y.number; });
    for (const link_state& link : topology_.links)
        if (graph_.find(link.a.card) && graph_.find(link.b.card))
            graph_.links.push_back({.card_a = link.a.card,
                                    .port_a = link.a.port,
                                    .card_b = link.b.card,
                                    .port_b = link.b.port,
                                    .bytes_per_s = link.bytes_per_second,
                                    .up = link.state == SPK_PORT_UP});
}

bool card_set::links_idle() const
{
    return std::all_of(cards_.begin(), cards_.end(),
                       [](const auto& card) { return card->queue[queue_links].batches == 0; });
}

result<std::uint32_t> card_set::link_group()
{
    if (!link_group_stale())
        return group_->id();
    group_.reset();
    channels_ = SPK_MAX_CHANNELS;
    for (const auto& card : cards_)
        if (card->ready())
            channels_ = std::min(channels_, card->costs.channels);
    std::vector<group_member> members;
    for (const auto& card : cards_) {
        if (!card->ready())
            continue;
        std::uint32_t ports = 0;
        for (const auto& link : graph_.links) {
            if (link.up && link.card_a == card->number)
                ports |= 1u << link.port_a;
            if (link.up && link.card_b == card->number)
                ports |= 1u << link.port_b;
        }
        for (std::uint32_t channel = 0; ports != 0 && channel < channels_; channel++)
            members.push_back({card->queue[queue_links].file.get(), ports, channel});
    }
    if (members.empty())
        return fail(SPANKER_ERR_TOPOLOGY_MISMATCH, "no link between the cards is up");
    auto made = backend_.group_create(members);
    if (!made)
        return tl::unexpected(made.error());
    group_ = std::move(*made);
    group_stale_ = false;
    return group_->id();
}

error card_set::lost_error(const plane_card& card)
{
    const std::string name = "card " + std::to_string(card.number);
    if (card.gone)
        return {SPANKER_ERR_CARD_LOST, name + " is gone; the request may go to the cards left"};
    return {SPANKER_ERR_CARD_RESET,
            name + " was reset; what lay in its memory is lost, make it again"};
}

}  // namespace spanker::daemon::data
