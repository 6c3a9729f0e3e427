// SPDX-License-Identifier: Apache-2.0
//
// What is refused at submission: the kind of error, and that it names the item.
#include <ostream>

#include "rig.hpp"

namespace contract {

namespace {

struct objects {
    std::uint32_t tensor, small, buffer;
};

struct bad_item {
    const char* name;
    spanker_work_item (*make)(const objects&);
    int result;
};

void PrintTo(const bad_item& bad, std::ostream* out) { *out << bad.name; }

spanker_work_item matmul(const objects& o)
{
    auto out = item(SPK_OP_MATMUL_Q4_K);
    out.dst.handle = o.small;
    out.src = {.handle = o.tensor, .pitch = 1024, .offset = 0};
    out.aux = {.handle = o.tensor, .pitch = 0, .offset = 65536};
    out.matmul = {
        .n_out = 8, .k = 256, .n_tok = 1, .x_format = SPK_X_F32, .mode = 0, .reserved = {}};
    return out;
}

#define MAKE(start, change) \
    [](const objects& o) {  \
        (void)o;            \
        auto i = start;     \
        change;             \
        return i;           \
    }

const bad_item table[] = {
    {"abort_is_the_drivers", MAKE(nop(), i.opcode = SPK_OP_ABORT), -EINVAL},
    {"unknown_opcode", MAKE(nop(), i.opcode = 200), -EINVAL},
    {"unknown_flag", MAKE(nop(), i.flags = 0x80), -EINVAL},
    {"reserved_dims", MAKE(nop(), i.raw[5] = 1), -EINVAL},
    {"unused_operand", MAKE(nop(), i.dst.handle = o.tensor), -EINVAL},
    {"signal_too_high", MAKE(nop(), i.wait_signal = 256), -EINVAL},
    {"post_signal_too_high", MAKE(nop(), i.post_signal = 1000), -EINVAL},
    {"group_on_a_local_item", MAKE(nop(), i.group = 1), -EINVAL},
    {"unknown_tensor", MAKE(fill(o.tensor, 0, 4, 0), i.dst.handle = 0x7fff0001), -ENOENT},
    {"no_tensor", MAKE(fill(0, 0, 4, 0), ), -ENOENT},
    {"buffer_where_a_tensor_belongs",
     MAKE(fill(o.tensor, 0, 4, 0), i.dst.handle = o.buffer + 0x1000000), -ENOENT},
    {"unknown_buffer", MAKE(dma_in(o.tensor, 0x7fff0001, 4), ), -ENOENT},
    {"past_the_end", MAKE(fill(o.tensor, (1 << 20) - 3, 4, 0), ), -ERANGE},
    {"offset_overflow", MAKE(fill(o.tensor, ~0ull - 1, 4, 0), ), -ERANGE},
    {"length_overflow", MAKE(fill(o.tensor, 16, ~0ull, 0), ), -ERANGE},
    {"empty_fill", MAKE(fill(o.tensor, 0, 0, 0), ), -EINVAL},
    {"buffer_range", MAKE(dma_in(o.tensor, o.buffer, 4097), ), -ERANGE},
    {"rows_past_the_end",
     MAKE(dma_in(o.tensor, o.buffer, 100), i.rows.rows = 50; i.dst.pitch = 100; i.src.pitch = 100),
     -ERANGE},
    {"huge_rows",
     MAKE(dma_in(o.tensor, o.buffer, ~0u), i.rows.rows = ~0u; i.dst.pitch = ~0u; i.src.pitch = ~0u),
     -ERANGE},
    {"overlapping_rows",
     MAKE(dma_in(o.tensor, o.buffer, 100), i.rows.rows = 2; i.dst.pitch = 99; i.src.pitch = 100),
     -EINVAL},
    {"no_rows", MAKE(dma_in(o.tensor, o.buffer, 100), i.rows.rows = 0), -EINVAL},
    {"k_of_a_matmul", MAKE(matmul(o), i.matmul.k = 255), -EINVAL},
    {"weights_past_the_end", MAKE(matmul(o), i.matmul.k = 1 << 30), -ERANGE},
    {"output_too_small", MAKE(matmul(o), i.matmul.n_out = 1000), -ERANGE},
    {"format_of_a_matmul", MAKE(matmul(o), i.matmul.x_format = 3), -EINVAL},
    {"output_over_weights", MAKE(matmul(o), i.dst = i.aux), -EINVAL},
    {"link_without_group",
     MAKE(item(SPK_OP_LINK_FORWARD), i.link.rows = 1; i.link.row_bytes = 4; i.link.rx_ports = 1;
          i.link.tx_ports = 2),
     -ENOENT},
    {"gang_of_a_foreign_group", MAKE(item(SPK_OP_GANG), i.group = 0x7fffffff; i.gang.members = 1),
     -ENOENT},
    {"signals_past_the_last",
     MAKE(item(SPK_OP_SIGNAL_SET), i.signals.first = 255; i.signals.count = 2), -EINVAL},
};

}  // namespace

class errors : public rig, public testing::WithParamInterface<bad_item> {};

TEST_P(errors, refuse_the_item_by_index_and_leave_the_queue_usable)
{
    auto file = open(cards->cards().front());
    bytes memory(4096);
    const objects o{.tensor = alloc(*file, 1 << 20),
                    .small = alloc(*file, 1024),
                    .buffer = share(*file, memory, read_access | write_access)};
    ASSERT_EQ(run(*file, {matmul(o), dma_in(o.tensor, o.buffer, 4096)}).result, 0)
        << "the items that are spoiled here are good";
    const auto refused = file->submit(std::vector{nop(), GetParam().make(o), nop()}, 0);
    ASSERT_FALSE(refused) << "accepted";
    EXPECT_EQ(errno_of(refused), GetParam().result) << text_of(refused);
    EXPECT_EQ(refused.error().detail, 1u);
    EXPECT_NE(text_of(refused).find("item 1"), std::string::npos) << text_of(refused);
    EXPECT_EQ(run(*file, {nop()}).result, 0);
    EXPECT_EQ(errno_of(file->buffer_unregister(share(*file, memory, read_access))), 0);
    EXPECT_EQ(errno_of(file->buffer_unregister(o.buffer)), 0) << "a refused item holds nothing";
}

INSTANTIATE_TEST_SUITE_P(table, errors, testing::ValuesIn(table),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace contract
