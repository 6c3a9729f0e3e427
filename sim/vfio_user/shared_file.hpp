// SPDX-License-Identifier: Apache-2.0
//
// A file of guest memory, mapped whole. A guest's memory arrives in many pieces of few files (behind an IOMMU, a page at a
// time), so each file is mapped once and its pieces refer to it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/unique_fd.hpp"

namespace spanker::sim::vfio_user {

class shared_file final {
public:
    shared_file(std::byte* base, std::uint64_t bytes) : base_(base), bytes_(bytes) {}
    ~shared_file();
    shared_file(const shared_file&) = delete;
    shared_file& operator=(const shared_file&) = delete;

    std::byte* at(std::uint64_t offset) const { return base_ + offset; }
    std::uint64_t size() const { return bytes_; }

private:
    std::byte* base_;
    std::uint64_t bytes_;
};

// The files of one client. Not thread safe.
class shared_files final {
public:
    // The mapping of that file, of at least `bytes`; the descriptor is not kept. Else nothing, and `error` says why:
    //   EINVAL   not a regular file, or shorter than that
    //   EACCES   not open for what is wanted
    //   others   of mmap
    std::shared_ptr<shared_file> find_or_map(const unique_fd& fd, std::uint64_t bytes,
                                             bool writable, int& error);
    void clear() { files_.clear(); }

private:
    struct known_file {
        dev_t device;
        ino_t number;
        bool writable;
        std::shared_ptr<shared_file> mapping;
    };
    void drop_unused();

    std::vector<known_file> files_;
};

}  // namespace spanker::sim::vfio_user
