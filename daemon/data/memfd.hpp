// SPDX-License-Identifier: Apache-2.0
//
// What a client may hand us: an operand memfd that cannot shrink under a
// mapping, or a file of weights that is only read.
#pragma once

#include <cstdint>

#include "daemon/error.hpp"

namespace spanker::daemon::data {

// "a pipe", "a socket", "a regular file on a file system"...: for messages.
const char* file_type_name(int fd);

// NOT_A_MEMFD: anything but a memfd. NOT_SEALED: F_SEAL_SHRINK and F_SEAL_GROW
// must both be set. INVALID: offset or bytes not a multiple of the page size
// (huge ones for hugetlb), bytes 0, access without a known bit. RANGE: the
// range ends past the file.
result<void> check_operand_memfd(int fd, std::uint64_t offset, std::uint64_t bytes,
                                 std::uint32_t access);

// A regular file or a memfd that holds [offset, offset + bytes); frozen says
// whether F_SEAL_WRITE and the size seals make its contents final.
struct source_file {
    bool frozen;
};
result<source_file> check_source_file(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace spanker::daemon::data
