// SPDX-License-Identifier: Apache-2.0
//
// Bad requests: each answers its kind of error and names the operand, the stage
// and the cure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner_fabric.hpp"

namespace spanker::daemon::collective {
namespace {

using testing::HasSubstr;

void expect_error(const result<plan>& got, spanker_error_kind kind, const std::string& words)
{
    ASSERT_FALSE(got) << "expected: " << words;
    EXPECT_EQ(got.error().kind, kind) << got.error().message;
    EXPECT_THAT(got.error().message, HasSubstr(words));
}

// ---- groups and cabling ----

TEST(group_errors, name_the_card)
{
    request of = collective_request(2, SPANKER_SOP_ALL_REDUCE, 8);
    of.cards = {0, 9};
    expect_error(plan_of(ring_of(4), of), SPANKER_ERR_NO_OBJECT, "card 9 is not in the fabric");
    of.cards = {1, 1};
    expect_error(plan_of(ring_of(4), of), SPANKER_ERR_INVALID, "card 1 appears twice");
    of.cards = {};
    expect_error(plan_of(ring_of(4), of), SPANKER_ERR_INVALID, "a group of 0 cards");
    of.cards = first_cards(17);
    expect_error(plan_of(ring_of(4), of), SPANKER_ERR_INVALID, "a group of 17 cards");
}

TEST(topology_errors, name_the_islands)
{
    graph fabric = cards_only(5);
    cable(fabric, 0, 0, 1, 0);
    cable(fabric, 2, 0, 4, 0);
    for (const spanker_session_op op :
         {SPANKER_SOP_ALL_REDUCE, SPANKER_SOP_ALL_GATHER, SPANKER_SOP_BROADCAST})
        expect_error(plan_of(fabric, collective_request(5, op, 8)), SPANKER_ERR_TOPOLOGY_MISMATCH,
                     "cards 0, 1 | cards 2, 4 | card 3");
}

TEST(topology_errors, tell_a_star_from_islands)
{
    card_costs hub;
    hub.ports = 3;
    graph fabric = cards_only(4, hub);
    for (std::uint32_t leaf = 1; leaf < 4; ++leaf)
        cable(fabric, 0, leaf - 1, leaf, 0);
    expect_error(plan_of(fabric, collective_request(4, SPANKER_SOP_ALL_REDUCE, 8)),
                 SPANKER_ERR_TOPOLOGY_MISMATCH, "no line of links visits every card");
}

TEST(topology_errors, come_from_links_that_are_down)
{
    graph fabric = line_of(3);
    fabric.links[0].up = false;
    expect_error(plan_of(fabric, collective_request(3, SPANKER_SOP_ALL_REDUCE, 8)),
                 SPANKER_ERR_TOPOLOGY_MISMATCH, "card 0 | cards 1, 2");
}

TEST(topology_errors, name_a_link_with_an_impossible_port)
{
    graph fabric = ring_of(2);
    cable(fabric, 0, 5, 1, 0);
    expect_error(plan_of(fabric, collective_request(2, SPANKER_SOP_ALL_REDUCE, 8)),
                 SPANKER_ERR_INVALID, "link 0.5-1.0: no such port");
}

TEST(feature_errors, name_the_card_that_lacks_it)
{
    graph fabric = ring_of(3);
    fabric.cards[1].costs.features = SPK_FEATURE_GANG;
    expect_error(plan_of(fabric, collective_request(3, SPANKER_SOP_ALL_REDUCE, 8)),
                 SPANKER_ERR_NOT_SUPPORTED, "card 1 offers no cut-through");
    fabric = ring_of(3);
    fabric.cards[2].costs.channels = 1;
    expect_error(plan_of(fabric, collective_request(3, SPANKER_SOP_ALL_REDUCE, 8)),
                 SPANKER_ERR_NOT_SUPPORTED, "card 2 has 1 channel");
}

TEST(runs, without_stages_are_refused)
{
    const request of{{}, {}, {0}};
    expect_error(plan_of(ring_of(1), of), SPANKER_ERR_INVALID, "a run of no stages");
}

// ---- collectives ----

struct bad_collective {
    const char* words;
    spanker_error_kind kind;
    void (*spoil)(request&, collective_stage&);
};

const bad_collective bad_collectives[] = {
    {"operation 1 is no collective", SPANKER_ERR_INVALID,
     [](request&, collective_stage& one) { one.op = SPANKER_SOP_MATMUL; }},
    {"dtype 5 is unknown", SPANKER_ERR_INVALID,
     [](request&, collective_stage& one) { one.dtype = SPK_DTYPE_COUNT; }},
    {"reduce operation 4 is unknown", SPANKER_ERR_INVALID,
     [](request&, collective_stage& one) { one.reduce = SPK_REDUCE_COUNT; }},
    {"root 4 of a group of 4 cards", SPANKER_ERR_INVALID,
     [](request&, collective_stage& one) {
         one.op = SPANKER_SOP_BROADCAST;
         one.root = 4;
     }},
    {"src names no object", SPANKER_ERR_NO_OBJECT,
     [](request&, collective_stage& one) { one.src.object = 7; }},
    {"dst names no object", SPANKER_ERR_NO_OBJECT,
     [](request&, collective_stage& one) { one.dst.object = no_object; }},
    {"dst takes 404 bytes at offset 0, but its object has 400", SPANKER_ERR_RANGE,
     [](request& of, collective_stage& one) {
         of.objects[0].bytes = 404;
         one.count = 101;
     }},
    {"src takes 400 bytes at offset 4", SPANKER_ERR_RANGE,
     [](request&, collective_stage& one) { one.src.offset = 4; }},
    {"src takes 400 bytes at offset 18446744073709551612", SPANKER_ERR_RANGE,
     [](request&, collective_stage& one) { one.src.offset = UINT64_MAX - 3; }},
    {"must be a multiple of 4", SPANKER_ERR_INVALID,
     [](request&, collective_stage& one) { one.src.offset = 2; }},
    {"count 4611686018427387905 on 4 cards overflows", SPANKER_ERR_BAD_DIMS,
     [](request&, collective_stage& one) { one.count = (1ull << 62) + 1; }},
    {"dst is a tensor of dtype 0, the request says 3", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, collective_stage& one) {
         of.objects[0].dtype = SPK_DTYPE_I32;
         one.dtype = SPK_DTYPE_I32;
     }},
    {"dst is a sharded tensor", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, collective_stage&) {
         of.objects[1] = tensor(SPANKER_LAYOUT_ROW_SHARD, 400, 1, 4);
     }},
    {"src must be a buffer or a tensor", SPANKER_ERR_INVALID,
     [](request& of, collective_stage&) {
         of.objects[0] = describe_weights(sharding::rows, 8, 256, 4).value();
     }},
    {"src is k_shard with 2 rows", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, collective_stage& one) {
         one.op = SPANKER_SOP_ALL_GATHER;
         one.count = 10;
         of.objects[0] = tensor(SPANKER_LAYOUT_K_SHARD, 2, 1024, 4);
     }},
    {"src and dst overlap", SPANKER_ERR_INVALID,
     [](request& of, collective_stage& one) {
         of.objects[0] = tensor(SPANKER_LAYOUT_PARTIAL, 1, 199, 4);
         one.dst = {0, 396};
     }},
};

