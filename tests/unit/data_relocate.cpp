// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/relocate.hpp"

#include <gtest/gtest.h>

namespace spanker::daemon::data {
namespace {

struct bed {
    bed()
    {
        pool.borrow(signals);
        pool.posted(signals[1], 40);
        requests[0].deadline_ns = 1000;
        requests[1].deadline_ns = 2000;
    }
    spanker_work_item move(const spanker_work_item& item, std::uint16_t stage = 0)
    {
        spanker_work_item out;
        relocate({&item, 1}, {&stage, 1},
                 {.handles = handles,
                  .signals = signals,
                  .pool = &pool,
                  .requests = requests,
                  .group = 5,
                  .tag_base = 100,
                  .gang_base = 200,
                  .channel_base = 4,
                  .shift_bytes = 4096,
                  .cookie = 77},
                 &out);
        return out;
    }
    signal_pool pool;
    std::uint16_t signals[2];
    std::uint32_t handles[3] = {11, 22, 33};
    request requests[2];
};

spanker_work_item item(std::uint8_t opcode)
{
    return {.opcode = opcode, .wait_signal = SPK_NO_SIGNAL, .post_signal = SPK_NO_SIGNAL};
}

TEST(data_relocate, objects_become_handles_and_offsets_shift)
{
    spanker_work_item i = item(SPK_OP_DMA_IN);
    i.dst = {.handle = 3, .pitch = 8, .offset = 16};
    i.src = {.handle = 1, .pitch = 0, .offset = 0};
    const auto out = bed().move(i);
    EXPECT_EQ(out.dst.handle, 33u);
    EXPECT_EQ(out.dst.offset, 16u + 4096u);
    EXPECT_EQ(out.src.handle, 11u);
    EXPECT_EQ(out.src.offset, 4096u);
    EXPECT_EQ(out.aux.handle, 0u);  // unused operands stay zero
    EXPECT_EQ(out.aux.offset, 0u);
}

TEST(data_relocate, waits_count_from_the_signals_value)
{
    bed b;
    spanker_work_item i = item(SPK_OP_NOP);
    i.wait_signal = 1;
    i.wait_value = 2;
    i.post_signal = 0;
    const auto out = b.move(i);
    EXPECT_EQ(out.wait_signal, b.signals[1]);
    EXPECT_EQ(out.wait_value, 42u);
    EXPECT_EQ(out.post_signal, b.signals[0]);
}

TEST(data_relocate, messages_get_tags_and_channels_on_the_ends_they_use)
{
    spanker_work_item i = item(SPK_OP_LINK_SEND);
    i.group = 1;
    i.link = {.rows = 1, .row_bytes = 64, .tx_tag = 3, .tx_ports = 2, .tx_channel = 1};
    const auto out = bed().move(i);
    EXPECT_EQ(out.group, 5u);
    EXPECT_EQ(out.link.tx_tag, 103u);
    EXPECT_EQ(out.link.tx_channel, 5u);
    EXPECT_EQ(out.link.rx_tag, 0u);
    EXPECT_EQ(out.link.rx_channel, 0u);
}

TEST(data_relocate, gangs_get_fresh_ids)
{
    spanker_work_item i = item(SPK_OP_GANG);
    i.group = 1;
    i.gang = {.id = 2, .members = 4, .section = 9};
    const auto out = bed().move(i);
    EXPECT_EQ(out.gang.id, 202u);
    EXPECT_EQ(out.gang.members, 4u);
    EXPECT_EQ(out.gang.section, 9u);
}

TEST(data_relocate, each_stage_keeps_its_own_deadline)
{
    bed b;
    EXPECT_EQ(b.move(item(SPK_OP_NOP), 0).deadline_ns, 1000u);
    EXPECT_EQ(b.move(item(SPK_OP_NOP), 1).deadline_ns, 2000u);
    EXPECT_EQ(b.move(item(SPK_OP_NOP)).cookie, 77u);
}

}  // namespace
}  // namespace spanker::daemon::data
