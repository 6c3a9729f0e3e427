// SPDX-License-Identifier: Apache-2.0
//
// Zeroed anonymous pages that a card and this process share: rings and
// scatter lists.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace spanker::daemon::embedded {

class pages final {
public:
    pages() = default;
    // Empty (operator bool) when the system has no memory left.
    explicit pages(std::size_t bytes)
    {
        void* at =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at != MAP_FAILED) {
            data_ = at;
            bytes_ = bytes;
        }
    }
    pages(pages&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0))
    {}
    pages& operator=(pages&& other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~pages()
    {
        if (data_)
            ::munmap(data_, bytes_);
    }

    explicit operator bool() const { return data_ != nullptr; }
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace spanker::daemon::embedded