TEST(collective_errors, are_of_the_named_kind_and_say_why)
{
    for (const bad_collective& row : bad_collectives) {
        request of =
            collective_request(4, SPANKER_SOP_ALL_REDUCE, 100, side::card, side::card, false);
        of.stages.insert(of.stages.begin(), nop_stage{});
        row.spoil(of, std::get<collective_stage>(of.stages[1]));
        const auto got = plan_of(ring_of(4), of);
        expect_error(got, row.kind, row.words);
        expect_error(got, row.kind, "stage 1: ");
    }
}

TEST(collective_errors, refuse_gathering_host_memory_onto_itself)
{
    request of = collective_request(2, SPANKER_SOP_ALL_GATHER, 10, side::host, side::host, false);
    std::get<collective_stage>(of.stages[0]).src = {1, 0};
    expect_error(plan_of(ring_of(2), of), SPANKER_ERR_INVALID, "src and dst overlap");
}

TEST(collective_errors, name_uneven_shards_that_are_too_small)
{
    request of = collective_request(4, SPANKER_SOP_ALL_GATHER, 3, side::card, side::card, false);
    of.objects[0] = tensor(SPANKER_LAYOUT_ROW_SHARD, 10, 1, 4);  // 3, 3, 2, 2
    expect_error(plan_of(ring_of(4), of), SPANKER_ERR_RANGE, "src takes 12 bytes");
}

// ---- matmul ----

struct bad_matmul {
    const char* words;
    spanker_error_kind kind;
    void (*spoil)(request&, matmul_stage&);
};

