// SPDX-License-Identifier: Apache-2.0
//
// Any sequence of alloc, free and clean on a small heap: blocks never overlap, dirty memory is never handed out, forged
// and stale blocks are refused, and in the end all memory is one hole again.
#include <vector>

#include "core_input.hpp"
#include "kernel/core/heap.h"

namespace {

constexpr u64 granules = 256;

struct world {
    std::vector<spk_region> nodes;
    spk_heap heap{};
    std::vector<std::uint8_t> kind = std::vector<std::uint8_t>(granules, SPK_REGION_DIRTY);
    std::vector<spk_block> used, cleaning, dead;

    explicit world(std::uint32_t node_count) : nodes(node_count)
    {
        FUZZ_CHECK(spk_heap_init(&heap, granules * SPK_HEAP_GRANULE, nodes.data(), node_count) ==
                   0);
    }

    void paint(const spk_block& block, std::uint8_t from, std::uint8_t to)
    {
        for (u64 n = 0; n < block.bytes / SPK_HEAP_GRANULE; n++) {
            auto& at = kind.at(block.address / SPK_HEAP_GRANULE + n);
            FUZZ_CHECK(at == from);
            at = to;
        }
    }

    void alloc(u64 bytes)
    {
        spk_block block;
        const int err = spk_heap_alloc(&heap, bytes, &block);
        FUZZ_CHECK(err == 0 || err == -EAGAIN || err == -ENOMEM || (err == -EINVAL && !bytes));
        if (err)
            return;
        FUZZ_CHECK(block.bytes >= bytes);
        paint(block, SPK_REGION_CLEAN, SPK_REGION_USED);
        used.push_back(block);
    }

    void free(std::size_t index)
    {
        if (used.empty())
            return;
        index %= used.size();
        FUZZ_CHECK(spk_heap_free(&heap, &used[index]) == 0);
        FUZZ_CHECK(spk_heap_free(&heap, &used[index]) == -EINVAL);
        paint(used[index], SPK_REGION_USED, SPK_REGION_DIRTY);
        dead.push_back(used[index]);
        used.erase(used.begin() + static_cast<std::ptrdiff_t>(index));
    }

    void clean_begin(u64 bytes)
    {
        spk_block block;
        if (!spk_heap_clean_begin(&heap, bytes, &block))
            return;
        paint(block, SPK_REGION_DIRTY, SPK_REGION_CLEANING);
        cleaning.push_back(block);
    }

    void clean_end(bool zero)
    {
        if (cleaning.empty())
            return;
        const spk_block block = cleaning.back();
        cleaning.pop_back();
        FUZZ_CHECK(spk_heap_free(&heap, &block) == -EINVAL);
        FUZZ_CHECK(spk_heap_clean_end(&heap, &block, zero) == 0);
        paint(block, SPK_REGION_CLEANING, zero ? SPK_REGION_CLEAN : SPK_REGION_DIRTY);
    }

    void drain()
    {
        while (!used.empty())
            free(0);
        while (!cleaning.empty())
            clean_end(true);
        while (spk_heap_bytes(&heap, SPK_REGION_DIRTY)) {
            clean_begin(~u64{0});
            clean_end(true);
        }
        for (const auto& block : dead)
            FUZZ_CHECK(spk_heap_free(&heap, &block) == -EINVAL);
        FUZZ_CHECK(spk_heap_largest_bytes(&heap) == granules * SPK_HEAP_GRANULE);
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    fuzz_input in{data, size};
    world w(in.take<std::uint8_t>() + 1u);
    while (in.size) {
        const auto what = in.take<std::uint8_t>();
        const auto amount = in.take<std::uint16_t>();
        switch (what % 5) {
        case 0:
            w.alloc(amount);
            break;
        case 1:
            w.free(amount);
            break;
        case 2:
            w.clean_begin(amount);
            break;
        case 3:
            w.clean_end(amount & 1);
            break;
        default:
            spk_block forged{.address = amount * u64{256},
                             .bytes = 256,
                             .node = what / 5u,
                             .serial = amount / 256u};
            bool real = false;
            for (const auto& block : w.used)
                real |= block.address == forged.address && block.node == forged.node &&
                        block.serial == forged.serial;
            if (!real)
                FUZZ_CHECK(spk_heap_free(&w.heap, &forged) == -EINVAL);
        }
    }
    w.drain();
    return 0;
}
