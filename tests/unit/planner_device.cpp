// SPDX-License-Identifier: Apache-2.0
//
// Plans on simulated cards: results with real numbers, and device time against
// the predicted one. The cards are driven through the daemon's seam.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "daemon/backend.hpp"
#include "daemon/embedded/cards_like.hpp"
#include "planner_fabric.hpp"

namespace spanker::daemon::collective {
namespace {

using bytes = std::vector<std::uint8_t>;

// The fabric as the backend's cards report it.
graph observe(backend& cards)
{
    graph made;
    made.generation = 1;
    std::map<std::uint64_t, std::uint32_t> by_serial;
    std::map<std::uint32_t, spanker_get_info> known;
    for (const std::uint32_t number : cards.cards()) {
        const spanker_get_info info = cards.info(number).value();
        by_serial[info.out_serial] = number;
        card_costs costs;
        costs.queue_depth = info.out_queue_depth;
        costs.ports = info.out_ports;
        costs.channels = info.out_channels;
        costs.rx_buffer_bytes = info.out_rx_buffer_bytes;
        costs.hop_ns = info.out_hop_ns;
        costs.issue_ns = info.out_issue_ns;
        costs.features = info.out_features;
        costs.ddr_bytes_per_s = info.out_ddr_bytes_per_s;
        costs.link_bytes_per_s = info.out_link_bytes_per_s;
        costs.host_bytes_per_s = info.out_host_bytes_per_s;
        costs.macs_per_s = info.out_macs_per_s;
        made.cards.push_back({number, costs});
        known[number] = info;
    }
    for (const auto& [number, info] : known) {
        const std::vector<port_info> ports = cards.ports(number).value();
        for (const port_info& port : ports) {
            if (port.state != SPK_PORT_UP || !by_serial.count(port.partner_serial))
                continue;
            const std::uint32_t to = by_serial[port.partner_serial];
            if (std::pair(number, port.port) < std::pair(to, port.partner_port))
                made.links.push_back({number, port.port, to, port.partner_port,
                                      info.out_link_bytes_per_s * port.width / port.lanes, true});
        }
    }
    return made;
}

class rig {
public:
    explicit rig(unsigned cards, const std::string& topology = "ring",
                 const sim::card_config& pattern = {})
    {
        cards_ = make_embedded_backend({cards, topology, 64u << 20, false}, pattern).value();
        for (const std::uint32_t number : cards_->cards()) {
            const auto ports = cards_->ports(number).value();
            EXPECT_TRUE(cards_->link_train(number, (1u << ports.size()) - 1, false));
        }
        settle();
        fabric = observe(*cards_);
    }

    // Operand memory: every rank's piece of a tensor or weights; a buffer is shared.
    bytes& piece(std::uint32_t rank, std::uint32_t object) { return pieces_[{rank, object}]; }
    bytes& buffer(std::uint32_t object) { return piece(0, object); }

    // Runs the plan once; returns device time from first start to last end.
    std::uint64_t run(const request& of, const plan& what);

    graph fabric;

private:
    struct rank_state {
        std::unique_ptr<card_file> file;
        std::map<std::uint32_t, std::uint32_t> handles;  // by object index
        std::vector<std::uint32_t> posted;
    };

    void settle()
    {
        while (cards_->drive()) {
        }
    }
    void prepare(const request& of, const plan& what);
    void copy(std::uint32_t rank, std::uint32_t object, bool in);
    spanker_work_item relocate(const segment& part, rank_state& on, spanker_work_item item);
    std::vector<spanker_record> wait(rank_state& on);

