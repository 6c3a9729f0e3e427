// SPDX-License-Identifier: Apache-2.0
//
// Client pages that vanish under the daemon's feet.
#include "daemon/data/guarded_map.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "daemon/unique_fd.hpp"

namespace spanker::daemon::data {
namespace {

constexpr std::uint64_t page = 4096;

unique_fd memfd(std::uint64_t bytes, unsigned flags = 0)
{
    unique_fd fd(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
    if (fd && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
        ADD_FAILURE() << "ftruncate";
    return fd;
}

std::byte peek(const std::byte* at) { return *const_cast<const volatile std::byte*>(at); }
void touch(std::byte* at) { *const_cast<volatile std::byte*>(at) = std::byte{1}; }

TEST(data_guarded_map, truncated_file_reads_zero_and_is_marked_broken)
{
    const unique_fd fd = memfd(4 * page);
    auto map = guarded_map::map(fd.get(), 0, 4 * page, true, true);
    ASSERT_TRUE(map);
    touch(map->data());
    ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
    EXPECT_FALSE(map->broken());
    touch(map->data() + 3 * page);
    EXPECT_TRUE(map->broken());
    EXPECT_EQ(map->data()[0], std::byte{0});  // the whole mapping was replaced
}

TEST(data_guarded_map, other_mappings_stay_sound)
{
    const unique_fd bad = memfd(page), good = memfd(page);
    auto broken = guarded_map::map(bad.get(), 0, page, false, false);
    auto sound = guarded_map::map(good.get(), 0, page, true, true);
    ASSERT_TRUE(broken && sound);
    touch(sound->data());
    ASSERT_EQ(::ftruncate(bad.get(), 0), 0);
    EXPECT_EQ(peek(broken->data()), std::byte{0});
    EXPECT_TRUE(broken->broken());
    EXPECT_FALSE(sound->broken());
    EXPECT_EQ(sound->data()[0], std::byte{1});
}

TEST(data_guarded_map, any_thread_may_meet_the_fault)
{
    const unique_fd fd = memfd(8 * page);
    auto map = guarded_map::map(fd.get(), 0, 8 * page, true, false);
    ASSERT_TRUE(map);
    ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
    std::thread a([&] { touch(map->data()); }), b([&] { touch(map->data() + 7 * page); });
    a.join();
    b.join();
    EXPECT_TRUE(map->broken());
}

TEST(data_guarded_map, punched_holes_are_zeros_and_no_fault)
{
    const unique_fd fd = memfd(4 * page);
    ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    auto map = guarded_map::map(fd.get(), 0, 4 * page, true, true);
    ASSERT_TRUE(map);
    touch(map->data() + page);
    ASSERT_EQ(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * page), 0);
    EXPECT_EQ(peek(map->data() + page), std::byte{0});
    EXPECT_FALSE(map->broken());
}

TEST(data_guarded_map, pages_that_cannot_be_brought_in_are_an_error)
{
    const unique_fd fd = memfd(page);
    EXPECT_FALSE(guarded_map::map(fd.get(), 0, 4 * page, true, true));
}

TEST(data_guarded_map, a_dry_pool_of_huge_pages_breaks_only_its_mapping)
{
    constexpr std::uint64_t huge = 2u << 20;
    const unique_fd fd = memfd(huge, MFD_HUGETLB);
    if (!fd)
        GTEST_SKIP() << "no huge pages: " << std::strerror(errno);
    auto map = guarded_map::map(fd.get(), 0, huge, true, false);
    if (!map)
        GTEST_SKIP() << "the pool reserves up front: " << map.error().message;
    ASSERT_EQ(::ftruncate(fd.get(), 0), 0);
    touch(map->data());
    EXPECT_TRUE(map->broken());
}

TEST(data_guarded_map, write_sealed_memfds_can_be_read_but_not_written)
{
    const unique_fd fd = memfd(page);
    ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
    EXPECT_TRUE(guarded_map::map(fd.get(), 0, page, false, true));
    const auto writable = guarded_map::map(fd.get(), 0, page, true, true);
    ASSERT_FALSE(writable);
    EXPECT_EQ(writable.error().kind, SPANKER_ERR_DENIED);
    EXPECT_NE(writable.error().message.find("\"r\""), std::string::npos);
}

TEST(data_guarded_map, slots_are_reused)
{
    const unique_fd fd = memfd(page);
    for (std::size_t i = 0; i < 2 * guarded_maps_max; i++)
        ASSERT_TRUE(guarded_map::map(fd.get(), 0, page, false, false)) << i;
}

TEST(data_guarded_map_death, faults_elsewhere_still_end_the_process)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const unique_fd fd = memfd(page);
            auto map = guarded_map::map(fd.get(), 0, page, false, true);
            auto* at = static_cast<std::byte*>(
                ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
            (void)::ftruncate(fd.get(), 0);
            touch(at);
        },
        [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }, "");
}

}  // namespace
}  // namespace spanker::daemon::data
