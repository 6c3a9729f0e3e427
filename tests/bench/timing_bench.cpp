// SPDX-License-Identifier: Apache-2.0
//
// How fast the event engine predicts, and how near its schedules come to the bound: the fused ring
// AllReduce at several sizes, and a prediction from a few slices as the planner makes it.
#include <chrono>
#include <cstdio>

#include "tests/unit/timing_ring.hpp"

namespace {

using namespace spanker::timing;

struct sample {
    unsigned cards;
    std::uint64_t bytes, slice, events;
    double device_us, bound_percent, wall_us;
};

sample measure(unsigned cards, std::uint64_t bytes, std::uint64_t slice)
{
    world w = ring::make_world(cards);
    const std::uint64_t chunk = bytes / cards;
    const ring::program p = ring::both_ways(cards, chunk, slice, slice / 4, ring::allreduce_slice);
    const auto once = [&] {
        w.clear();
        for (unsigned card = 0; card < cards; ++card)
            w.queue_create(card, 1);
        return ring::run(w, p);
    };
    once();  // memory of the pools
    const std::uint64_t before = w.events();
    const auto start = std::chrono::steady_clock::now();
    const time_ps device = once();
    const auto end = std::chrono::steady_clock::now();
    const double bound_us = 1e6 * (cards - 1) / cards * static_cast<double>(bytes) / 5e8;
    const double device_us = static_cast<double>(device) * 1e-6;
    return {cards,
            bytes,
            slice,
            w.events() - before,
            device_us,
            100 * bound_us / device_us,
            std::chrono::duration<double, std::micro>(end - start).count()};
}

void write_json(std::FILE* to, const std::vector<sample>& samples)
{
    std::fputs("{\"schema\": 1, \"bench\": \"timing\", \"samples\": [", to);
    const char* comma = "";
    for (const sample& s : samples) {
        std::fprintf(to,
                     "%s\n  {\"cards\": %u, \"bytes\": %llu, \"slice\": %llu, \"device_us\": %.3f,"
                     " \"bound_percent\": %.2f, \"events\": %llu, \"wall_us\": %.1f}",
                     comma, s.cards, static_cast<unsigned long long>(s.bytes),
                     static_cast<unsigned long long>(s.slice), s.device_us, s.bound_percent,
                     static_cast<unsigned long long>(s.events), s.wall_us);
        comma = ",";
    }
    std::fputs("\n]}\n", to);
}

}  // namespace

int main(int argc, char** argv)
{
    std::vector<sample> samples;
    std::printf("%5s %10s %7s %12s %8s %9s %10s %10s\n", "cards", "bytes", "slice", "device us",
                "% bound", "events", "wall us", "events/s");
    for (const unsigned cards : {2u, 4u, 8u, 16u}) {
        for (const std::uint64_t bytes : {65536u, 262144u, 1048576u, 16777216u}) {
            const sample s = measure(cards, bytes, 4096);
            std::printf("%5u %10llu %7llu %12.2f %8.2f %9llu %10.0f %10.0f\n", s.cards,
                        static_cast<unsigned long long>(s.bytes),
                        static_cast<unsigned long long>(s.slice), s.device_us, s.bound_percent,
                        static_cast<unsigned long long>(s.events), s.wall_us,
                        static_cast<double>(s.events) / s.wall_us * 1e6);
            samples.push_back(s);
        }
    }
    if (argc < 2)
        return 0;
    std::FILE* to = std::fopen(argv[1], "w");
    if (!to) {
        std::fprintf(stderr, "timing_bench: cannot write %s\n", argv[1]);
        return 1;
    }
    write_json(to, samples);
    return std::fclose(to) == 0 ? 0 : 1;
}
