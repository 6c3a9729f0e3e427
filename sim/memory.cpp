// SPDX-License-Identifier: Apache-2.0
#include "sim/memory.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/engine/elementwise.hpp"

namespace spanker::sim {
namespace {

constexpr std::uint64_t page_bytes = 4096;

[[noreturn]] void fail(const char* step, std::uint64_t bytes)
{
    throw std::system_error(errno, std::generic_category(),
                            std::string("card memory of ") + std::to_string(bytes) +
                                " bytes: " + step);
}

}  // namespace

card_memory::card_memory(std::uint64_t bytes) : bytes_(bytes)
{
    fd_ = memfd_create("sail-ddr", MFD_CLOEXEC);
    if (fd_ < 0)
        fail("memfd_create", bytes);
    void* base = MAP_FAILED;
    const char* step = "ftruncate";
    if (ftruncate(fd_, static_cast<off_t>(bytes)) == 0) {
        step = "mmap";
        base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    }
    if (base == MAP_FAILED) {
        const int error = errno;
        close(fd_);
        errno = error;
        fail(step, bytes);
    }
    base_ = static_cast<std::byte*>(base);
}

card_memory::~card_memory()
{
    munmap(base_, bytes_);
    close(fd_);
}

void card_memory::fill(std::uint64_t address, std::uint64_t bytes, std::uint32_t pattern)
{
    const std::uint64_t end = address + bytes;
    const std::uint64_t first_page = (address + page_bytes - 1) / page_bytes * page_bytes;
    const std::uint64_t last_page = end / page_bytes * page_bytes;
    const bool punched =
        pattern == 0 && first_page < last_page &&
        fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first_page),
                  static_cast<off_t>(last_page - first_page)) == 0;
    if (!punched) {
        engine::fill(at(address), bytes, pattern);
        return;
    }
    std::memset(at(address), 0, first_page - address);
    std::memset(at(last_page), 0, end - last_page);
}

std::uint64_t card_memory::resident_bytes() const
{
    struct stat info = {};
    return fstat(fd_, &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0;
}

}  // namespace spanker::sim