const bad_matmul bad_matmuls[] = {
    {"the weights operand must be a weights handle", SPANKER_ERR_INVALID,
     [](request&, matmul_stage& one) { one.weights.object = 1; }},
    {"the weights names no object", SPANKER_ERR_NO_OBJECT,
     [](request&, matmul_stage& one) { one.weights.object = 17; }},
    {"x_format 3 is unknown", SPANKER_ERR_INVALID,
     [](request&, matmul_stage& one) { one.x_format = SPK_X_COUNT; }},
    {"matmul mode 0x4 is unknown", SPANKER_ERR_INVALID,
     [](request&, matmul_stage& one) { one.mode = 4; }},
    {"mode EXACT takes X as F32", SPANKER_ERR_INVALID,
     [](request&, matmul_stage& one) {
         one.mode = SPK_MATMUL_EXACT;
         one.x_format = SPK_X_Q8_K;
     }},
    {"X takes 4096 bytes at offset 4", SPANKER_ERR_RANGE,
     [](request&, matmul_stage& one) { one.x.offset = 4; }},
    {"Y takes 1600 bytes at offset 0, but its object has 1596", SPANKER_ERR_RANGE,
     [](request& of, matmul_stage&) { of.objects[2].bytes = 1596; }},
    {"Y starts at offset 6", SPANKER_ERR_INVALID,
     [](request&, matmul_stage& one) { one.y.offset = 6; }},
    {"X must be a buffer or a tensor", SPANKER_ERR_INVALID,
     [](request&, matmul_stage& one) { one.x.object = 0; }},
    {"Y must be a buffer or a tensor", SPANKER_ERR_INVALID,
     [](request&, matmul_stage& one) { one.y.object = 0; }},
    {"X is a tensor of dtype 3", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, matmul_stage&) {
         of.objects[1] = tensor(SPANKER_LAYOUT_REPLICATED, 2, 512, 4, SPK_DTYPE_I32);
     }},
    {"X is k_shard, which needs weights split over k", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, matmul_stage&) { of.objects[1] = tensor(SPANKER_LAYOUT_K_SHARD, 2, 512, 4); }},
    {"X must be a buffer, a replicated tensor", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, matmul_stage&) { of.objects[1] = tensor(SPANKER_LAYOUT_PARTIAL, 2, 512, 4); }},
    {"Y is a tensor of dtype 1; it must be f32", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, matmul_stage&) {
         of.objects[2] = tensor(SPANKER_LAYOUT_PARTIAL, 2, 200, 4, SPK_DTYPE_F16);
     }},
    {"with weights split over rows, a k_shard tensor", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, matmul_stage&) {
         of.objects[2] = tensor(SPANKER_LAYOUT_REPLICATED, 2, 200, 4);
     }},
    {"with these weights, a partial tensor", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, matmul_stage&) {
         of.objects[0] = describe_weights(sharding::k_split, 200, 512, 4).value();
         of.objects[2] = tensor(SPANKER_LAYOUT_K_SHARD, 2, 256, 4);
     }},
    {"load the weights chainable", SPANKER_ERR_SHAPE_MISMATCH,
     [](request& of, matmul_stage&) {
         of.objects[0] = describe_weights(sharding::rows, 768, 512, 4).value();
         of.objects[2] = tensor(SPANKER_LAYOUT_K_SHARD, 2, 768, 4);
     }},
    {"Y starts at offset 4, inside a row of 4096 bytes", SPANKER_ERR_INVALID,
     [](request& of, matmul_stage& one) {
         of.objects[0] = describe_weights(sharding::rows, 1024, 512, 4).value();
         of.objects[2] = tensor(SPANKER_LAYOUT_K_SHARD, 4, 1024, 4);
         one.y.offset = 4;
     }},
    {"X and Y overlap", SPANKER_ERR_INVALID,
     [](request& of, matmul_stage& one) {
         of.objects[1] = describe_buffer(8192);
         one.y = {1, 4092};
     }},
    {"a row must stay below 4 GiB", SPANKER_ERR_BAD_DIMS,
     [](request& of, matmul_stage&) {
         of.objects[0] = describe_weights(sharding::rows, 1u << 30, 512, 4).value();
     }},
};

TEST(matmul_errors, are_of_the_named_kind_and_say_why)
{
    for (const bad_matmul& row : bad_matmuls) {
        request of{{}, {}, first_cards(4)};
        of.add(describe_weights(sharding::rows, 200, 512, 4).value());
        of.add(describe_buffer(4096));
        of.add(describe_buffer(1600));
        matmul_stage one{{0, 0}, {1, 0}, {2, 0}, 2, SPK_X_F32, 0};
        row.spoil(of, one);
        of.stages.push_back(one);
        expect_error(plan_of(ring_of(4), of), row.kind, row.words);
    }
}

