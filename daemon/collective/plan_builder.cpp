// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/plan_builder.hpp"

#include <algorithm>

namespace spanker::daemon::collective {

namespace {

constexpr std::uint64_t most_dma_bytes = 1u << 30;  // of one item; its field has 32 bits

void name(spanker_operand& operand, spot where, std::uint64_t pitch)
{
    operand.handle = where.handle;
    operand.offset = where.offset;
    operand.pitch = static_cast<std::uint32_t>(pitch);
}

}  // namespace

plan_builder::plan_builder(std::span<const std::uint32_t> cards, std::uint32_t objects,
                           std::uint32_t stages, std::uint32_t limit)
    : limit_(limit)
{
    for (const std::uint32_t card : cards)
        made_.cards.push_back({card, {}, {}});
    made_.objects = objects;
    made_.stages.resize(stages);
    numbers_.fill(-1);
}

// ---- structure ----

void plan_builder::begin_stage(std::uint32_t index)
{
    stage_ = static_cast<std::uint16_t>(index);
    for (std::uint32_t r = 0; r < ranks(); ++r)
        before_[r] = posted_[r][static_cast<std::size_t>(signal::done)];
}

bool plan_builder::stage_waits() const
{
    return std::any_of(before_.begin(), before_.end(), [](std::uint32_t n) { return n != 0; });
}

std::uint32_t plan_builder::scratch(const extents& bytes)
{
    made_.scratch.push_back({bytes});
    return made_.objects + static_cast<std::uint32_t>(made_.scratch.size());
}

std::uint32_t plan_builder::in_block(std::uint32_t rank) const
{
    const auto items = static_cast<std::uint32_t>(made_.cards[rank].items.size());
    return items - made_.blocks.back().of_rank[rank].first;
}

void plan_builder::reserve(const rank_counts& items)
{
    if (!open_)
        return;
    for (std::uint32_t r = 0; r < ranks(); ++r)
        if (in_block(r) + items[r] > limit_) {
            close_block();
            return;
        }
}

void plan_builder::open_block()
{
    block made;
    for (std::uint32_t r = 0; r < ranks(); ++r)
        made.of_rank[r].first = static_cast<std::uint32_t>(made_.cards[r].items.size());
    made_.blocks.push_back(std::move(made));
    made_.segments.push_back(
        {static_cast<std::uint32_t>(made_.blocks.size() - 1), 0, std::exchange(barrier_, false)});
    base_ = posted_;
    tags_ = {};
    open_ = true;
}

void plan_builder::close_block()
{
    if (!open_)
        return;
    for (std::uint32_t r = 0; r < ranks(); ++r)
        made_.blocks.back().of_rank[r].count = in_block(r);
    open_ = false;
}

void plan_builder::fresh_block() { close_block(); }

void plan_builder::barrier()
{
    close_block();
    barrier_ = !made_.segments.empty();
}

void plan_builder::repeat(std::uint64_t times, std::uint64_t shift_bytes)
{
    close_block();
    const auto last = static_cast<std::uint32_t>(made_.blocks.size() - 1);
    for (std::uint64_t i = 1; i < times; ++i)
        made_.segments.push_back({last, i * shift_bytes, false});
    for (std::uint32_t r = 0; r < ranks(); ++r)
        for (std::size_t s = 0; s < signal_kinds; ++s)
            posted_[r][s] += static_cast<std::uint32_t>(times - 1) * (posted_[r][s] - base_[r][s]);
}

// ---- items ----

std::uint32_t plan_builder::add(std::uint32_t rank, spk_opcode opcode)
{
    if (open_ && in_block(rank) >= limit_)
        close_block();
    if (!open_)
        open_block();
    card_plan& card = made_.cards[rank];
    spanker_work_item& fresh = card.items.emplace_back();
    fresh.opcode = static_cast<std::uint8_t>(opcode);
    fresh.wait_signal = SPK_NO_SIGNAL;
    fresh.post_signal = SPK_NO_SIGNAL;
    card.stage.push_back(stage_);
    return static_cast<std::uint32_t>(card.items.size() - 1);
}

std::uint16_t plan_builder::number(signal which)
{
    int& known = numbers_[static_cast<std::size_t>(which)];
    if (known < 0)
        known = static_cast<int>(made_.signals++);
    return static_cast<std::uint16_t>(known);
}

void plan_builder::start(std::uint32_t rank, std::uint32_t index)
{
    if (before_[rank] == 0)
        return;
    item(rank, index).wait_signal = number(signal::done);
    item(rank, index).wait_value = before_[rank] - base_[rank][0];
}

void plan_builder::wait(std::uint32_t rank, std::uint32_t index, signal which)
{
    const auto kind = static_cast<std::size_t>(which);
    item(rank, index).wait_signal = number(which);
    item(rank, index).wait_value = posted_[rank][kind] - base_[rank][kind];
}

void plan_builder::post(std::uint32_t rank, std::uint32_t index, signal which)
{
    item(rank, index).post_signal = number(which);
    ++posted_[rank][static_cast<std::size_t>(which)];
}

void plan_builder::begin_section()
{
    for (std::uint32_t r = 0; r < ranks(); ++r) {
        gang_[r] = add(r, SPK_OP_GANG);
        item(r, gang_[r]).group = 1;
        item(r, gang_[r]).gang.members = ranks();
    }
    for (std::uint32_t r = 0; r < ranks(); ++r)
        item(r, gang_[r]).gang.id = made_.blocks.back().gangs;
    ++made_.blocks.back().gangs;
}

void plan_builder::end_section()
{
    for (std::uint32_t r = 0; r < ranks(); ++r)
        item(r, gang_[r]).gang.section =
            static_cast<std::uint32_t>(made_.cards[r].items.size()) - gang_[r] - 1;
}

std::uint32_t plan_builder::tag(std::uint32_t rank, std::uint32_t port, std::uint32_t channel)
{
    const std::uint32_t next = tags_[rank][port][channel]++;
    made_.blocks.back().tags = std::max(made_.blocks.back().tags, next + 1);
    return next;
}

void plan_builder::use_channel(std::uint32_t rank, std::uint32_t port, std::uint32_t channel)
{
    ports_[rank][channel] |= 1u << port;
    made_.channels = std::max(made_.channels, channel + 1);
}

std::uint32_t plan_builder::copy(std::uint32_t rank, spot to, spot from, std::uint64_t bytes)
{
    const std::uint32_t index = add(rank, SPK_OP_COPY);
    name(item(rank, index).dst, to, 0);
    name(item(rank, index).src, from, 0);
    item(rank, index).rows.rows = 1;
    item(rank, index).rows.row_bytes = static_cast<std::uint32_t>(bytes);
    return index;
}

item_range plan_builder::dma(std::uint32_t rank, spk_opcode opcode, spot card, spot host,
                             std::uint64_t bytes)
{
    const auto first = static_cast<std::uint32_t>(made_.cards[rank].items.size());
    std::uint32_t count = 0;
    for (std::uint64_t at = 0; at < bytes; at += most_dma_bytes, ++count)
        dma_item(rank, opcode, card.at(at), 0, host.at(at), 0, 1,
                 std::min(most_dma_bytes, bytes - at));
    return {first, count};
}

item_range plan_builder::dma_rows(std::uint32_t rank, spk_opcode opcode, spot card,
                                  std::uint64_t card_pitch, spot host, std::uint64_t host_pitch,
                                  std::uint64_t rows, std::uint64_t row_bytes)
{
    if (rows <= 1 || row_bytes == 0 || (card_pitch == row_bytes && host_pitch == row_bytes))
        return dma(rank, opcode, card, host, rows * row_bytes);
    const auto first = static_cast<std::uint32_t>(made_.cards[rank].items.size());
    dma_item(rank, opcode, card, card_pitch, host, host_pitch, rows, row_bytes);
    return {first, 1};
}

void plan_builder::dma_item(std::uint32_t rank, spk_opcode opcode, spot card,
                            std::uint64_t card_pitch, spot host, std::uint64_t host_pitch,
                            std::uint64_t rows, std::uint64_t row_bytes)
{
    spanker_work_item& made = item(rank, add(rank, opcode));
    const bool in = opcode == SPK_OP_DMA_IN;
    name(in ? made.dst : made.src, card, card_pitch);
    name(in ? made.src : made.dst, host, host_pitch);
    made.rows.rows = static_cast<std::uint32_t>(rows);
    made.rows.row_bytes = static_cast<std::uint32_t>(row_bytes);
}

plan plan_builder::finish()
{
    close_block();
    for (block& each : made_.blocks) {
        each.posts.assign(std::size_t{ranks()} * made_.signals, 0);
        for (std::uint32_t r = 0; r < ranks(); ++r)
            for (std::uint32_t i = 0; i < each.of_rank[r].count; ++i) {
                const std::uint16_t signal = item(r, each.of_rank[r].first + i).post_signal;
                if (signal != SPK_NO_SIGNAL)
                    ++each.posts[std::size_t{r} * made_.signals + signal];
            }
    }
    for (std::uint32_t channel = 0; channel < SPK_MAX_CHANNELS; ++channel)
        for (std::uint32_t r = 0; r < ranks(); ++r)
            if (ports_[r][channel] != 0)
                made_.channel_uses.push_back({r, ports_[r][channel], channel});
    return std::move(made_);
}

}  // namespace spanker::daemon::collective
