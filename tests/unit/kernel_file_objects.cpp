// SPDX-License-Identifier: Apache-2.0
//
// The hardware backend puts a refusal into the same words as the embedded one: both are asked about the same items, over
// objects with the same handles.
#include "daemon/kernel/file_objects.hpp"

#include <gtest/gtest.h>

#include <array>

#include "daemon/backend.hpp"

namespace {

using namespace spanker::daemon;
using kernel::file_objects;

constexpr std::uint64_t tensor_bytes = 1 << 20, small_bytes = 1024, buffer_bytes = 10'000;

spanker_work_item item(spk_opcode opcode)
{
    spanker_work_item out{};
    out.opcode = static_cast<std::uint8_t>(opcode);
    out.wait_signal = out.post_signal = SPK_NO_SIGNAL;
    return out;
}

struct file_objects_test : testing::Test {
    std::unique_ptr<backend> cards;
    std::unique_ptr<card_file> file;
    std::unique_ptr<channel_group> group;
    std::unique_ptr<file_objects> known;
    std::uint32_t tensor = 0, small = 0, buffer = 0;
    std::array<std::uint8_t, buffer_bytes> memory{};

    void SetUp() override
    {
        auto made =
            make_embedded_backend({.cards = 2, .topology = "ring", .card_memory_bytes = 16 << 20});
        ASSERT_TRUE(made) << made.error().message;
        cards = std::move(*made);
        file = std::move(*cards->open(0, 16));
        tensor = *file->tensor_alloc(tensor_bytes);
        small = *file->tensor_alloc(small_bytes);
        buffer = *file->buffer_register({.memfd = -1,
                                         .address = memory.data(),
                                         .offset = 0,
                                         .bytes = buffer_bytes,
                                         .access = SPANKER_BUFFER_READ});
        const spanker::daemon::group_member alone{.file = file.get(), .port_mask = 1, .channel = 2};
        group = std::move(*cards->group_create({&alone, 1}));
        known = std::make_unique<file_objects>(*file->info());
        known->add_tensor(tensor, tensor_bytes);
        known->add_tensor(small, small_bytes);
        known->add_buffer(buffer, buffer_bytes, SPANKER_BUFFER_READ);
        kernel::membership as{.cards = 1, .ports = {}};
        as.ports[2] = 1;
        known->join(group->id(), as);
    }

    spanker_work_item fill(std::uint64_t offset, std::uint64_t bytes) const
    {
        auto out = item(SPK_OP_FILL);
        out.dst = {.handle = tensor, .pitch = 0, .offset = offset};
        out.fill.bytes = bytes;
        return out;
    }
    spanker_work_item dma(spk_opcode opcode, std::uint64_t offset, std::uint32_t bytes) const
    {
        auto out = item(opcode);
        out.dst.handle = tensor;
        out.src = {.handle = buffer, .pitch = 0, .offset = offset};
        if (opcode == SPK_OP_DMA_OUT)
            std::swap(out.dst, out.src);
        out.rows.rows = 1;
        out.rows.row_bytes = bytes;
        return out;
    }
    spanker_work_item send(std::uint8_t ports, std::uint8_t channel) const
    {
        auto out = item(SPK_OP_LINK_SEND);
        out.group = group->id();
        out.src.handle = tensor;
        out.link.rows = 1;
        out.link.row_bytes = 64;
        out.link.tx_ports = ports;
        out.link.tx_channel = channel;
        return out;
    }
    std::vector<spanker_work_item> bad_items() const
    {
        std::vector<spanker_work_item> out;
        const auto add = [&](spanker_work_item what, auto change) {
            change(what);
            out.push_back(what);
        };
        add(item(SPK_OP_NOP), [](auto& i) { i.opcode = 200; });
        add(item(SPK_OP_NOP), [](auto& i) { i.flags = 0x80; });
        add(item(SPK_OP_NOP), [](auto& i) { i.wait_signal = SPK_SIGNALS; });
        add(item(SPK_OP_NOP), [](auto& i) { i.group = 1; });
        add(fill(tensor_bytes - 3, 4), [](auto&) {});
        add(fill(~0ull - 1, 4), [](auto&) {});
        add(fill(0, 4), [](auto& i) { i.dst.handle = 0x7fff0001; });
        add(dma(SPK_OP_DMA_IN, 0, buffer_bytes + 1), [](auto&) {});
        add(dma(SPK_OP_DMA_IN, buffer_bytes, 1), [](auto&) {});
        add(dma(SPK_OP_DMA_OUT, 0, 100), [](auto&) {});  // the buffer is for reading
        add(dma(SPK_OP_DMA_IN, 0, 100), [](auto& i) { i.rows.rows = 0; });
        add(item(SPK_OP_COPY), [&](auto& i) {  // rows that overlap
            i.dst = {.handle = small, .pitch = 4, .offset = 0};
            i.src = {.handle = tensor, .pitch = 8, .offset = 0};
            i.rows.rows = 2;
            i.rows.row_bytes = 8;
        });
        add(send(1, 3), [](auto&) {});  // a channel of others
        add(send(2, 2), [](auto&) {});  // a port of others
        add(send(1, 2), [](auto& i) { i.group = 0x7fffffff; });
        add(item(SPK_OP_GANG), [&](auto& i) {
            i.group = group->id();
            i.gang.members = 9;
        });
        return out;
    }
};

TEST_F(file_objects_test, say_the_same_as_the_driver_that_runs_here)
{
    for (const spanker_work_item& bad : bad_items()) {
        const std::vector batch{item(SPK_OP_NOP), bad, item(SPK_OP_NOP)};
        const auto refused = file->submit(batch, 0);
        ASSERT_FALSE(refused) << "accepted: opcode " << unsigned{bad.opcode};
        const auto words = known->explain(batch, 1, refused.error().negative_errno());
        ASSERT_TRUE(words) << refused.error().message;
        EXPECT_EQ(words->message, refused.error().message);
        EXPECT_EQ(words->kind, refused.error().kind);
        EXPECT_EQ(words->detail, 1u);
    }
}

TEST_F(file_objects_test, have_no_words_for_what_is_good_or_refused_for_another_reason)
{
    const std::vector good{send(1, 2), fill(0, tensor_bytes), dma(SPK_OP_DMA_IN, 0, buffer_bytes)};
    for (std::uint32_t n = 0; n < good.size(); n++)
        EXPECT_FALSE(known->explain(good, n, -EINVAL)) << n;
    EXPECT_FALSE(known->explain(good, 3, -EINVAL));
    const std::vector bad{fill(tensor_bytes, 1)};
    EXPECT_TRUE(known->explain(bad, 0, -ERANGE));
    EXPECT_FALSE(known->explain(bad, 0, -ENOENT)) << "the driver saw something else";
}

TEST_F(file_objects_test, forget_what_was_given_back)
{
    const std::vector batch{fill(0, 4), dma(SPK_OP_DMA_IN, 0, 4), send(1, 2)};
    known->remove_buffer(buffer);
    EXPECT_TRUE(known->explain(batch, 1, -ENOENT));
    known->leave(group->id());
    EXPECT_TRUE(known->explain(batch, 2, -ENOENT));
    known->remove_tensor(tensor);
    EXPECT_TRUE(known->explain(batch, 0, -ENOENT));
}

}  // namespace
