// SPDX-License-Identifier: Apache-2.0
//
// A buffer: host memory in a sealed memfd, mapped here, registered at the daemon.
#pragma once

#include "session.hpp"

struct spanker_buffer {
    spanker_session* session = nullptr;
    spanker::lib::unique_fd memfd;
    std::uint64_t offset = 0;  // into the memfd
    std::uint64_t bytes = 0;   // as asked for
    std::uint64_t mapped = 0;  // whole pages
    spanker_access access = SPANKER_ACCESS_READ_WRITE;
    void* data = nullptr;
    std::uint64_t handle = 0;  // the daemon's
    ~spanker_buffer();
};

namespace spanker::lib {

// Registers (again) at the daemon; the caller holds session->objects or owns the session alone.
int buffer_register(spanker_buffer* buffer, const void* who);
// A memfd of so many bytes, sealed as operands must be. Its size is whole pages.
int make_memfd(const void* who, std::uint64_t bytes, unique_fd& out);
std::uint64_t whole_pages(std::uint64_t bytes);

}  // namespace spanker::lib