    std::unique_ptr<backend> cards_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, bytes> pieces_;
    std::vector<rank_state> ranks_;
    std::unique_ptr<channel_group> group_;
    std::uint32_t tags_ = 0, gangs_ = 0;
};

spanker_work_item dma(spk_opcode opcode, std::uint32_t dst, std::uint32_t src, std::uint64_t size)
{
    spanker_work_item made{};
    made.opcode = static_cast<std::uint8_t>(opcode);
    made.wait_signal = made.post_signal = SPK_NO_SIGNAL;
    made.dst.handle = dst;
    made.src.handle = src;
    made.rows.rows = 1;
    made.rows.row_bytes = static_cast<std::uint32_t>(size);
    return made;
}

std::vector<spanker_record> rig::wait(rank_state& on)
{
    std::vector<spanker_record> records(16);
    for (int tries = 0; tries < 100000; ++tries) {
        settle();
        const std::size_t got = on.file->poll(records);
        if (got != 0) {
            records.resize(got);
            return records;
        }
    }
    ADD_FAILURE() << "no record came";
    return {};
}

// One way between the host copy of a piece and the card.
void rig::copy(std::uint32_t rank, std::uint32_t object, bool in)
{
    bytes& data = piece(rank, object);
    rank_state& on = ranks_[rank];
    buffer_spec spec;
    spec.address = data.data();
    spec.bytes = data.size();
    spec.access = SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE;
    const std::uint32_t host = on.file->buffer_register(spec).value();
    const spanker_work_item item = in ? dma(SPK_OP_DMA_IN, on.handles[object], host, data.size())
                                      : dma(SPK_OP_DMA_OUT, host, on.handles[object], data.size());
    ASSERT_TRUE(on.file->submit({&item, 1}, 0));
    for (const spanker_record& record : wait(on))
        EXPECT_EQ(record.result, 0);
    EXPECT_TRUE(on.file->buffer_unregister(host));
}

void rig::prepare(const request& of, const plan& what)
{
    group_.reset();
    ranks_.clear();
    for (std::uint32_t r = 0; r < of.ranks(); ++r) {
        rank_state& on = ranks_.emplace_back();
        on.file = cards_->open(of.cards[r], 0).value();
        on.posted.assign(what.signals, 0);
        for (std::uint32_t i = 0; i < of.objects.size(); ++i) {
            const std::uint64_t size = piece_bytes(of.objects[i], r);
            if (of.objects[i].kind == SPANKER_KIND_BUFFER) {
                buffer(i).resize(size);
                buffer_spec spec;
                spec.address = buffer(i).data();
                spec.bytes = size;
                spec.access = SPANKER_BUFFER_READ | SPANKER_BUFFER_WRITE;
                on.handles[i] = on.file->buffer_register(spec).value();
            } else if (size != 0) {
                piece(r, i).resize(size);
                on.handles[i] = on.file->tensor_alloc(size).value();
                copy(r, i, true);
            }
        }
        for (std::uint32_t s = 0; s < what.scratch.size(); ++s)
            if (what.scratch[s].bytes[r] != 0)
                on.handles[what.objects + s] =
                    on.file->tensor_alloc(what.scratch[s].bytes[r]).value();
    }
    std::vector<group_member> members;
    for (const channel_use& use : what.channel_uses)
        members.push_back({ranks_[use.rank].file.get(), use.port_mask, use.channel});
    if (!members.empty())
        group_ = cards_->group_create(members).value();
}

spanker_work_item rig::relocate(const segment& part, rank_state& on, spanker_work_item item)
{
    for (spanker_operand* operand : {&item.dst, &item.src, &item.aux})
        if (operand->handle != 0) {
            operand->handle = on.handles.at(operand->handle - 1);
            operand->offset += part.shift_bytes;
        }
    if (item.wait_signal != SPK_NO_SIGNAL)
        item.wait_value += on.posted[item.wait_signal];
    if (item.group != 0)
        item.group = group_->id();
    const bool link = item.opcode >= SPK_OP_LINK_SEND && item.opcode <= SPK_OP_LINK_FORWARD;
    if (link && item.link.rx_ports)
        item.link.rx_tag += tags_;
    if (link && item.link.tx_ports)
        item.link.tx_tag += tags_;
    if (item.opcode == SPK_OP_GANG)
        item.gang.id += gangs_;
    return item;
}

std::uint64_t rig::run(const request& of, const plan& what)
{
    prepare(of, what);
    std::uint64_t first = UINT64_MAX, last = 0;
    std::vector<std::uint32_t> pending(ranks_.size(), 0);
    for (const segment& part : what.segments) {
        for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
            std::vector<spanker_work_item> items;
            for (const spanker_work_item& item : what.items(r, part))
                items.push_back(relocate(part, ranks_[r], item));
            if (!items.empty()) {
                const auto seq = ranks_[r].file->submit(items, 0);
                EXPECT_TRUE(seq) << seq.error().message;
                ++pending[r];
            }
            for (std::uint32_t s = 0; s < what.signals; ++s)
                ranks_[r].posted[s] += what.blocks[part.block].posts[r * what.signals + s];
        }
        tags_ += what.blocks[part.block].tags;
        gangs_ += what.blocks[part.block].gangs;
    }
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
        while (pending[r] > 0) {
            const auto records = wait(ranks_[r]);
            if (records.empty())
                return 0;
            for (const spanker_record& record : records) {
                EXPECT_EQ(record.result, 0) << "rank " << r << " item " << record.item;
                first = std::min<std::uint64_t>(first, record.start_ns);
                last = std::max<std::uint64_t>(last, record.end_ns);
                --pending[r];
            }
        }
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
        for (std::uint32_t i = 0; i < of.objects.size(); ++i)
            if (of.objects[i].kind == SPANKER_KIND_TENSOR && piece_bytes(of.objects[i], r) != 0)
                copy(r, i, false);
    return last - first;
}

void expect_within_2_percent(std::uint64_t achieved_ns, const plan& what)
{
    EXPECT_NEAR(static_cast<double>(achieved_ns) / static_cast<double>(what.predicted_ns), 1.0,
                0.02)
        << "achieved " << achieved_ns << " predicted " << what.predicted_ns;
    EXPECT_GE(achieved_ns, what.bound_ns);
}

std::int32_t* words(bytes& of) { return reinterpret_cast<std::int32_t*>(of.data()); }

// i32 sums on cards of that cabling, over card memory.
void expect_sum(unsigned cards, const std::string& topology, std::uint64_t count)
{
    rig on(cards, topology);
    const request of = collective_request(cards, SPANKER_SOP_ALL_REDUCE, count, side::card,
                                          side::card, true, SPK_DTYPE_I32);
    const auto made = plan_of(on.fabric, of);
    ASSERT_TRUE(made) << made.error().message;
    for (std::uint32_t r = 0; r < cards; ++r) {
        on.piece(r, 0).resize(count * 4);
        for (std::uint64_t i = 0; i < count; ++i)
            words(on.piece(r, 0))[i] = static_cast<std::int32_t>(r * 1000003 + i * 7);
    }
    const std::uint64_t achieved = on.run(of, *made);
    for (std::uint32_t r = 0; r < cards; ++r)
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto n = static_cast<std::uint64_t>(cards);
            const auto sum = static_cast<std::int32_t>(1000003 * (n * (n - 1) / 2) + n * 7 * i);
            ASSERT_EQ(words(on.piece(r, 0))[i], sum) << "rank " << r << " element " << i;
        }
    expect_within_2_percent(achieved, *made);
}

