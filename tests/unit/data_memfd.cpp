// SPDX-License-Identifier: Apache-2.0
//
// What a client may hand over as an operand or as a file of weights.
#include "daemon/data/memfd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <functional>

#include "daemon/unique_fd.hpp"
#include "uapi/spanker.h"

namespace spanker::daemon::data {
namespace {

constexpr int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::uint64_t page = 4096;

unique_fd memfd(int seals = sealed, std::uint64_t bytes = 4 * page)
{
    unique_fd fd(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    if (seals) {
        EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    }
    return fd;
}

unique_fd plain_file()
{
    char name[] = "/var/tmp/spanker-test-XXXXXX";
    unique_fd fd(::mkstemp(name));
    ::unlink(name);
    EXPECT_EQ(::ftruncate(fd.get(), 4 * page), 0);
    return fd;
}

unique_fd pipe_end()
{
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::close(ends[1]);
    return unique_fd(ends[0]);
}

unique_fd socket_end() { return unique_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

unique_fd directory() { return unique_fd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

unique_fd device() { return unique_fd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }

unique_fd event() { return unique_fd(::eventfd(0, EFD_CLOEXEC)); }

struct bad_operand {
    const char* name;
    std::function<unique_fd()> make;
    std::uint64_t offset, bytes;
    std::uint32_t access;
    spanker_error_kind kind;
    const char* says;
};

const bad_operand bad_operands[] = {
    {"plain file", plain_file, 0, page, 3, SPANKER_ERR_NOT_A_MEMFD, "a plain file"},
    {"pipe", pipe_end, 0, page, 3, SPANKER_ERR_NOT_A_MEMFD, "a pipe"},
    {"socket", socket_end, 0, page, 3, SPANKER_ERR_NOT_A_MEMFD, "a socket"},
    {"directory", directory, 0, page, 3, SPANKER_ERR_NOT_A_MEMFD, "a directory"},
    {"device", device, 0, page, 3, SPANKER_ERR_NOT_A_MEMFD, "a character device"},
    {"eventfd", event, 0, page, 3, SPANKER_ERR_NOT_A_MEMFD, "not a memfd"},
    {"no seals", [] { return memfd(0); }, 0, page, 3, SPANKER_ERR_NOT_SEALED, "F_SEAL_SHRINK"},
    {"only grow", [] { return memfd(F_SEAL_GROW); }, 0, page, 3, SPANKER_ERR_NOT_SEALED, "F_SEAL"},
    {"only shrink", [] { return memfd(F_SEAL_SHRINK); }, 0, page, 3, SPANKER_ERR_NOT_SEALED,
     "F_SEAL"},
    {"no access", [] { return memfd(); }, 0, page, 0, SPANKER_ERR_INVALID, "access"},
    {"unknown access", [] { return memfd(); }, 0, page, 4, SPANKER_ERR_INVALID, "access"},
    {"no bytes", [] { return memfd(); }, 0, 0, 3, SPANKER_ERR_INVALID, "whole pages"},
    {"half a page", [] { return memfd(); }, 0, page / 2, 3, SPANKER_ERR_INVALID, "whole pages"},
    {"offset in a page", [] { return memfd(); }, 100, page, 3, SPANKER_ERR_INVALID, "whole pages"},
    {"past the end", [] { return memfd(); }, 0, 5 * page, 3, SPANKER_ERR_RANGE, "16384 bytes"},
    {"starts at the end", [] { return memfd(); }, 4 * page, page, 3, SPANKER_ERR_RANGE, "past"},
    {"sum overflows", [] { return memfd(); }, ~page + 1, 2 * page, 3, SPANKER_ERR_RANGE, "past"},
};

TEST(data_memfd, bad_operands_are_refused_by_name)
{
    for (const auto& row : bad_operands) {
        const unique_fd fd = row.make();
        const auto answer = check_operand_memfd(fd.get(), row.offset, row.bytes, row.access);
        ASSERT_FALSE(answer) << row.name;
        EXPECT_EQ(answer.error().kind, row.kind) << row.name;
        EXPECT_NE(answer.error().message.find(row.says), std::string::npos)
            << row.name << ": " << answer.error().message;
    }
}

TEST(data_memfd, closed_descriptors_are_refused)
{
    EXPECT_FALSE(check_operand_memfd(-1, 0, page, 3));
    EXPECT_FALSE(check_source_file(-1, 0, page));
}

TEST(data_memfd, sealed_memfds_are_taken_up_to_their_last_page)
{
    const unique_fd fd = memfd();
    EXPECT_TRUE(check_operand_memfd(fd.get(), 0, 4 * page, SPANKER_BUFFER_READ));
    EXPECT_TRUE(check_operand_memfd(fd.get(), 3 * page, page, SPANKER_BUFFER_WRITE));
}

TEST(data_memfd, sources_may_be_files_or_memfds_but_no_pipes)
{
    EXPECT_TRUE(check_source_file(plain_file().get(), 5, 100));
    EXPECT_TRUE(check_source_file(memfd(0).get(), 5, 100));
    const auto pipe = check_source_file(pipe_end().get(), 0, 1);
    ASSERT_FALSE(pipe);
    EXPECT_EQ(pipe.error().kind, SPANKER_ERR_INVALID);
    EXPECT_NE(pipe.error().message.find("a pipe"), std::string::npos);
}

TEST(data_memfd, sources_must_hold_the_whole_matrix)
{
    const unique_fd fd = plain_file();
    EXPECT_TRUE(check_source_file(fd.get(), 4 * page - 1, 1));
    EXPECT_EQ(check_source_file(fd.get(), 4 * page, 1).error().kind, SPANKER_ERR_RANGE);
    EXPECT_EQ(check_source_file(fd.get(), ~0ull, 2).error().kind, SPANKER_ERR_RANGE);
}

TEST(data_memfd, write_only_sources_are_denied)
{
    const unique_fd fd(::open("/dev/shm/spanker-test-wo", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ::unlink("/dev/shm/spanker-test-wo");
    ASSERT_EQ(::ftruncate(fd.get(), page), 0);
    EXPECT_EQ(check_source_file(fd.get(), 0, page).error().kind, SPANKER_ERR_DENIED);
}

TEST(data_memfd, only_write_sealed_memfds_are_frozen)
{
    EXPECT_FALSE(check_source_file(plain_file().get(), 0, 1)->frozen);
    EXPECT_FALSE(check_source_file(memfd().get(), 0, 1)->frozen);
    EXPECT_FALSE(check_source_file(memfd(F_SEAL_WRITE).get(), 0, 1)->frozen);  // may still shrink
    EXPECT_TRUE(check_source_file(memfd(sealed | F_SEAL_WRITE).get(), 0, 1)->frozen);
}

}  // namespace
}  // namespace spanker::daemon::data
