// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/predict.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "timing/world.hpp"

namespace spanker::daemon::collective {

namespace {

constexpr unsigned queue = 1;

timing::card_costs timing_costs(const card_costs& from)
{
    timing::card_costs made;
    made.ddr_bytes_per_s = from.ddr_bytes_per_s;
    made.link_bytes_per_s = from.link_bytes_per_s;
    made.host_bytes_per_s = from.host_bytes_per_s;
    made.macs_per_s = from.macs_per_s;
    made.hop_ns = from.hop_ns;
    made.issue_ns = from.issue_ns;
    made.ports = std::min<std::uint32_t>(from.ports, SPK_MAX_PORTS);
    made.channels = std::min<std::uint32_t>(from.channels, SPK_MAX_CHANNELS);
    made.rx_buffer_bytes = from.rx_buffer_bytes;
    return made;
}

unsigned lanes_of(std::uint64_t bytes_per_s, std::uint64_t full_width)
{
    const std::uint64_t lanes = (bytes_per_s * SPK_MAX_LANES + full_width / 2) / full_width;
    return static_cast<unsigned>(std::clamp<std::uint64_t>(lanes, 1, SPK_MAX_LANES));
}

// A cable runs at the speed of its slower end.
std::uint64_t full_width(const cabling& from, std::uint32_t a, std::uint32_t b)
{
    return std::min(from.costs(a).link_bytes_per_s, from.costs(b).link_bytes_per_s);
}

std::vector<timing::cable> timing_cables(const cabling& from)
{
    std::vector<timing::cable> made;
    for (std::uint32_t a = 0; a < from.size(); ++a)
        for (const cable_end& end : from.ends(a))
            if (a < end.to_rank)
                made.push_back({a, end.port, end.to_rank, end.to_port,
                                lanes_of(end.bytes_per_s, full_width(from, a, end.to_rank))});
    return made;
}

// The card command of an item, without addresses: they cost nothing.
spk_cmd wire_form(const spanker_work_item& item)
{
    spk_cmd made{};
    made.opcode = item.opcode;
    made.dtype = item.dtype;
    made.reduce = item.reduce;
    made.wait_signal = item.wait_signal;
    made.wait_value = item.wait_value;
    made.post_signal = item.post_signal;
    switch (item.opcode) {
    case SPK_OP_FILL:
        made.fill.bytes = item.fill.bytes;
        break;
    case SPK_OP_COPY:
        made.copy.rows = item.rows.rows;
        made.copy.row_bytes = item.rows.row_bytes;
        break;
    case SPK_OP_DMA_IN:
    case SPK_OP_DMA_OUT:
        made.dma.rows = item.rows.rows;
        made.dma.row_bytes = item.rows.row_bytes;
        break;
    case SPK_OP_MATMUL_Q4_K:
        made.matmul.n_out = item.matmul.n_out;
        made.matmul.k = item.matmul.k;
        made.matmul.n_tok = item.matmul.n_tok;
        made.matmul.x_format = static_cast<std::uint8_t>(item.matmul.x_format);
        made.matmul.mode = static_cast<std::uint8_t>(item.matmul.mode);
        break;
    case SPK_OP_GANG:
        made.gang.id = item.gang.id;
        made.gang.members = item.gang.members;
        made.gang.section = item.gang.section;
        break;
    default:
        if (timing::is_link(item.opcode)) {
            made.link.rows = item.link.rows;
            made.link.row_bytes = item.link.row_bytes;
            made.link.rx_tag = item.link.rx_tag;
            made.link.tx_tag = item.link.tx_tag;
            made.link.rx_channel = item.link.rx_channel;
            made.link.tx_channel = item.link.tx_channel;
            made.rx_ports = item.link.rx_ports;
            made.tx_ports = item.link.tx_ports;
        }
        break;
    }
    return made;
}

struct extent {
    timing::time_ps first = timing::never, last = 0;

