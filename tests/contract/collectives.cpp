// SPDX-License-Identifier: Apache-2.0
//
// The fused cut-through AllReduce of a ring, by hand: per slice and card
//
//     step   0     1    2    3             4    5    6
//            SEND  RRS  RRS  RRC send-on   RCS  RCS  RECV
//
// where card r treats chunk r - step. Slice by slice, so that lanes never wait for each other in a circle.
#include "rig.hpp"

namespace contract {

namespace {

constexpr std::uint32_t ranks = 4, slices = 3;
constexpr std::uint32_t slice_bytes = 4096;
constexpr std::uint32_t chunk_bytes = slices * slice_bytes;
constexpr std::uint32_t vector_bytes = ranks * chunk_bytes;
constexpr std::uint32_t upstream = 0, downstream = 1;  // ports of a ring

constexpr spk_opcode steps[] = {
    SPK_OP_LINK_SEND,
    SPK_OP_LINK_RECV_REDUCE_SEND,
    SPK_OP_LINK_RECV_REDUCE_SEND,
    SPK_OP_LINK_RECV_REDUCE_COPY,
    SPK_OP_LINK_RECV_COPY_SEND,
    SPK_OP_LINK_RECV_COPY_SEND,
    SPK_OP_LINK_RECV,
};
constexpr std::uint32_t step_count = std::size(steps);

spanker_work_item step_item(const channel_group& group, std::uint32_t tensor, std::uint32_t rank,
                            std::uint32_t slice, std::uint32_t step)
{
    auto out = item(steps[step]);
    const std::uint32_t chunk = (rank + 2 * ranks - step) % ranks;
    const spanker_operand memory{
        .handle = tensor, .pitch = 0, .offset = chunk * chunk_bytes + slice * slice_bytes};
    const std::uint32_t tag = slice * step_count + step;
    out.group = group.id();
    out.link.rows = 1;
    out.link.row_bytes = slice_bytes;
    if (step > 0) {
        out.link.rx_ports = 1u << upstream;
        out.link.rx_tag = tag;
    }
    if (step + 1 < step_count) {
        out.link.tx_ports = 1u << downstream;
        out.link.tx_tag = tag + 1;
    }
    const bool reads = step <= 3, writes = step >= 3;
    if (reads)
        out.src = memory;
    if (writes)
        out.dst = memory;
    return out;
}

// A gang that failed stays failed for members that come late, so each collective has an id of its own.
std::vector<spanker_work_item> all_reduce(const channel_group& group, std::uint32_t tensor,
                                          std::uint32_t rank, std::uint32_t id = 1)
{
    std::vector<spanker_work_item> out;
    auto gang = item(SPK_OP_GANG);
    gang.group = group.id();
    gang.gang = {.id = id, .members = ranks, .section = slices * step_count, .reserved = {}};
    out.push_back(gang);
    for (std::uint32_t slice = 0; slice < slices; slice++)
        for (std::uint32_t step = 0; step < step_count; step++)
            out.push_back(step_item(group, tensor, rank, slice, step));
    return out;
}

}  // namespace

class collective : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (IsSkipped() || HasFatalFailure())
            return;
        if (!is_ring())
            GTEST_SKIP() << "the first four cards are not a ring (port 1 to port 0 of the next)";
        std::vector<member> members;
        for (std::uint32_t r = 0; r < ranks; r++) {
            files.push_back(open(cards->cards()[r]));
            members.push_back({files[r].get(), 1u << upstream | 1u << downstream, 0});
        }
        auto made = cards->group_create(members);
        ASSERT_TRUE(made) << text_of(made);
        group = std::move(*made);
    }
    bool is_ring()
    {
        if (card_count() != ranks)
            return false;
        for (std::uint32_t r = 0; r < ranks; r++) {
            const auto ports = cards->ports(cards->cards()[r]);
            const auto next = cards->info(cards->cards()[(r + 1) % ranks]);
            if (!ports || !next || ports->size() < 2 ||
                ports->at(downstream).partner_serial != next->out_serial ||
                ports->at(downstream).partner_port != upstream)
                return false;
        }
        return true;
    }
    // Rank r holds r + 1 + index in each f32.
    void load()
    {
        tensors.clear();
        for (std::uint32_t r = 0; r < ranks; r++) {
            bytes data(vector_bytes);
            for (std::uint32_t n = 0; n < vector_bytes / 4; n++) {
                const auto value = static_cast<float>(r + 1 + n);
                std::memcpy(data.data() + 4 * n, &value, 4);
            }
            tensors.push_back(alloc(*files[r], vector_bytes));
            upload(*files[r], tensors[r], data);
        }
    }
    void start(std::uint32_t id = 1)
    {
        for (std::uint32_t r = 0; r < ranks; r++)
            submit(*files[r], all_reduce(*group, tensors[r], r, id));
    }
    void expect_sums()
    {
        for (std::uint32_t r = 0; r < ranks; r++) {
            const auto got = download(*files[r], tensors[r], vector_bytes);
            for (std::uint32_t n = 0; n < vector_bytes / 4; n++) {
                float value;
                std::memcpy(&value, got.data() + 4 * n, 4);
                ASSERT_EQ(value, static_cast<float>(10 + 4 * n)) << "rank " << r << " at " << n;
            }
        }
    }

    std::vector<std::unique_ptr<card_file>> files;
    std::vector<std::uint32_t> tensors;
    std::unique_ptr<channel_group> group;
};