TEST(on_cards, a_mebibyte_over_a_ring_of_four_takes_the_predicted_time)
{
    expect_sum(4, "ring", 256 * 1024);
}

TEST(on_cards, small_and_odd_vectors_take_the_predicted_time)
{
    for (const std::uint64_t count : {1, 16, 257, 5003})
        expect_sum(4, "ring", count);
}

TEST(on_cards, lines_meshes_pairs_and_eight_cards_take_the_predicted_time)
{
    expect_sum(4, "line", 100000);
    expect_sum(4, "mesh", 100000);
    expect_sum(2, "ring", 100000);
    expect_sum(2, "line", 100000);
    expect_sum(8, "ring", 100000);
}

// Times of an all-reduce of i32: on cards like `pattern`, and as predicted from `known`.
struct race {
    std::uint64_t achieved_ns;
    plan made;
};
race race_of(rig& on, const graph& known, std::uint64_t count)
{
    const auto cards = static_cast<unsigned>(known.cards.size());
    const request of = collective_request(cards, SPANKER_SOP_ALL_REDUCE, count, side::card,
                                          side::card, true, SPK_DTYPE_I32);
    plan made = plan_of(known, of).value();
    const std::uint64_t achieved = on.run(of, made);
    return {achieved, std::move(made)};
}

struct altered {
    const char* what;
    sim::card_config cards;
    std::string topology = "ring";
};

std::vector<altered> altered_cards()
{
    std::vector<altered> made = {{"DDR", {}}, {"hop", {}}, {"link", {}}, {"narrow link", {}}};
    made[0].cards.ddr_bytes_per_s = 1'000'000'000;
    made[1].cards.hop_ns = 4000;
    made[2].cards.link_bytes_per_s = 300'000'000;
    made[3].topology = "0.1-1.0,1.1-2.0x2,2.1-3.0,3.1-0.0";
    return made;
}

TEST(on_cards, changed_registers_change_the_prediction_and_nothing_else)
{
    std::vector<altered> all = altered_cards();
    all.push_back({"DDR whose slowness a ring hides", {}});
    all.back().cards.ddr_bytes_per_s = 1'700'000'000;
    for (const altered& one : all)
        for (const std::uint64_t count : {64u, 262144u}) {
            SCOPED_TRACE(std::string(one.what) + ", " + std::to_string(count) + " elements");
            rig on(4, one.topology, one.cards);
            const race seen = race_of(on, on.fabric, count);
            expect_within_2_percent(seen.achieved_ns, seen.made);
        }
}

