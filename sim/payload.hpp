// SPDX-License-Identifier: Apache-2.0
//
// The bytes of messages on the wire. One payload may travel over several ports and on through several cards; the last
// message to let go returns it to the pool, which keeps a few so that a steady state allocates nothing.
//
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace spanker::sim {

struct payload {
    std::vector<std::byte> data;
    unsigned holders = 0;  // messages that carry it
};

class payload_pool final {
public:
    // `bytes` of undefined content, with one holder: the caller.
    payload* take(std::size_t bytes);
    void hold(payload* what) { what->holders++; }
    void drop(payload* what);

    std::size_t in_use() const { return in_use_; }

private:
    static constexpr std::size_t kept = 64;
    static constexpr std::size_t kept_bytes = 1 << 20;

    std::vector<std::unique_ptr<payload>> free_;
    std::size_t in_use_ = 0;
};

}  // namespace spanker::sim
