// SPDX-License-Identifier: Apache-2.0
//
// Tensors that travel as file descriptors. A descriptor is the write end of a
// pipe whose read end is kept here: both have one inode, so the descriptor is
// recognised whoever hands it back, and the read end shows when the last copy
// was closed. As long as a copy is open the memory stays.
//
// Threads: with machine::lock held.
#pragma once

#include <sys/types.h>

#include <vector>

#include "daemon/error.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::embedded {

class tensor;

class export_table final {
public:
    ~export_table();

    result<unique_fd> add(tensor& what);
    // INVALID: no exported tensor.
    result<tensor*> find(int fd);
    // Gives back what nobody can import any more.
    void sweep();

private:
    struct entry {
        unique_fd reader;
        dev_t device;
        ino_t inode;
        tensor* what;
    };
    std::vector<entry> entries_;
};

}  // namespace spanker::daemon::embedded
