// SPDX-License-Identifier: Apache-2.0
//
// What an entry may not say, whatever the session holds.
#include "daemon/data/entry.hpp"

#include <gtest/gtest.h>

namespace spanker::daemon::data {
namespace {

spanker_sqe matmul()
{
    spanker_sqe e = {.opcode = SPANKER_SOP_MATMUL};
    e.matmul = {.weights = 1,
                .n_tok = 1,
                .x_handle = 1,
                .y_handle = 1,
                .x_kind = SPANKER_KIND_BUFFER,
                .y_kind = SPANKER_KIND_TENSOR};
    return e;
}

spanker_sqe collective_of(std::uint8_t op)
{
    spanker_sqe e = {.opcode = op};
    e.collective = {.src_kind = SPANKER_KIND_BUFFER, .dst_kind = SPANKER_KIND_TENSOR};
    return e;
}

template <typename F>
spanker_sqe with(spanker_sqe e, F change)
{
    change(e);
    return e;
}

TEST(data_entry, lawful_entries_pass)
{
    const spanker_sqe lawful[] = {
        {.opcode = SPANKER_SOP_NOP},
        matmul(),
        collective_of(SPANKER_SOP_ALL_REDUCE),
        collective_of(SPANKER_SOP_ALL_GATHER),
        with(collective_of(SPANKER_SOP_BROADCAST), [](auto& e) { e.root = 3; }),
        {.opcode = SPANKER_SOP_WRITE_TENSOR},
        {.opcode = SPANKER_SOP_READ_TENSOR},
        {.opcode = SPANKER_SOP_CANCEL},
        {.opcode = SPANKER_SOP_NOP, .flags = SPANKER_SQE_FLAGS},
    };
    for (const spanker_sqe& e : lawful) {
        const auto answer = check_entry(e);
        EXPECT_TRUE(answer) << int{e.opcode} << ": " << answer.error().message;
    }
}

struct unlawful {
    const char* says;
    spanker_error_kind kind;
    spanker_sqe entry;
};

const unlawful table[] = {
    {"unknown opcode 8", SPANKER_ERR_INVALID, {.opcode = SPANKER_SOP_COUNT}},
    {"unknown opcode 255", SPANKER_ERR_INVALID, {.opcode = 255}},
    {"nop: unknown flags", SPANKER_ERR_INVALID, {.opcode = SPANKER_SOP_NOP, .flags = 8}},
    {"nop: it takes no descriptor",
     SPANKER_ERR_INVALID,
     {.opcode = SPANKER_SOP_NOP, .desc_bytes = 1}},
    {"nop: root", SPANKER_ERR_INVALID, {.opcode = SPANKER_SOP_NOP, .root = 1}},
    {"nop: reserved", SPANKER_ERR_INVALID,
     with({.opcode = SPANKER_SOP_NOP}, [](auto& e) { e.raw[4] = 1; })},
    {"matmul: reserved", SPANKER_ERR_INVALID,
     with(matmul(), [](auto& e) { e.matmul.reserved = 1; })},
    {"matmul: X and Y", SPANKER_ERR_INVALID, with(matmul(), [](auto& e) { e.matmul.x_kind = 0; })},
    {"matmul: X and Y", SPANKER_ERR_INVALID,
     with(matmul(), [](auto& e) { e.matmul.y_kind = SPANKER_KIND_WEIGHTS; })},
    {"matmul: unknown format 3", SPANKER_ERR_INVALID,
     with(matmul(), [](auto& e) { e.matmul.x_format = SPK_X_COUNT; })},
    {"matmul: unknown bits in mode 4", SPANKER_ERR_INVALID,
     with(matmul(), [](auto& e) { e.matmul.mode = 4; })},
    {"all_reduce: no group 5", SPANKER_ERR_NO_OBJECT,
     with(collective_of(SPANKER_SOP_ALL_REDUCE), [](auto& e) { e.collective.group = 5; })},
    {"all_gather: src and dst", SPANKER_ERR_INVALID,
     with(collective_of(SPANKER_SOP_ALL_GATHER), [](auto& e) { e.collective.src_kind = 9; })},
    {"all_reduce: unknown dtype 5", SPANKER_ERR_INVALID,
     with(collective_of(SPANKER_SOP_ALL_REDUCE), [](auto& e) { e.collective.dtype = 5; })},
    {"all_reduce: unknown reduction 4", SPANKER_ERR_INVALID,
     with(collective_of(SPANKER_SOP_ALL_REDUCE), [](auto& e) { e.collective.reduce = 4; })},
    {"broadcast: reduce must be zero", SPANKER_ERR_INVALID,
     with(collective_of(SPANKER_SOP_BROADCAST), [](auto& e) { e.collective.reduce = 1; })},
    {"write_tensor: reserved", SPANKER_ERR_INVALID,
     with({.opcode = SPANKER_SOP_WRITE_TENSOR}, [](auto& e) { e.transfer.reserved = 1; })},
    {"cancel: reserved", SPANKER_ERR_INVALID,
     with({.opcode = SPANKER_SOP_CANCEL}, [](auto& e) { e.cancel.reserved[3] = 1; })},
};

TEST(data_entry, unlawful_entries_are_refused_by_name)
{
    for (const unlawful& row : table) {
        const auto answer = check_entry(row.entry);
        ASSERT_FALSE(answer) << row.says;
        EXPECT_EQ(answer.error().kind, row.kind) << row.says;
        EXPECT_NE(answer.error().message.find(row.says), std::string::npos)
            << answer.error().message;
    }
}

}  // namespace
}  // namespace spanker::daemon::data
