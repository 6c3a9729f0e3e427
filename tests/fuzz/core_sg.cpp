// SPDX-License-Identifier: Apache-2.0
//
// Any sequence of runs: every byte is found where a walk over entries and pages finds it.
#include <vector>

#include "core_input.hpp"
#include "kernel/core/sg.h"

namespace {

constexpr std::uint32_t page_count = 3;

struct run {
    u64 bus, bytes, offset;
};

u64 bus_of(const spk_sg_slot* slots, const spk_sg_place& place)
{
    for (std::uint32_t n = 0; n < page_count; n++)
        if (slots[n].bus == place.list) {
            FUZZ_CHECK(place.first < slots[n].page->used);
            FUZZ_CHECK(place.skip < slots[n].page->entry[place.first].bytes);
            return slots[n].page->entry[place.first].address + place.skip;
        }
    FUZZ_CHECK(!"a place on no page of the list");
    return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    fuzz_input in{data, size};
    std::vector<spk_sg_page> pages(page_count);
    std::vector<u64> starts(page_count * SPK_SG_ENTRIES);
    spk_sg_slot slots[page_count];
    for (std::uint32_t n = 0; n < page_count; n++)
        slots[n] = {&pages[n], 0x10000 + n * u64{4096}};
    spk_sg sg;
    spk_sg_init(&sg, slots, page_count, starts.data());

    std::vector<run> runs;
    u64 total = 0, next = 0;
    while (in.size) {
        const auto mode = in.take<std::uint8_t>();
        const u64 bus = mode & 1 ? next : in.take<u64>();
        const u64 bytes = mode & 2 ? 4096 : mode & 4 ? in.take<u64>() : in.take<std::uint16_t>();
        const u64 before = sg.bytes;
        if (spk_sg_add(&sg, bus, bytes)) {
            FUZZ_CHECK(sg.bytes == before);
            continue;
        }
        runs.push_back({bus, bytes, total});
        total += bytes;
        next = bus + bytes;
    }
    FUZZ_CHECK(sg.bytes == total);
    if (spk_sg_seal(&sg)) {
        FUZZ_CHECK(runs.empty());
        return 0;
    }
    for (const run& one : runs)
        for (const u64 within : {u64{0}, one.bytes / 2, one.bytes - 1}) {
            spk_sg_place place;
            FUZZ_CHECK(spk_sg_find(&sg, one.offset + within, &place) == 0);
            FUZZ_CHECK(bus_of(slots, place) == one.bus + within);
        }
    spk_sg_place place;
    FUZZ_CHECK(spk_sg_find(&sg, total, &place) == -ERANGE);
    return 0;
}
