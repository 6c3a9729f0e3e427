// SPDX-License-Identifier: Apache-2.0
//
// A mapping holds its file, so a number in the list cannot come to mean another file while it stands there.
#include "sim/vfio_user/shared_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace spanker::sim::vfio_user {
namespace {

constexpr std::size_t kept_files =
    64;  // mappings that nobody uses stay up to here: they are likely to be used again

bool may_map(int fd, bool writable)
{
    const int mode = ::fcntl(fd, F_GETFL) & O_ACCMODE;
    return mode == O_RDWR || (mode == O_RDONLY && !writable);
}

std::shared_ptr<shared_file> map_file(int fd, std::uint64_t bytes, bool writable, int& error)
{
    const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void* base = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        error = errno;
        return nullptr;
    }
    return std::make_shared<shared_file>(static_cast<std::byte*>(base), bytes);
}

}  // namespace

shared_file::~shared_file() { ::munmap(base_, bytes_); }

void shared_files::drop_unused()
{
    std::erase_if(files_, [](const known_file& one) { return one.mapping.use_count() == 1; });
}

std::shared_ptr<shared_file> shared_files::find_or_map(const unique_fd& fd, std::uint64_t bytes,
                                                       bool writable, int& error)
{
    struct stat info = {};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
        bytes > static_cast<std::uint64_t>(info.st_size)) {
        error = EINVAL;
        return nullptr;
    }
    if (!may_map(fd.get(), writable)) {
        error = EACCES;
        return nullptr;
    }
    const auto same = [&](const known_file& one) {
        return one.device == info.st_dev && one.number == info.st_ino && one.writable == writable;
    };
    const auto known = std::find_if(files_.begin(), files_.end(), same);
    if (known != files_.end() && known->mapping->size() >= bytes)
        return known->mapping;
    auto mapping = map_file(fd.get(), static_cast<std::uint64_t>(info.st_size), writable, error);
    if (!mapping)
        return nullptr;
    if (known != files_.end()) {  // it has grown; pieces of before keep what they have
        known->mapping = mapping;
        return mapping;
    }
    if (files_.size() >= kept_files)
        drop_unused();
    files_.push_back({info.st_dev, info.st_ino, writable, mapping});
    return mapping;
}

}  // namespace spanker::sim::vfio_user
