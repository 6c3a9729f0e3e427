// SPDX-License-Identifier: Apache-2.0
//
// A hash over the values of the run picks candidates, full comparison decides.
#include <algorithm>

#include "daemon/collective/planner.hpp"

namespace spanker::daemon::collective {

namespace {

class hasher {
public:
    void add(std::uint64_t value)
    {
        state_ = (state_ ^ value) * 0x9e3779b97f4a7c15ull;
        state_ ^= state_ >> 29;
    }
    void add(const place& at)
    {
        add(at.object);
        add(at.offset);
    }
    std::uint64_t get() const { return state_; }

private:
    std::uint64_t state_ = 0x243f6a8885a308d3ull;
};

void hash(hasher&, const nop_stage&) {}

void hash(hasher& to, const matmul_stage& one)
{
    to.add(one.weights);
    to.add(one.x);
    to.add(one.y);
    to.add(one.n_tok | std::uint64_t{one.x_format} << 32 | std::uint64_t{one.mode} << 40);
}

void hash(hasher& to, const collective_stage& one)
{
    to.add(static_cast<std::uint64_t>(one.op) | std::uint64_t{one.dtype} << 8 |
           std::uint64_t{one.reduce} << 16 | std::uint64_t{one.root} << 32);
    to.add(one.src);
    to.add(one.dst);
    to.add(one.count);
}

void hash(hasher& to, const transfer_stage& one)
{
    to.add(one.tensor);
    to.add(one.buffer);
    to.add(one.bytes);
    to.add(one.rank | std::uint64_t{one.write} << 32);
}

void hash(hasher& to, const object& one)
{
    to.add(static_cast<std::uint64_t>(one.kind) | static_cast<std::uint64_t>(one.layout) << 8 |
           static_cast<std::uint64_t>(one.split) << 16 | std::uint64_t{one.dtype} << 24 |
           std::uint64_t{one.owner} << 32);
    to.add(one.bytes);
    to.add(one.rows);
    to.add(one.cols);
    to.add(one.extent[0]);
}

std::uint64_t hash_of(std::uint64_t generation, const run& what)
{
    hasher to;
    to.add(generation);
    for (const std::uint32_t card : what.cards)
        to.add(card);
    for (const stage& one : what.stages) {
        to.add(one.index());
        std::visit([&](const auto& kind) { hash(to, kind); }, one);
    }
    for (const object& one : what.objects)
        hash(to, one);
    return to.get();
}

template <typename T>
bool same(std::span<const T> a, const std::vector<T>& b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::size_t kept_items(const plan& of)
{
    std::size_t sum = 1;
    for (const card_plan& card : of.cards)
        sum += card.items.size();
    return sum;
}

}  // namespace

result<std::shared_ptr<const plan>> plan_cache::get(const graph& fabric, const run& what)
{
    const std::uint64_t hash = hash_of(fabric.generation, what);
    {
        const std::lock_guard hold(lock_);
        if (auto found = find_locked(hash, fabric.generation, what)) {
            ++hits_;
            return found;
        }
        ++misses_;
    }
    auto made = make_plan(fabric, what);  // unlocked: it takes its time
    if (!made)
        return tl::unexpected(std::move(made.error()));
    entry fresh{hash,
                fabric.generation,
                {what.stages.begin(), what.stages.end()},
                {what.objects.begin(), what.objects.end()},
                {what.cards.begin(), what.cards.end()},
                std::make_shared<const plan>(std::move(*made)),
                0};
    fresh.items = kept_items(*fresh.made);
    auto handed_out = fresh.made;
    const std::lock_guard hold(lock_);
    insert_locked(std::move(fresh));
    return handed_out;
}

std::shared_ptr<const plan> plan_cache::find_locked(std::uint64_t hash, std::uint64_t generation,
                                                    const run& what)
{
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
        const entry& one = *at->second;
        if (one.generation == generation && same(what.stages, one.stages) &&
            same(what.objects, one.objects) && same(what.cards, one.cards)) {
            entries_.splice(entries_.begin(), entries_, at->second);
            return one.made;
        }
    }
    return nullptr;
}

void plan_cache::insert_locked(entry made)
{
    items_ += made.items;
    entries_.push_front(std::move(made));
    by_hash_.emplace(entries_.front().hash, entries_.begin());
    while (items_ > max_items_ && entries_.size() > 1) {
        const auto oldest = std::prev(entries_.end());
        const auto [first, last] = by_hash_.equal_range(oldest->hash);
        by_hash_.erase(
            std::find_if(first, last, [&](const auto& at) { return at.second == oldest; }));
        items_ -= oldest->items;
        entries_.erase(oldest);
    }
}

void plan_cache::clear()
{
    const std::lock_guard hold(lock_);
    by_hash_.clear();
    entries_.clear();
    items_ = 0;
}

std::size_t plan_cache::size() const
{
    const std::lock_guard hold(lock_);
    return entries_.size();
}

std::uint64_t plan_cache::hits() const
{
    const std::lock_guard hold(lock_);
    return hits_;
}

std::uint64_t plan_cache::misses() const
{
    const std::lock_guard hold(lock_);
    return misses_;
}

}  // namespace spanker::daemon::collective