TEST(matmul_errors, name_a_card_without_exact)
{
    request of{{}, {}, first_cards(2)};
    of.add(describe_weights(sharding::rows, 8, 256, 2).value());
    of.add(describe_buffer(1024));
    of.add(describe_buffer(32));
    of.stages.push_back(matmul_stage{{0, 0}, {1, 0}, {2, 0}, 1, SPK_X_F32, SPK_MATMUL_EXACT});
    graph fabric = ring_of(2);
    fabric.cards[1].costs.features = SPK_FEATURE_GANG;
    expect_error(plan_of(fabric, of), SPANKER_ERR_NOT_SUPPORTED, "card 1 has no EXACT matmul");
}

TEST(matmul_errors, of_k_split_to_host_memory_need_cables)
{
    request of{{}, {}, first_cards(2)};
    of.add(describe_weights(sharding::k_split, 8, 512, 2).value());
    of.add(describe_buffer(2048));
    of.add(describe_buffer(32));
    of.stages.push_back(matmul_stage{{0, 0}, {1, 0}, {2, 0}, 1, SPK_X_F32, 0});
    expect_error(plan_of(cards_only(2), of), SPANKER_ERR_TOPOLOGY_MISMATCH, "card 0 | card 1");
}

// ---- transfers ----

TEST(transfer_errors, are_of_the_named_kind_and_say_why)
{
    request of{{}, {}, first_cards(2)};
    of.add(tensor(SPANKER_LAYOUT_PARTIAL, 1, 100, 2));
    of.add(describe_buffer(400));
    const auto attempt = [&of](transfer_stage one) {
        of.stages = {one};
        return plan_of(ring_of(2), of);
    };
    expect_error(attempt({true, {0, 0}, {1, 0}, 404, 0}), SPANKER_ERR_RANGE,
                 "the tensor takes 404 bytes");
    expect_error(attempt({true, {0, 0}, {1, 8}, 400, 0}), SPANKER_ERR_RANGE,
                 "the buffer takes 400 bytes at offset 8");
    expect_error(attempt({true, {1, 0}, {0, 0}, 4, 0}), SPANKER_ERR_INVALID,
                 "one tensor and one buffer");
    expect_error(attempt({false, {0, 0}, {1, 0}, 4, 2}), SPANKER_ERR_INVALID,
                 "rank 2 of a partial tensor on 2 cards");
    expect_error(attempt({false, {5, 0}, {1, 0}, 4, 0}), SPANKER_ERR_NO_OBJECT,
                 "the tensor names no object");
}

// ---- describing objects ----

TEST(describe_errors, name_the_dimensions)
{
    const auto words = [](const result<object>& got) {
        return got ? std::string("no error") : got.error().message;
    };
    EXPECT_THAT(words(describe_tensor(SPANKER_LAYOUT_K_SHARD, SPK_DTYPE_F32, 2, 300, 2)),
                HasSubstr("last dim 300"));
    EXPECT_THAT(
        words(describe_tensor(SPANKER_LAYOUT_PARTIAL, SPK_DTYPE_F32, 1ull << 40, 1ull << 40, 2)),
        HasSubstr("overflows"));
    EXPECT_THAT(words(describe_tensor(SPANKER_LAYOUT_PARTIAL, 9, 1, 1, 2)), HasSubstr("dtype 9"));
    EXPECT_THAT(words(describe_tensor(SPANKER_LAYOUT_PARTIAL, 0, 1, 1, 0)),
                HasSubstr("a group of 0 cards"));
    EXPECT_THAT(words(describe_weights(sharding::rows, 4, 0, 1)), HasSubstr("k=0"));
    EXPECT_THAT(words(describe_weights(sharding::rows, 4, 255, 1)), HasSubstr("multiple of 256"));
    EXPECT_THAT(words(describe_weights(sharding::rows, 1ull << 33, 256, 1)),
                HasSubstr("overflows"));
    EXPECT_THAT(words(describe_weights(sharding::whole, 4, 256, 2, false, 2)), HasSubstr("rank 2"));
    EXPECT_THAT(words(describe_weights(sharding::rows, 4, 256, 17)), HasSubstr("17 cards"));
}

}  // namespace
}  // namespace spanker::daemon::collective
