// SPDX-License-Identifier: Apache-2.0
#include "planner_machine.hpp"

#include <algorithm>
#include <bit>

namespace spanker::daemon::collective {

namespace {

bool is_link(std::uint8_t opcode)
{
    return opcode >= SPK_OP_LINK_SEND && opcode <= SPK_OP_LINK_FORWARD;
}

std::vector<std::uint32_t> lanes_of(const spanker_work_item& item)
{
    switch (item.opcode) {
    case SPK_OP_DMA_IN:
        return {SPK_ENGINE_HOST_IN};
    case SPK_OP_DMA_OUT:
        return {SPK_ENGINE_HOST_OUT};
    case SPK_OP_MATMUL_Q4_K:
        return {SPK_ENGINE_COMPUTE};
    case SPK_OP_FILL:
    case SPK_OP_COPY:
        return {SPK_ENGINE_MEMORY};
    case SPK_OP_NOP:
    case SPK_OP_GANG:
        return {SPK_ENGINE_CONTROL};
    default:
        break;
    }
    std::vector<std::uint32_t> made;
    for (std::uint32_t p = 0; p < SPK_MAX_PORTS; ++p) {
        if (item.link.rx_ports >> p & 1)
            made.push_back(SPK_LANE_RX(p, std::uint32_t{item.link.rx_channel}));
        if (item.link.tx_ports >> p & 1)
            made.push_back(SPK_LANE_TX(p, std::uint32_t{item.link.tx_channel}));
    }
    return made;
}

std::uint32_t port_of(std::uint8_t mask)
{
    return static_cast<std::uint32_t>(std::countr_zero(mask));
}

}  // namespace

machine::machine(const graph& fabric, const request& of, const plan& what,
                 std::uint32_t element_bytes, std::uint32_t seed)
    : of_(of), what_(what), element_(element_bytes), cards_(of.ranks()), dice_(seed)
{
    std::map<std::uint32_t, std::uint32_t> rank_of;
    for (std::uint32_t r = 0; r < of.ranks(); ++r)
        rank_of[of.cards[r]] = r;
    for (const graph_link& link : fabric.links)
        if (link.up && rank_of.count(link.card_a) && rank_of.count(link.card_b)) {
            const std::uint32_t a = rank_of[link.card_a], b = rank_of[link.card_b];
            cards_[a].peer[link.port_a] = {b, link.port_b};
            cards_[b].peer[link.port_b] = {a, link.port_a};
        }
    for (std::uint32_t r = 0; r < of.ranks(); ++r) {
        cards_[r].signals.assign(what.signals, 0);
        cards_[r].posted.assign(what.signals, 0);
        for (std::uint32_t s = 0; s < what.scratch.size(); ++s)
            cards_[r].pieces[what.objects + s].assign(what.scratch[s].bytes[r] / element_, 0xdead);
        for (std::uint32_t i = 0; i < of.objects.size(); ++i)
            if (of.objects[i].kind == SPANKER_KIND_TENSOR)
                cards_[r].pieces[i].assign(piece_bytes(of.objects[i], r) / element_, 0xbeef);
    }
    for (std::uint32_t i = 0; i < of.objects.size(); ++i)
        if (of.objects[i].kind == SPANKER_KIND_BUFFER)
            buffers_[i].assign(of.objects[i].bytes / element_, 0xfeed);
}

elements& machine::memory(std::uint32_t rank, std::uint32_t index)
{
    const auto buffer = buffers_.find(index);
    return buffer != buffers_.end() ? buffer->second : cards_[rank].pieces[index];
}

std::uint64_t machine::weight(std::uint64_t o, std::uint64_t i)
{
    return contribution(o + 100, i) >> 40;
}

std::uint64_t machine::ran(std::uint32_t rank, std::uint8_t opcode) const
{
    const auto found = cards_[rank].ran.find(opcode);
    return found == cards_[rank].ran.end() ? 0 : found->second;
}

void machine::complain(const std::string& what)
{
    if (wrong_.empty())
        wrong_ = what;
}

std::string machine::execute()
{
    const auto settle = [this] {
        for (bool moved = true; moved && wrong_.empty();) {
            moved = false;
            const std::uint32_t first = static_cast<std::uint32_t>(dice_());
            for (std::uint32_t r = 0; r < cards_.size(); ++r)
                while (step((first + r) % static_cast<std::uint32_t>(cards_.size())))
                    moved = true;
        }
    };
    for (const segment& part : what_.segments) {
        if (part.barrier)
            settle();
        for (std::uint32_t r = 0; part.barrier && r < cards_.size(); ++r)
            if (!cards_[r].waiting.empty())
                complain("work is left before a barrier on rank " + std::to_string(r));
        submit(part);
    }
    settle();
    for (std::uint32_t r = 0; r < cards_.size(); ++r)
        if (!cards_[r].waiting.empty())
            complain("rank " + std::to_string(r) + " stops with " +
                     std::to_string(cards_[r].waiting.size()) + " items left");
    return wrong_;
}

spanker_work_item machine::relocate(std::uint32_t rank, spanker_work_item item, const segment& part)
{
    for (spanker_operand* operand : {&item.dst, &item.src, &item.aux})
        if (operand->handle != 0)
            operand->offset += part.shift_bytes;
    if (item.wait_signal != SPK_NO_SIGNAL)
        item.wait_value += cards_[rank].posted[item.wait_signal];
    if (item.opcode == SPK_OP_GANG)
        item.gang.id += gangs_;
    if (is_link(item.opcode) && item.link.rx_ports)
        item.link.rx_tag += tags_;
    if (is_link(item.opcode) && item.link.tx_ports)
        item.link.tx_tag += tags_;
    if ((is_link(item.opcode) || item.opcode == SPK_OP_GANG) != (item.group == 1))
        complain("group is not 1 on LINK_* and GANG and 0 elsewhere");
    return item;
}

void machine::submit(const segment& part)
{
    const block& of = what_.blocks[part.block];
    for (std::uint32_t r = 0; r < cards_.size(); ++r) {
        card& on = cards_[r];
        std::uint64_t gang = 0, left = 0;
        for (const spanker_work_item& raw : what_.items(r, part)) {
            pending one{relocate(r, raw, part), 0, on.next++};
            if (left > 0) {
                one.gang = gang;
                --left;
            }
            if (one.item.opcode == SPK_OP_GANG) {
                gang = one.sequence;
                left = one.item.gang.section;
            }
            for (const std::uint32_t lane : lanes_of(one.item))
                on.lanes[lane].push_back(one.sequence);
            on.waiting.emplace(one.sequence, one);
        }
        if (left != 0)
            complain("a section reaches beyond its batch");
        for (std::uint32_t s = 0; s < what_.signals; ++s)
            on.posted[s] += of.posts[r * what_.signals + s];
    }
    tags_ += of.tags;
    gangs_ += of.gangs;
}

bool machine::may_start(card& on, const pending& one)
{
    for (const std::uint32_t lane : lanes_of(one.item))
        if (on.lanes[lane].front() != one.sequence)
            return false;
    if (one.gang != 0 && !on.fired[one.gang])
        return false;
    if (one.item.wait_signal == SPK_NO_SIGNAL)
        return true;
    return static_cast<std::int32_t>(on.signals[one.item.wait_signal] - one.item.wait_value) >= 0;
}

bool machine::step(std::uint32_t rank)
{
    card& on = cards_[rank];
    if (on.lanes.empty())
        return false;
    auto lane = std::next(on.lanes.begin(), static_cast<std::ptrdiff_t>(dice_() % on.lanes.size()));
    for (std::size_t i = 0; i < on.lanes.size(); ++i, ++lane) {
        if (lane == on.lanes.end())
            lane = on.lanes.begin();
        if (lane->second.empty() || !wrong_.empty())
            continue;
        pending& one = on.waiting.at(lane->second.front());
        if (may_start(on, one) && start(rank, one))
            return true;
    }
    return false;
}

bool machine::start(std::uint32_t rank, pending& one)
{
    const spanker_work_item item = one.item;
    if (item.opcode == SPK_OP_GANG)
        return fire(item.gang.id);
    if (is_link(item.opcode) && item.link.rx_ports) {
        const auto key =
            std::make_pair(port_of(item.link.rx_ports), std::uint32_t{item.link.rx_channel});
        if (cards_[rank].inbox[key].empty())
            return false;
    }
    if (is_link(item.opcode))
        link(rank, item);
    else if (item.opcode == SPK_OP_MATMUL_Q4_K)
        matmul(rank, item);
    else if (item.opcode == SPK_OP_FILL)
        write(rank, item.dst, elements(item.fill.bytes / element_, item.fill.pattern));
    else if (item.opcode != SPK_OP_NOP)
        move_rows(rank, item);
    finish(rank, one.sequence);
    return true;
}

void machine::finish(std::uint32_t rank, std::uint64_t sequence)
{
    card& on = cards_[rank];
    const spanker_work_item item = on.waiting.at(sequence).item;
    for (const std::uint32_t lane : lanes_of(item))
        on.lanes[lane].pop_front();
    on.waiting.erase(sequence);
    ++on.ran[item.opcode];
    if (item.opcode == SPK_OP_GANG)
        on.fired[sequence] = true;
    if (item.post_signal != SPK_NO_SIGNAL)
        ++on.signals[item.post_signal];
}

bool machine::fire(std::uint32_t id)
{
    std::vector<std::pair<std::uint32_t, std::uint64_t>> here;
    std::uint32_t members = 0;
    for (std::uint32_t r = 0; r < cards_.size(); ++r) {
        const auto& control = cards_[r].lanes[SPK_ENGINE_CONTROL];
        if (control.empty())
            continue;
        const pending& one = cards_[r].waiting.at(control.front());
        if (one.item.opcode == SPK_OP_GANG && one.item.gang.id == id && may_start(cards_[r], one)) {
            members = one.item.gang.members;
            here.emplace_back(r, one.sequence);
        }
    }
    if (here.size() != members)
        return false;
    for (const auto& [rank, sequence] : here)
        finish(rank, sequence);
    return true;
}

void machine::link(std::uint32_t rank, const spanker_work_item& item)
{
    const std::uint64_t bytes = std::uint64_t{item.link.rows} * item.link.row_bytes;
    elements data;
    if (item.link.rx_ports) {
        auto& box = cards_[rank].inbox[{port_of(item.link.rx_ports), item.link.rx_channel}];
        const message got = std::move(box.front());
        box.pop_front();
        if (got.tag != item.link.rx_tag || got.dtype != item.dtype ||
            got.data.size() * element_ != bytes)
            return complain("the ends of a message disagree on rank " + std::to_string(rank));
        data = got.data;
    }
    const bool reduces =
        item.opcode == SPK_OP_LINK_RECV_REDUCE_SEND || item.opcode == SPK_OP_LINK_RECV_REDUCE_COPY;
    if (item.opcode == SPK_OP_LINK_SEND || reduces) {
        const elements local = read(rank, item.src, bytes);
        if (!reduces)
            data = local;
        else
            for (std::size_t i = 0; i < data.size() && i < local.size(); ++i)
                data[i] = reduce(data[i], local[i]);
    }
    if (item.dst.handle != 0)
        write(rank, item.dst, data);
    if (item.link.tx_ports) {
        const auto [to, port] = cards_[rank].peer.at(port_of(item.link.tx_ports));
        cards_[to].inbox[{port, item.link.tx_channel}].push_back(
            {item.link.tx_tag, item.dtype, data});
    }
}

void machine::move_rows(std::uint32_t rank, const spanker_work_item& item)
{
    for (std::uint32_t row = 0; row < item.rows.rows; ++row) {
        spanker_operand from = item.src, to = item.dst;
        from.offset += std::uint64_t{row} * from.pitch;
        to.offset += std::uint64_t{row} * to.pitch;
        write(rank, to, read(rank, from, item.rows.row_bytes));
    }
}

void machine::matmul(std::uint32_t rank, const spanker_work_item& item)
{
    const object& w = of_.objects.at(item.aux.handle - 1);
    std::uint64_t row = 0, column = 0;
    for (std::uint32_t r = 0; r < rank; ++r)
        (w.split == sharding::k_split ? column : row) += w.extent[r];
    const std::uint64_t rows = w.split == sharding::k_split ? w.rows : w.extent[rank];
    const std::uint64_t k = w.split == sharding::k_split ? w.extent[rank] : w.cols;
    if (item.matmul.n_out != rows || item.matmul.k != k || item.aux.offset != 0)
        return complain("a matmul does not use its whole piece of the weights");
    for (std::uint32_t t = 0; t < item.matmul.n_tok; ++t) {
        spanker_operand x = item.src, y = item.dst;
        x.offset += std::uint64_t{t} * x.pitch;
        y.offset += std::uint64_t{t} * y.pitch;
        const elements in = read(rank, x, k * 4);
        elements out =
            item.matmul.mode & SPK_MATMUL_ACCUMULATE ? read(rank, y, rows * 4) : elements(rows, 0);
        for (std::uint64_t o = 0; o < rows && in.size() == k && out.size() == rows; ++o)
            for (std::uint64_t i = 0; i < k; ++i)
                out[o] += in[i] * weight(row + o, column + i);
        write(rank, y, out);
    }
}

std::uint64_t* machine::at(std::uint32_t rank, const spanker_operand& operand, std::uint64_t offset,
                           std::uint64_t bytes)
{
    elements& in = memory(rank, operand.handle - 1);
    if (offset % element_ != 0 || bytes % element_ != 0 || offset + bytes > in.size() * element_) {
        complain("an operand leaves object " + std::to_string(operand.handle - 1) + " on rank " +
                 std::to_string(rank));
        return nullptr;
    }
    return in.data() + offset / element_;
}

elements machine::read(std::uint32_t rank, const spanker_operand& from, std::uint64_t bytes)
{
    const std::uint64_t* data = at(rank, from, from.offset, bytes);
    return data ? elements(data, data + bytes / element_) : elements{};
}

void machine::write(std::uint32_t rank, const spanker_operand& to, const elements& data)
{
    if (std::uint64_t* into = at(rank, to, to.offset, data.size() * element_))
        std::copy(data.begin(), data.end(), into);
}

}  // namespace spanker::daemon::collective