    void take(timing::time_ps start, timing::time_ps end)
    {
        first = std::min(first, start);
        last = std::max(last, end);
    }
    std::uint64_t ns() const
    {
        return last <= first ? 0 : static_cast<std::uint64_t>((last - first) / timing::ps_per_ns);
    }
};

class recorder final : public timing::observer {
public:
    explicit recorder(std::size_t stages) : stages_(stages) {}

    void completed(const timing::ended& how) override
    {
        ++ended_;
        if (how.status != SPANKER_CARD_OK && failed_.empty())
            failed_ = fmt::format("rank {}: opcode {} ended with status {} detail {:#x}", how.card,
                                  how.cmd.opcode, how.status, how.detail);
        all_.take(how.start_ps, how.end_ps);
        stages_[how.cmd.cookie].take(how.start_ps, how.end_ps);
    }

    std::uint64_t ended() const { return ended_; }
    const std::string& failed() const { return failed_; }
    prediction made() const
    {
        prediction out{all_.ns(), {}};
        for (const extent& one : stages_)
            out.stage_ns.push_back(one.ns());
        return out;
    }

private:
    std::uint64_t ended_ = 0;
    std::string failed_;
    extent all_;
    std::vector<extent> stages_;
};

// Follows the relocation rules of plan.hpp with all bases zero.
class submitter {
public:
    submitter(timing::world& to, const plan& what) : to_(to), what_(what)
    {
        posted_.resize(what.cards.size() * std::max(1u, what.signals), 0);
    }

    std::uint64_t submitted() const { return submitted_; }

    void submit(const segment& part)
    {
        const block& of = what_.blocks[part.block];
        for (std::uint32_t r = 0; r < what_.cards.size(); ++r) {
            const item_range& range = of.of_rank[r];
            for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
                to_.submit(r, queue, relocated(r, i));
            submitted_ += range.count;
        }
        for (std::size_t i = 0; i < of.posts.size(); ++i)
            posted_[i] += of.posts[i];
        tags_ += of.tags;
        gangs_ += of.gangs;
    }

private:
    timing::command relocated(std::uint32_t rank, std::uint32_t index) const
    {
        spk_cmd wire = wire_form(what_.cards[rank].items[index]);
        if (wire.wait_signal != SPK_NO_SIGNAL)
            wire.wait_value += posted_[rank * what_.signals + wire.wait_signal];
        if (wire.opcode == SPK_OP_GANG)
            wire.gang.id += gangs_;
        if (timing::is_link(wire.opcode)) {
            wire.link.rx_tag += tags_;
            wire.link.tx_tag += tags_;
        }
        timing::command made = timing::describe(wire);
        made.cookie = what_.cards[rank].stage[index];
        return made;
    }

    timing::world& to_;
    const plan& what_;
    std::vector<std::uint32_t> posted_;
    std::uint32_t tags_ = 0, gangs_ = 0;
    std::uint64_t submitted_ = 0;
};

}  // namespace

result<prediction> simulate(const cabling& cables, const plan& what)
{
    std::vector<timing::card_costs> costs;
    costs.reserve(cables.size());
    for (std::uint32_t r = 0; r < cables.size(); ++r)
        costs.push_back(timing_costs(cables.costs(r)));
    recorder seen(what.stages.size());
    try {
        timing::world world(costs, timing_cables(cables), &seen);
        for (std::uint32_t r = 0; r < cables.size(); ++r)
            world.queue_create(r, queue);
        submitter feed(world, what);
        for (const segment& part : what.segments) {
            if (part.barrier)
                world.run();
            feed.submit(part);
        }
        world.run();
        if (seen.failed().empty() && seen.ended() == feed.submitted())
            return seen.made();
        return fail(SPANKER_ERR_CARD_FAILED,
                    seen.failed().empty()
                        ? fmt::format("the plan stops with {} of {} commands done", seen.ended(),
                                      feed.submitted())
                        : seen.failed());
    } catch (const std::invalid_argument& why) {
        return fail(SPANKER_ERR_INVALID, why.what());
    }
}

}  // namespace spanker::daemon::collective
