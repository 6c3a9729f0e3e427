// SPDX-License-Identifier: Apache-2.0
//
// The indexed heap of event sources.
#include "timing/containers.hpp"

namespace spanker::timing {

void agenda::set(std::uint32_t source, time_ps when)
{
    const std::uint32_t at = place_[source];
    const entry e = {when, source};
    if (at == absent) {
        if (when == never)
            return;
        heap_.push_back(e);
        rise(static_cast<std::uint32_t>(heap_.size() - 1), e);
    } else if (when == never) {
        erase(at);
    } else if (when < heap_[at].when) {
        rise(at, e);
    } else if (when > heap_[at].when) {
        sink(at, e);
    }
}

void agenda::clear()
{
    for (const entry& e : heap_)
        place_[e.source] = absent;
    heap_.clear();
}

void agenda::place(std::uint32_t at, const entry& e)
{
    heap_[at] = e;
    place_[e.source] = at;
}

void agenda::rise(std::uint32_t at, const entry& e)
{
    while (at > 0) {
        const std::uint32_t parent = (at - 1) / 2;
        if (!e.before(heap_[parent]))
            break;
        place(at, heap_[parent]);
        at = parent;
    }
    place(at, e);
}

void agenda::sink(std::uint32_t at, const entry& e)
{
    const auto count = static_cast<std::uint32_t>(heap_.size());
    for (;;) {
        std::uint32_t child = at * 2 + 1;
        if (child >= count)
            break;
        if (child + 1 < count && heap_[child + 1].before(heap_[child]))
            ++child;
        if (!heap_[child].before(e))
            break;
        place(at, heap_[child]);
        at = child;
    }
    place(at, e);
}

void agenda::erase(std::uint32_t at)
{
    place_[heap_[at].source] = absent;
    const entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size())
        return;
    rise(at, last);
    sink(place_[last.source], last);
}

}  // namespace spanker::timing
