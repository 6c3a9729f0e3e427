// SPDX-License-Identifier: Apache-2.0
//
// What a card reaches of its guest's memory: which ranges are granted, which accesses find something.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "vfio_user_bench.hpp"

namespace spanker::sim::vfio_user::bench {
namespace {

constexpr std::uint32_t read_only = VFIO_DMA_MAP_FLAG_READ;
constexpr std::uint32_t read_write = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
constexpr std::uint64_t last_page = ~std::uint64_t{4095};

class vfio_user_dma : public testing::Test {
protected:
    std::string said;
    dma_map it{[this](const std::string& line) { said += line + "\n"; }};
    memory ram{1 << 20};
    unique_fd none;

    static dma_map_request request(std::uint64_t address, std::uint64_t size,
                                   std::uint64_t offset = 0, std::uint32_t flags = read_write)
    {
        return {.argsz = 32, .flags = flags, .offset = offset, .address = address, .bytes = size};
    }
    int map(std::uint64_t address, std::uint64_t size, std::uint64_t offset = 0,
            std::uint32_t flags = read_write)
    {
        return it.map(request(address, size, offset, flags), ram.fd());
    }
    int unmap(std::uint64_t address, std::uint64_t size, std::uint32_t flags = 0)
    {
        return it.unmap({.argsz = 24, .flags = flags, .address = address, .bytes = size});
    }
    bool reads(std::uint64_t address, std::size_t size = 1)
    {
        bytes to(size);
        return it.read(address, to);
    }
    bool writes(std::uint64_t address, std::size_t size = 1)
    {
        const bytes from(size, std::byte{0x5a});
        return it.write(address, from);
    }
};

TEST_F(vfio_user_dma, a_range_is_a_piece_of_its_file)
{
    ram.put(0x3010, std::as_bytes(std::span("hello")));
    ASSERT_EQ(map(0x100000, 0x2000, 0x3000), 0);
    bytes got(6);
    ASSERT_TRUE(it.read(0x100010, got));
    EXPECT_STREQ(reinterpret_cast<const char*>(got.data()), "hello");
    ASSERT_TRUE(writes(0x101fff));
    EXPECT_EQ(*ram.at(0x4fff), std::byte{0x5a});
}

TEST_F(vfio_user_dma, ranges_that_make_no_sense_are_refused)
{
    const struct {
        dma_map_request what;
        int error;
    } table[] = {
        {request(0, 0), EINVAL},
        {request(1, 4096), EINVAL},
        {request(0, 4095), EINVAL},
        {request(0, 4096, 1), EINVAL},
        {request(0, 4096, 0, 0), EINVAL},
        {request(0, 4096, 0, 4), EINVAL},
        {request(0, 4096, 0, read_write | 1u << 31), EINVAL},
        {request(last_page, 8192), EINVAL},
        {request(4096, last_page), EINVAL},
        {request(0, 4096, last_page), EINVAL},
        {request(0, 2 << 20), EINVAL},
        {request(0, 4096, 1 << 20), EINVAL},
        {request(0, std::uint64_t{1} << 60), EINVAL},
    };
    for (const auto& row : table)
        EXPECT_EQ(it.map(row.what, ram.fd()), row.error)
            << std::hex << row.what.address << " " << row.what.bytes << " " << row.what.offset;
    EXPECT_EQ(it.counters().ranges, 0u);
    EXPECT_EQ(it.counters().maps, 0u);
}

TEST_F(vfio_user_dma, the_last_page_of_the_address_space_can_be_mapped)
{
    ASSERT_EQ(map(last_page, 4096), 0);
    EXPECT_TRUE(writes(~std::uint64_t{0}));
    EXPECT_FALSE(writes(~std::uint64_t{0}, 2)) << "addresses do not wrap";
    EXPECT_EQ(map(0, 4096, 4096), 0);
    EXPECT_FALSE(writes(~std::uint64_t{0}, 2)) << "also where the first page is mapped";
    EXPECT_EQ(unmap(last_page, 4096), 0);
}

TEST_F(vfio_user_dma, the_whole_address_space_can_be_mapped_in_two_without_a_file)
{
    const std::uint64_t half = std::uint64_t{1} << 63;
    EXPECT_EQ(it.map(request(0, half), none), 0);
    EXPECT_EQ(it.map(request(half, half), none), 0);
    EXPECT_EQ(map(half, 4096), EEXIST);
    EXPECT_EQ(unmap(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
    EXPECT_EQ(it.counters().ranges, 0u);
    EXPECT_EQ(it.counters().bytes, 0u);
}

TEST_F(vfio_user_dma, overlaps_are_refused_and_neighbours_are_not)
{
    ASSERT_EQ(map(0x10000, 0x4000), 0);
    const struct {
        std::uint64_t address, size;
    } overlaps[] = {{0x10000, 0x4000},
                    {0xf000, 0x2000},
                    {0x13000, 0x2000},
                    {0x11000, 0x1000},
                    {0x8000, 0x10000}};
    for (const auto& one : overlaps)
        EXPECT_EQ(map(one.address, one.size), EEXIST) << std::hex << one.address;
    EXPECT_EQ(map(0xf000, 0x1000), 0);
    EXPECT_EQ(map(0x14000, 0x1000), 0);
    EXPECT_EQ(it.counters().bytes, 0x6000u);
}

TEST_F(vfio_user_dma, files_that_cannot_be_memory_are_refused)
{
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const unique_fd reader(ends[0]), writer(ends[1]), event = new_eventfd();
    EXPECT_EQ(it.map(request(0, 4096), reader), EINVAL);
    EXPECT_EQ(it.map(request(0, 4096), event), EINVAL);
    const unique_fd empty(::memfd_create("empty", MFD_CLOEXEC));
    EXPECT_EQ(it.map(request(0, 4096), empty), EINVAL);
    const std::string path = "/proc/self/fd/" + std::to_string(ram.fd().get());
    const unique_fd look(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(look);
    EXPECT_EQ(it.map(request(0, 4096), look), EACCES);
    EXPECT_EQ(it.map(request(0, 4096, 0, read_only), look), 0);
    EXPECT_TRUE(reads(0));
}

TEST_F(vfio_user_dma, read_only_memory_is_not_written)
{
    ASSERT_EQ(map(0, 4096, 0, read_only), 0);
    ASSERT_EQ(map(4096, 4096, 4096, VFIO_DMA_MAP_FLAG_WRITE), 0);
    EXPECT_TRUE(reads(0));
    EXPECT_FALSE(writes(0));
    EXPECT_EQ(*ram.at(0), std::byte{0});
    EXPECT_TRUE(writes(4096));
    EXPECT_FALSE(reads(4096));
}

TEST_F(vfio_user_dma, an_access_runs_over_ranges_without_a_gap)
{
    ASSERT_EQ(map(0x10000, 0x1000, 0x8000), 0);
    ASSERT_EQ(map(0x11000, 0x1000, 0x2000), 0);
    ASSERT_EQ(map(0x12000, 0x1000, 0x5000), 0);
    ASSERT_TRUE(writes(0x10ff0, 0x1020));
    EXPECT_EQ(*ram.at(0x8fff), std::byte{0x5a});
    EXPECT_EQ(*ram.at(0x2000), std::byte{0x5a});
    EXPECT_EQ(*ram.at(0x2fff), std::byte{0x5a});
    EXPECT_EQ(*ram.at(0x500f), std::byte{0x5a});
    EXPECT_EQ(*ram.at(0x5010), std::byte{0});
    ASSERT_EQ(unmap(0x11000, 0x1000), 0);
    EXPECT_FALSE(writes(0x10ff0, 0x1020));
    EXPECT_EQ(it.counters().faults, 1u);
    EXPECT_EQ(it.counters().last_fault, 0x11000u) << "where it stopped";
}

TEST_F(vfio_user_dma, what_was_unmapped_is_a_fault_that_is_counted_and_told)
{
    ASSERT_EQ(map(0x10000, 0x4000), 0);
    ASSERT_TRUE(writes(0x10000));
    ASSERT_EQ(unmap(0x10000, 0x4000), 0);
    EXPECT_FALSE(writes(0x12345));
    EXPECT_FALSE(reads(0x12345));
    EXPECT_EQ(it.counters().faults, 2u);
    EXPECT_EQ(it.counters().last_fault, 0x12345u);
    EXPECT_NE(said.find("writes 0x12345, which is not mapped"), std::string::npos) << said;
    EXPECT_NE(said.find("reads 0x12345, which is not mapped"), std::string::npos) << said;
}

TEST_F(vfio_user_dma, a_flood_of_faults_is_counted_and_not_told)
{
    for (int i = 0; i < 1000; i++)
        EXPECT_FALSE(reads(0x1000));
    EXPECT_EQ(it.counters().faults, 1000u);
    EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 4);
}

TEST_F(vfio_user_dma, unmap_takes_whole_ranges_and_as_many_as_lie_inside)
{
    for (std::uint64_t at = 0x10000; at < 0x18000; at += 0x2000)
        ASSERT_EQ(map(at, 0x1000, at - 0x10000), 0);
    EXPECT_EQ(unmap(0x10000, 0), EINVAL);
    EXPECT_EQ(unmap(0x10001, 0x1000), EINVAL);
    EXPECT_EQ(unmap(last_page, 0x2000), EINVAL);
    EXPECT_EQ(unmap(0x10000, 0x1000, 8), EINVAL);
    EXPECT_EQ(unmap(0x10000, 0x1000, VFIO_DMA_UNMAP_FLAG_ALL), EINVAL);
    EXPECT_EQ(unmap(0x20000, 0x1000), 0) << "nothing there";
    EXPECT_EQ(it.counters().ranges, 4u);
    EXPECT_EQ(unmap(0x11000, 0x4000), 0);
    EXPECT_EQ(it.counters().ranges, 2u);
    EXPECT_EQ(it.counters().bytes, 0x2000u);
    EXPECT_TRUE(reads(0x10000));
    EXPECT_FALSE(reads(0x12000));
    EXPECT_TRUE(reads(0x16000));
}

TEST_F(vfio_user_dma, unmap_cuts_no_range_in_two)
{
    ASSERT_EQ(map(0x10000, 0x4000), 0);
    for (const auto& [address, size] :
         std::initializer_list<std::pair<std::uint64_t, std::uint64_t>>{{0x11000, 0x1000},
                                                                        {0x10000, 0x3000},
                                                                        {0x11000, 0x3000},
                                                                        {0x8000, 0x9000},
                                                                        {0x13000, 0x8000}})
        EXPECT_EQ(unmap(address, size), EINVAL) << std::hex << address;
    EXPECT_TRUE(reads(0x10000, 0x4000));
    EXPECT_EQ(unmap(0x8000, 0x10000), 0);
    EXPECT_FALSE(reads(0x10000));
}

TEST_F(vfio_user_dma, memory_without_a_file_is_known_and_out_of_reach)
{
    EXPECT_EQ(it.map(request(0xc0000, 0x20000), none), 0);
    EXPECT_EQ(said, "") << "ROM";
    EXPECT_EQ(it.counters().ranges, 1u);
    EXPECT_EQ(map(0xd0000, 0x1000), EEXIST);
    EXPECT_FALSE(reads(0xc0000));
    EXPECT_NE(said.find("not shared with the card"), std::string::npos) << said;
    EXPECT_EQ(unmap(0xc0000, 0x20000), 0);
}

TEST_F(vfio_user_dma, ram_without_a_file_is_told_once_with_the_cure)
{
    EXPECT_EQ(it.map(request(0, 1 << 30), none), 0);
    EXPECT_EQ(it.map(request(1 << 30, 1 << 30), none), 0);
    EXPECT_NE(said.find("memory-backend-memfd,share=on"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST_F(vfio_user_dma, a_file_cut_under_its_mapping_is_a_fault_and_no_crash)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "ThreadSanitizer holds a lock of its own over an atomic store that faults";
#endif
#endif
    ASSERT_EQ(map(0, 1 << 20), 0);
    ASSERT_TRUE(writes(0x80000));
    ASSERT_EQ(::ftruncate(ram.fd().get(), 0x40000), 0);
    EXPECT_FALSE(writes(0x80000));
    EXPECT_FALSE(writes(0x80000, 8)) << "a word";
    EXPECT_FALSE(reads(0x3ff00, 0x1000));
    EXPECT_TRUE(reads(0x3f000, 0x1000)) << "what is left";
    EXPECT_NE(said.find("the file was cut"), std::string::npos) << said;
}

TEST_F(vfio_user_dma, a_file_that_grew_is_mapped_anew)
{
    ASSERT_EQ(map(0, 4096), 0);
    ASSERT_EQ(::ftruncate(ram.fd().get(), 2 << 20), 0);
    EXPECT_EQ(map(1 << 20, 1 << 20, 1 << 20), 0);
    EXPECT_TRUE(writes((2 << 20) - 1));
    EXPECT_TRUE(reads(0)) << "pieces of before stay";
}

TEST_F(vfio_user_dma, pages_of_one_file_cost_one_mapping)
{
    const auto mappings = [] {
        std::size_t count = 0;
        std::ifstream file("/proc/self/maps");
        for (std::string line; std::getline(file, line);)
            count += line.find("memfd:guest") != std::string::npos;
        return count;
    };
    const std::size_t before = mappings();
    for (std::uint64_t page = 0; page < 256; page++)
        ASSERT_EQ(map(page * 8192, 4096, page * 4096), 0);
    EXPECT_EQ(it.counters().ranges, 256u);
    EXPECT_LE(mappings(), before + 1);
    it.unmap_all();
    EXPECT_EQ(mappings(), before) << "and none is left";
}

TEST_F(vfio_user_dma, many_files_do_not_pile_up)
{
    for (int i = 0; i < 500; i++) {
        memory other(4096);
        ASSERT_EQ(it.map(request(0x10000, 4096), other.fd()), 0);
        ASSERT_EQ(unmap(0x10000, 4096), 0);
    }
    std::size_t kept = 0;
    std::ifstream file("/proc/self/maps");
    for (std::string line; std::getline(file, line);)
        kept += line.find("memfd:guest") != std::string::npos;
    EXPECT_LE(kept, 66u);
}

TEST_F(vfio_user_dma, unmap_waits_for_an_access_in_progress)
{
    ASSERT_EQ(map(0, 1 << 20), 0);
    std::atomic<bool> ends{false};
    std::thread card([&] {
        while (!ends) {
            writes(0x1000, 64 << 10);
            writes(0x2000, 8);
        }
    });
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(unmap(0, 1 << 20), 0);
        std::memset(ram.at(0), 0, 128 << 10);
        for (const std::size_t at : {0x1000ul, 0x2000ul, 0x10fffUL})
            ASSERT_EQ(*ram.at(at), std::byte{0}) << "written after unmap returned";
        ASSERT_EQ(map(0, 1 << 20), 0);
    }
    ends = true;
    card.join();
}

}  // namespace
}  // namespace spanker::sim::vfio_user::bench
