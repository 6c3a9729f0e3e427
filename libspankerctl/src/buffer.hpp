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
    std::atomic<std::uint32_t> handle = 0;  // the daemon's, of the session's generation
    ~spanker_buffer();
};

namespace spanker::lib {

// Registers at the session `path` behind `link`. The caller holds session->objects.
int buffer_register(const spanker_buffer& buffer, const void* who, bus& link,
                    const std::string& path, std::uint32_t& handle);
// A memfd of so many bytes, sealed as operands must be. Its size is whole pages.
int make_memfd(const void* who, std::uint64_t bytes, unique_fd& out);
// Rounded up; saturates at the last whole page below 2^64.
std::uint64_t whole_pages(std::uint64_t bytes);
// A handle as ring entries carry it; 0 stands for none.
int to_handle(const void* who, std::uint64_t from_daemon, const char* method, std::uint32_t& out);

}  // namespace spanker::lib