TEST_F(collective, a_fused_ring_leaves_the_sum_on_every_card)
{
    load();
    start();
    for (auto& file : files)
        EXPECT_EQ(wait(*file)[0].result, 0);
    expect_sums();
}

TEST_F(collective, takes_the_same_device_time_every_time)
{
    std::uint64_t first_ns = 0;
    for (int n = 0; n < 5; n++) {
        load();
        settle();
        start();
        std::uint64_t start_ns = ~0ull, end_ns = 0;
        for (auto& file : files) {
            const auto record = wait(*file)[0];
            start_ns = std::min<std::uint64_t>(start_ns, record.start_ns);
            end_ns = std::max<std::uint64_t>(end_ns, record.end_ns);
        }
        settle();
        if (n == 0)
            first_ns = end_ns - start_ns;
        EXPECT_GT(end_ns, start_ns);
        if (cards->name() == "embedded") {
            EXPECT_EQ(end_ns - start_ns, first_ns) << n;
        }
    }
}

TEST_F(collective, a_cable_cut_in_the_middle_fails_every_card_and_the_next_one_works)
{
    if (!can_inject(cards->cards()[1]))
        GTEST_SKIP() << "faults cannot be injected here";
    load();
    // Rank 0 holds its part back, so that all others wait on their lanes when the cable goes.
    auto held = all_reduce(*group, tensors[0], 0);
    for (std::uint32_t r = 1; r < ranks; r++)
        submit(*files[r], all_reduce(*group, tensors[r], r));
    settle();
    ASSERT_EQ(errno_of(cards->inject(cards->cards()[1], "cable_cut port=1")), 0);
    submit(*files[0], held);
    for (std::uint32_t r = 0; r < ranks; r++) {
        const auto record = wait(*files[r])[0];
        EXPECT_EQ(record.result, -ENOLINK) << "rank " << r;
        // The cable of ranks 1 and 2: whoever tells, names one of its two ends.
        const bool near = SPK_ORIGIN_CARD(record.origin) == cards->cards()[1] &&
                          SPK_ORIGIN_PORT(record.origin) == 1;
        const bool far = SPK_ORIGIN_CARD(record.origin) == cards->cards()[2] &&
                         SPK_ORIGIN_PORT(record.origin) == 0;
        EXPECT_TRUE(near || far) << "rank " << r << " names card " << SPK_ORIGIN_CARD(record.origin)
                                 << " port " << unsigned{SPK_ORIGIN_PORT(record.origin)};
    }
    ASSERT_EQ(errno_of(cards->inject(cards->cards()[1], "clear cable_cut")), 0);
    settle();
    load();
    start();
    for (auto& file : files)
        EXPECT_EQ(wait(*file)[0].result, 0);
    expect_sums();
}

TEST_F(collective, a_rank_that_never_comes_ends_the_others_by_their_deadline)
{
    load();
    for (std::uint32_t r = 1; r < ranks; r++) {
        auto work = all_reduce(*group, tensors[r], r);
        for (auto& one : work)
            one.deadline_ns = now_ns() + 20'000'000;
        submit(*files[r], work);
    }
    for (std::uint32_t r = 1; r < ranks; r++)
        EXPECT_NE(wait(*files[r])[0].result, 0);
    EXPECT_NE(run(*files[0], all_reduce(*group, tensors[0], 0)).result, 0) << "too late";
    load();
    start(2);
    for (auto& file : files)
        EXPECT_EQ(wait(*file)[0].result, 0);
    expect_sums();
}

}  // namespace contract
