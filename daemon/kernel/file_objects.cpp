// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/file_objects.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "daemon/refusals.hpp"

namespace spanker::daemon::kernel {

namespace {

constexpr std::uint64_t granule = 256;
constexpr std::uint64_t bus_base = 1 << 20;

// The scatter list of a buffer that is one piece.
class one_piece final {
public:
    explicit one_piece(std::uint64_t bytes)
    {
        const auto entries = static_cast<u32>(spk_sg_entries_for(bytes));
        const u32 count = spk_sg_pages_for(entries);
        pages_.resize(count);
        starts_.resize(std::size_t{count} * SPK_SG_ENTRIES);
        for (u32 n = 0; n < count; n++)
            slots_.push_back({&pages_[n], bus_base * (n + 1)});
        spk_sg_init(&list_, slots_.data(), count, starts_.data());
        (void)spk_sg_add(&list_, bus_base, bytes);
        (void)spk_sg_seal(&list_);
    }
    one_piece(const one_piece&) = delete;
    one_piece& operator=(const one_piece&) = delete;

    const spk_sg& list() const { return list_; }

private:
    std::vector<spk_sg_page> pages_;
    std::vector<spk_sg_slot> slots_;
    std::vector<u64> starts_;
    spk_sg list_{};
};

}  // namespace

void file_objects::add_tensor(std::uint32_t handle, std::uint64_t bytes)
{
    const std::lock_guard hold(lock_);
    tensors_[handle] = {next_address_, bytes};
    next_address_ += (bytes + granule - 1) / granule * granule;
}

void file_objects::remove_tensor(std::uint32_t handle)
{
    const std::lock_guard hold(lock_);
    tensors_.erase(handle);
}

void file_objects::add_buffer(std::uint32_t handle, std::uint64_t bytes, std::uint32_t access)
{
    const std::lock_guard hold(lock_);
    buffers_[handle] = {bytes, access};
}

void file_objects::remove_buffer(std::uint32_t handle)
{
    const std::lock_guard hold(lock_);
    buffers_.erase(handle);
}

void file_objects::join(std::uint32_t group, const membership& as)
{
    const std::lock_guard hold(lock_);
    groups_[group] = as;
}

void file_objects::leave(std::uint32_t group)
{
    const std::lock_guard hold(lock_);
    groups_.erase(group);
}

// One run of the core's check, with the lock held.
class file_objects::check final {
public:
    explicit check(const file_objects& of) : of_(of) {}

    int run(std::span<const spanker_work_item> items, std::uint32_t index, spk_item_fault& fault)
    {
        const spk_item_env env{.ports = of_.card_.out_ports,
                               .channels = of_.card_.out_channels,
                               .signals = SPK_SIGNALS,
                               .features = of_.card_.out_features,
                               .tensor = find_tensor,
                               .buffer = find_buffer,
                               .group = find_group,
                               .context = this};
        spk_cmd cmd{};
        spk_item_uses uses{};
        return spk_item_translate(&env, items.data(), static_cast<u32>(items.size()), index, &cmd,
                                  &uses, &fault);
    }

private:
    static int find_tensor(void* self, u32 handle, spk_tensor_ref* ref)
    {
        const auto& known = static_cast<check*>(self)->of_.tensors_;
        const auto found = known.find(handle);
        if (found == known.end())
            return -ENOENT;
        *ref = {.object = self, .address = found->second.address, .bytes = found->second.bytes};
        return 0;
    }
    static int find_buffer(void* self, u32 handle, spk_buffer_ref* ref)
    {
        auto* me = static_cast<check*>(self);
        const auto found = me->of_.buffers_.find(handle);
        if (found == me->of_.buffers_.end())
            return -ENOENT;
        const auto& [bytes, access] = found->second;
        me->lists_.push_back(std::make_unique<one_piece>(bytes));
        *ref = {.object = self, .sg = &me->lists_.back()->list(), .bytes = bytes, .access = access};
        return 0;
    }
    static int find_group(void* self, u32 group, spk_group_ref* ref)
    {
        const auto& known = static_cast<check*>(self)->of_.groups_;
        const auto found = known.find(group);
        if (found == known.end())
            return -ENOENT;
        *ref = {.object = self, .domain = group, .cards = found->second.cards, .ports = {}};
        std::copy(found->second.ports.begin(), found->second.ports.end(), ref->ports);
        return 0;
    }

    const file_objects& of_;
    std::vector<std::unique_ptr<one_piece>> lists_;
};

std::optional<error> file_objects::explain(std::span<const spanker_work_item> items,
                                           std::uint32_t index, int err) const
{
    const std::lock_guard hold(lock_);
    spk_item_fault fault{};
    if (index >= items.size() || check(*this).run(items, index, fault) != err || !fault.why)
        return std::nullopt;
    fault.item = index;
    return refusals::item(err, fault, items);
}

}  // namespace spanker::daemon::kernel
