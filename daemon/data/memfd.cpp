// SPDX-License-Identifier: Apache-2.0
//
// Seals are asked first: only shmem and hugetlb files have any, so the answer
// tells a memfd from everything else.
#include "daemon/data/memfd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "daemon/data/plane.hpp"

namespace spanker::daemon::data {
namespace {

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string range_text(std::uint64_t offset, std::uint64_t bytes)
{
    return "bytes " + std::to_string(bytes) + " at offset " + std::to_string(offset);
}

result<void> check_range(std::uint64_t offset, std::uint64_t bytes, std::uint64_t file_bytes,
                         const char* what)
{
    std::uint64_t end;
    if (__builtin_add_overflow(offset, bytes, &end) || end > file_bytes)
        return fail(SPANKER_ERR_RANGE, range_text(offset, bytes) + " end past the " + what +
                                           ", which has " + std::to_string(file_bytes) + " bytes");
    return {};
}

// What the kernel knows without asking the file system: a file of FUSE or NFS may never answer.
result<struct statx> status_of(int fd)
{
    struct statx status = {};
    if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &status) != 0)
        return fail(SPANKER_ERR_INVALID, "the file descriptor is not open");
    return status;
}

}  // namespace

const char* file_type_name(int fd)
{
    const auto status = status_of(fd);
    if (!status)
        return "not open";
    switch (status->stx_mode & S_IFMT) {
    case S_IFIFO:
        return "a pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFDIR:
        return "a directory";
    case S_IFCHR:
        return "a character device";
    case S_IFBLK:
        return "a block device";
    case S_IFREG:
        return "a plain file";
    default:
        return "an anonymous inode";
    }
}

result<void> check_operand_memfd(int fd, std::uint64_t offset, std::uint64_t bytes,
                                 std::uint32_t access)
{
    if (access == 0 || (access & ~static_cast<std::uint32_t>(SPANKER_BUFFER_FLAGS)))
        return fail(SPANKER_ERR_INVALID, "access must be \"r\", \"w\" or \"rw\"");
    auto status = status_of(fd);
    if (!status)
        return tl::unexpected(status.error());
    const int seals = S_ISREG(status->stx_mode) ? ::fcntl(fd, F_GET_SEALS) : -1;
    if (seals < 0)
        return fail(SPANKER_ERR_NOT_A_MEMFD,
                    std::string("the buffer is ") + file_type_name(fd) +
                        ", not a memfd; make one with memfd_create(MFD_ALLOW_SEALING)");
    if ((seals & size_seals) != size_seals)
        return fail(SPANKER_ERR_NOT_SEALED,
                    "the memfd lacks F_SEAL_SHRINK or F_SEAL_GROW; set both with "
                    "fcntl(F_ADD_SEALS) before you register it");
    // st_blksize of a hugetlb file is its page size; of shmem at least a page.
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    if (bytes == 0 || offset % page != 0 || bytes % page != 0)
        return fail(SPANKER_ERR_INVALID, range_text(offset, bytes) + " are not whole pages of " +
                                             std::to_string(page) + " bytes");
    return check_range(offset, bytes, status->stx_size, "memfd");
}

result<source_file> check_source_file(int fd, std::uint64_t offset, std::uint64_t bytes)
{
    auto status = status_of(fd);
    if (!status)
        return tl::unexpected(status.error());
    if (!S_ISREG(status->stx_mode))
        return fail(SPANKER_ERR_INVALID, std::string("the weights file is ") + file_type_name(fd) +
                                             "; pass a regular file or a memfd");
    const int mode = ::fcntl(fd, F_GETFL) & O_ACCMODE;
    if (mode == O_WRONLY)
        return fail(SPANKER_ERR_DENIED, "the weights file is open for writing only");
    if (auto fits = check_range(offset, bytes, status->stx_size, "weights file"); !fits)
        return tl::unexpected(fits.error());
    const int seals = ::fcntl(fd, F_GET_SEALS);
    const int final_seals = size_seals | F_SEAL_WRITE;
    return source_file{seals >= 0 && (seals & final_seals) == final_seals};
}

}  // namespace spanker::daemon::data
