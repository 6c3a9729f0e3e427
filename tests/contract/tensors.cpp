// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "rig.hpp"

namespace contract {

class tensors : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            card = cards->cards().front();
            file = open(card);
        }
    }
    std::uint64_t free_bytes() { return cards->info(card)->out_memory_free_bytes; }

    std::uint32_t card = 0;
    std::unique_ptr<card_file> file;
};

TEST_F(tensors, are_handed_out_zeroed_also_where_others_were)
{
    for (unsigned round = 0; round < 4; round++) {
        const auto tensor = alloc(*file, 1 << 20);
        EXPECT_EQ(download(*file, tensor, 1 << 20), bytes(1 << 20)) << "round " << round;
        EXPECT_EQ(run(*file, {fill(tensor, 0, 1 << 20, 0xdeadbeef)}).result, 0);
        EXPECT_EQ(errno_of(file->tensor_free(tensor)), 0);
    }
}

TEST_F(tensors, have_at_least_one_byte_and_at_most_the_cards_memory)
{
    EXPECT_EQ(errno_of(file->tensor_alloc(0)), -EINVAL);
    EXPECT_EQ(errno_of(file->tensor_alloc(cards->info(card)->out_memory_bytes + 1)), -ENOMEM);
    EXPECT_EQ(errno_of(file->tensor_alloc(~0ull)), -ENOMEM);
    EXPECT_NE(alloc(*file, 1), 0u);
}

TEST_F(tensors, may_take_all_memory_and_give_it_back)
{
    settle();
    const auto everything = free_bytes();
    const auto tensor = alloc(*file, everything);
    EXPECT_EQ(errno_of(file->tensor_alloc(1)), -ENOMEM);
    EXPECT_EQ(free_bytes(), 0u);
    EXPECT_EQ(errno_of(file->tensor_free(tensor)), 0);
    EXPECT_EQ(free_bytes(), everything);
    EXPECT_NE(alloc(*file, everything), 0u);
}

TEST_F(tensors, never_overlap)
{
    std::vector<std::uint32_t> handles;
    std::vector<spanker_work_item> work;
    for (std::uint32_t n = 0; n < 40; n++) {
        handles.push_back(alloc(*file, 100 + 300 * n));
        work.push_back(fill(handles.back(), 0, 100 + 300 * n, n * 0x01010101));
    }
    EXPECT_EQ(run(*file, work).result, 0);
    for (std::uint32_t n = 0; n < handles.size(); n++)
        EXPECT_EQ(download(*file, handles[n], 100 + 300 * n),
                  bytes(100 + 300 * n, static_cast<std::uint8_t>(n)));
}

TEST_F(tensors, free_needs_a_handle_of_this_file)
{
    auto other = open(card);
    const auto tensor = alloc(*file, 100);
    EXPECT_EQ(errno_of(other->tensor_free(tensor)), -ENOENT);
    EXPECT_EQ(errno_of(file->tensor_free(0)), -ENOENT);
    EXPECT_EQ(errno_of(file->tensor_free(~0u)), -ENOENT);
    EXPECT_EQ(errno_of(file->tensor_free(tensor)), 0);
    EXPECT_EQ(errno_of(file->tensor_free(tensor)), -ENOENT);
    alloc(*file, 100);
    EXPECT_EQ(errno_of(file->tensor_free(tensor)), -ENOENT) << "an old handle names a new tensor";
}

TEST_F(tensors, freed_in_use_live_until_the_work_is_done)
{
    settle();
    const auto before = free_bytes();
    const auto tensor = alloc(*file, 1 << 16);
    bytes out(1 << 16, 1);
    const auto buffer = share(*file, out, write_access);
    submit(*file, {waiting(fill(tensor, 0, 1 << 16, 0x07070707), 3),
                   waiting(posting(dma_out(buffer, tensor, 1 << 16), 5), 4)});
    EXPECT_EQ(errno_of(file->tensor_free(tensor)), 0);
    EXPECT_EQ(free_bytes(), before - (1 << 16));
    submit(*file, {posting(nop(), 3)});
    submit(*file, {posting(nop(), 4)});
    for (const auto& record : wait(*file, 3))
        EXPECT_EQ(record.result, 0);
    EXPECT_EQ(free_bytes(), before);
}

TEST_F(tensors, are_shared_by_descriptor_on_the_same_card)
{
    auto other = open(card);
    const auto tensor = alloc(*file, 4096);
    upload(*file, tensor, pattern(4096, 1));
    auto exported = file->tensor_export(tensor);
    ASSERT_TRUE(exported) << text_of(exported);
    EXPECT_NE(::fcntl(exported->get(), F_GETFD) & FD_CLOEXEC, 0);
    const auto imported = other->tensor_import(exported->get());
    ASSERT_TRUE(imported) << text_of(imported);
    EXPECT_EQ(download(*other, *imported, 4096), pattern(4096, 1));
    upload(*other, *imported, pattern(4096, 2));
    EXPECT_EQ(download(*file, tensor, 4096), pattern(4096, 2));
}

TEST_F(tensors, live_as_long_as_a_handle_or_a_descriptor)
{
    settle();
    const auto before = free_bytes();
    auto other = open(card);
    const auto tensor = alloc(*file, 4096);
    upload(*file, tensor, pattern(4096, 3));
    auto exported = file->tensor_export(tensor);
    ASSERT_TRUE(exported);
    unique_fd copy(::dup(exported->get()));
    exported->reset();
    EXPECT_EQ(errno_of(file->tensor_free(tensor)), 0);
    file.reset();
    const auto imported = other->tensor_import(copy.get());
    ASSERT_TRUE(imported) << text_of(imported);
    copy.reset();
    EXPECT_EQ(download(*other, *imported, 4096), pattern(4096, 3));
    EXPECT_EQ(free_bytes(), before - 4096);
    EXPECT_EQ(errno_of(other->tensor_free(*imported)), 0);
    EXPECT_EQ(free_bytes(), before);
}

TEST_F(tensors, cannot_be_imported_elsewhere_or_from_anything)
{
    const auto tensor = alloc(*file, 100);
    auto exported = file->tensor_export(tensor);
    ASSERT_TRUE(exported);
    if (card_count() > 1) {
        auto elsewhere = open(cards->cards()[1]);
        EXPECT_EQ(errno_of(elsewhere->tensor_import(exported->get())), -EINVAL);
    }
    const unique_fd null(::open("/dev/null", O_RDWR));
    EXPECT_EQ(errno_of(file->tensor_import(null.get())), -EINVAL);
    EXPECT_NE(errno_of(file->tensor_import(-1)), 0);
    EXPECT_EQ(errno_of(file->tensor_export(tensor + 1)), -ENOENT);
}

TEST_F(tensors, of_a_closed_file_are_given_back)
{
    settle();
    const auto before = free_bytes();
    for (int n = 0; n < 5; n++)
        alloc(*file, 100'000);
    EXPECT_LT(free_bytes(), before);
    file.reset();
    EXPECT_EQ(free_bytes(), before);
}

}  // namespace contract
