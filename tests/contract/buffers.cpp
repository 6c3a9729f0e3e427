// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.hpp"

namespace contract {

namespace {

unique_fd memfd(std::size_t size, int seals)
{
    unique_fd fd(::memfd_create("contract", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    return fd;
}

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;

buffer_spec of(const unique_fd& fd, std::uint64_t offset, std::uint64_t size, std::uint32_t access)
{
    return {
        .memfd = fd.get(), .address = nullptr, .offset = offset, .bytes = size, .access = access};
}

}  // namespace

class buffers : public rig {
protected:
    void SetUp() override
    {
        rig::SetUp();
        if (!IsSkipped() && !HasFatalFailure())
            file = open(cards->cards().front());
    }
    std::unique_ptr<card_file> file;
};

TEST_F(buffers, a_sealed_memfd_carries_data_both_ways)
{
    const auto fd = memfd(1 << 20, size_seals);
    const auto data = pattern(100'000, 4);
    ASSERT_EQ(::pwrite(fd.get(), data.data(), data.size(), 8192 + 10),
              static_cast<ssize_t>(data.size()));
    const auto buffer =
        file->buffer_register(of(fd, 8192, (1 << 20) - 8192, read_access | write_access));
    ASSERT_TRUE(buffer) << text_of(buffer);
    const auto tensor = alloc(*file, 100'000);
    auto in = dma_in(tensor, *buffer, 100'000);
    in.src.offset = 10;
    auto out = waiting(dma_out(*buffer, tensor, 100'000), 1);
    out.dst.offset = 500'001;
    EXPECT_EQ(run(*file, {posting(in, 1), out}).result, 0);
    bytes got(100'000);
    ASSERT_EQ(::pread(fd.get(), got.data(), got.size(), 8192 + 500'001),
              static_cast<ssize_t>(got.size()));
    EXPECT_EQ(got, data);
}

TEST_F(buffers, memory_that_may_shrink_or_is_no_memfd_is_refused_by_name)
{
    const auto loose = memfd(8192, F_SEAL_GROW);
    auto refused = file->buffer_register(of(loose, 0, 8192, read_access));
    EXPECT_EQ(errno_of(refused), -EBADF);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const unique_fd reader(ends[0]), writer(ends[1]);
    EXPECT_EQ(errno_of(file->buffer_register(of(reader, 0, 4096, read_access))), -EBADF);
}

TEST_F(buffers, a_memfd_sealed_against_writing_is_for_reading)
{
    const auto fd = memfd(8192, size_seals | F_SEAL_WRITE);
    EXPECT_EQ(errno_of(file->buffer_register(of(fd, 0, 8192, write_access))), -EPERM);
    EXPECT_EQ(errno_of(file->buffer_register(of(fd, 0, 8192, read_access))), 0);
}

TEST_F(buffers, must_lie_inside_their_memfd)
{
    const auto fd = memfd(16384, size_seals);
    const struct {
        std::uint64_t offset, size;
        int result;
    } table[] = {
        {0, 16384, 0},       {12288, 4096, 0},
        {0, 16385, -ERANGE}, {4096, 16384, -ERANGE},
        {16384, 1, -ERANGE}, {1 << 20, 4096, -ERANGE},
        {1, 100, -EINVAL},   {0, 0, -EINVAL},
        {0, ~0ull, -EINVAL}, {~0ull - 4095, 8192, -ERANGE},
    };
    for (const auto& row : table)
        EXPECT_EQ(errno_of(file->buffer_register(of(fd, row.offset, row.size, read_access))),
                  row.result)
            << row.offset << " " << row.size;
}

TEST_F(buffers, need_one_kind_of_memory_and_a_known_access)
{
    bytes memory(4096);
    const auto fd = memfd(4096, size_seals);
    auto spec = of(fd, 0, 4096, read_access);
    spec.address = memory.data();
    EXPECT_EQ(errno_of(file->buffer_register(spec)), -EINVAL);
    spec.memfd = -1;
    spec.address = nullptr;
    EXPECT_EQ(errno_of(file->buffer_register(spec)), -EINVAL);
    for (std::uint32_t access : {0u, 4u, ~0u})
        EXPECT_EQ(errno_of(file->buffer_register(of(fd, 0, 4096, access))), -EINVAL) << access;
}

TEST_F(buffers, allow_only_the_access_they_were_registered_for)
{
    bytes memory(4096);
    const auto tensor = alloc(*file, 4096);
    const auto to_read = share(*file, memory, read_access);
    const auto to_write = share(*file, memory, write_access);
    auto refused = file->submit(std::vector{dma_out(to_read, tensor, 4096)}, 0);
    EXPECT_EQ(errno_of(refused), -EPERM);
    refused = file->submit(std::vector{dma_in(tensor, to_write, 4096)}, 0);
    EXPECT_EQ(errno_of(refused), -EPERM);
}

TEST_F(buffers, stay_while_work_uses_them)
{
    bytes memory(4096);
    const auto tensor = alloc(*file, 4096);
    const auto buffer = share(*file, memory, read_access);
    submit(*file, {waiting(dma_in(tensor, buffer, 4096), 9)});
    EXPECT_EQ(errno_of(file->buffer_unregister(buffer)), -EBUSY);
    submit(*file, {posting(nop(), 9)});
    wait(*file, 2);
    EXPECT_EQ(errno_of(file->buffer_unregister(buffer)), 0);
    EXPECT_EQ(errno_of(file->buffer_unregister(buffer)), -ENOENT);
    EXPECT_EQ(errno_of(file->submit(std::vector{dma_in(tensor, buffer, 4096)}, 0)), -ENOENT);
}

TEST_F(buffers, belong_to_one_file)
{
    auto other = open(cards->cards().front());
    bytes memory(4096);
    const auto buffer = share(*file, memory, read_access);
    EXPECT_EQ(errno_of(other->buffer_unregister(buffer)), -ENOENT);
    const auto tensor = alloc(*other, 4096);
    EXPECT_EQ(errno_of(other->submit(std::vector{dma_in(tensor, buffer, 4096)}, 0)), -ENOENT);
}

TEST_F(buffers, may_start_and_end_anywhere_in_a_page)
{
    bytes memory = pattern(30'000, 6);
    const auto tensor = alloc(*file, 30'000);
    const auto buffer = file->buffer_register({.memfd = -1,
                                               .address = memory.data() + 123,
                                               .offset = 0,
                                               .bytes = 20'001,
                                               .access = read_access});
    ASSERT_TRUE(buffer) << text_of(buffer);
    auto in = dma_in(tensor, *buffer, 20'000);
    in.src.offset = 1;
    EXPECT_EQ(run(*file, {in}).result, 0);
    EXPECT_EQ(download(*file, tensor, 20'000),
              bytes(memory.begin() + 124, memory.begin() + 20'124));
}

}  // namespace contract
