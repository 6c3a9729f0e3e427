// SPDX-License-Identifier: Apache-2.0
#include "sim/payload.hpp"

namespace spanker::sim {

payload* payload_pool::take(std::size_t bytes)
{
    std::unique_ptr<payload> out;
    if (free_.empty()) {
        out = std::make_unique<payload>();
    } else {
        out = std::move(free_.back());
        free_.pop_back();
    }
    out->data.resize(bytes);
    out->holders = 1;
    in_use_++;
    return out.release();
}

void payload_pool::drop(payload* what)
{
    if (--what->holders != 0)
        return;
    in_use_--;
    std::unique_ptr<payload> owned(what);
    if (free_.size() < kept && owned->data.capacity() <= kept_bytes)
        free_.push_back(std::move(owned));
}

}  // namespace spanker::sim