// The other half: a comparison that nothing can make fail would prove nothing.
TEST(on_cards, one_constant_that_the_prediction_does_not_know_makes_the_comparison_fail)
{
    const graph reference = rig(4).fabric;
    for (const altered& one : altered_cards()) {
        double worst = 0;
        for (const std::uint64_t count : {64u, 262144u}) {
            rig on(4, one.topology, one.cards);
            const race seen = race_of(on, reference, count);
            worst = std::max(worst, std::abs(static_cast<double>(seen.achieved_ns) /
                                                 static_cast<double>(seen.made.predicted_ns) -
                                             1));
        }
        EXPECT_GT(worst, 0.02) << one.what;
    }
}

TEST(on_cards, sixteen_mebibytes_complete_with_the_default_buffers)
{
    expect_sum(4, "ring", 4 * 1024 * 1024);
}

TEST(on_cards, float_sums_have_the_same_bits_everywhere)
{
    rig on(4);
    const std::uint64_t count = 60000;
    const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, count);
    const auto made = plan_of(on.fabric, of);
    ASSERT_TRUE(made);
    std::minstd_rand dice(5);
    for (std::uint32_t r = 0; r < 4; ++r) {
        on.piece(r, 0).resize(count * 4);
        for (std::uint64_t i = 0; i < count; ++i) {
            const float value = static_cast<float>(dice()) / 1e9f - 1;
            std::memcpy(on.piece(r, 0).data() + 4 * i, &value, 4);
        }
    }
    on.run(of, *made);
    for (std::uint32_t r = 1; r < 4; ++r)
        EXPECT_EQ(on.piece(r, 0), on.piece(0, 0)) << r;
}

TEST(on_cards, gather_and_broadcast_are_right_and_take_the_predicted_time)
{
    for (const spanker_session_op op : {SPANKER_SOP_ALL_GATHER, SPANKER_SOP_BROADCAST})
        for (const bool in_place : {true, false}) {
            rig on(4);
            const std::uint64_t count = 50000, result = op == SPANKER_SOP_ALL_GATHER ? 4 : 1;
            const request of = collective_request(4, op, count, side::card, side::card, in_place,
                                                  SPK_DTYPE_I32, op == SPANKER_SOP_BROADCAST);
            const auto made = plan_of(on.fabric, of);
            ASSERT_TRUE(made) << made.error().message;
            for (std::uint32_t r = 0; r < 4; ++r) {
                on.piece(r, 0).resize(piece_bytes(of.objects[0], r));
                const std::uint64_t at = in_place && result == 4 ? r * count : 0;
                for (std::uint64_t i = 0; i < count; ++i)
                    words(on.piece(r, 0))[at + i] = static_cast<std::int32_t>(r * count + i);
            }
            expect_within_2_percent(on.run(of, *made), *made);
            for (std::uint32_t r = 0; r < 4; ++r)
                for (std::uint64_t i = 0; i < result * count; ++i)
                    ASSERT_EQ(words(on.piece(r, in_place ? 0 : 1))[i],
                              static_cast<std::int32_t>(result == 4 ? i : count + i))
                        << "op " << op << " rank " << r << " element " << i;
        }
}

TEST(on_cards, host_memory_is_staged_right_and_takes_the_predicted_time)
{
    rig on(4);
    const std::uint64_t count = 100000;
    const request of = collective_request(4, SPANKER_SOP_ALL_REDUCE, count, side::host, side::host,
                                          true, SPK_DTYPE_I32);
    const auto made = plan_of(on.fabric, of);
    ASSERT_TRUE(made) << made.error().message;
    on.buffer(0).resize(4 * count * 4);
    for (std::uint64_t i = 0; i < 4 * count; ++i)
        words(on.buffer(0))[i] = static_cast<std::int32_t>(i);
    expect_within_2_percent(on.run(of, *made), *made);
    for (std::uint64_t i = 0; i < 4 * count; ++i)
        ASSERT_EQ(words(on.buffer(0))[i], static_cast<std::int32_t>(4 * (i % count) + 6 * count))
            << i;
}

TEST(on_cards, matmuls_of_the_demo_take_the_predicted_time)
{
    for (const std::uint32_t n_tok : {1u, 32u})
        for (const sharding how : {sharding::rows, sharding::k_split}) {
            rig on(4);
            request of{{}, {}, first_cards(4)};
            of.add(describe_weights(how, 4096, 4096, 4).value());
            of.add(describe_buffer(std::uint64_t{n_tok} * 4096 * 4));
            of.add(describe_buffer(std::uint64_t{n_tok} * 4096 * 4));
            of.stages.push_back(matmul_stage{{0, 0}, {1, 0}, {2, 0}, n_tok, SPK_X_F32, 0});
            const auto made = plan_of(on.fabric, of);
            ASSERT_TRUE(made) << made.error().message;
            expect_within_2_percent(on.run(of, *made), *made);
        }
}

}  // namespace
}  // namespace spanker::daemon::collective
