// SPDX-License-Identifier: Apache-2.0
#include "daemon/collective/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "daemon/collective/predict.hpp"

namespace spanker::daemon::collective {

namespace {

// More items than this are not run one by one; about as many milliseconds as thousands.
constexpr std::uint64_t most_exact_items = 3000;
// Slices per chunk of the two short runs: as many as that many items allow, but three and two.
constexpr std::uint64_t items_of_longer = 1500, least_longer = 3;
constexpr std::uint64_t short_pieces = 3, longer_pieces = 5;
constexpr std::uint64_t most_pieces = 64;
constexpr double good_enough = 1.002;

std::uint64_t total_items(const planning& all, const collective_job& job, std::uint64_t elements)
{
    std::uint64_t sum = 0;
    for (const std::uint32_t one : job.items(all.ranks(), elements))
        sum += one;
    return sum;
}

// Elements that give every chunk of every track so many slices of full length.
std::uint64_t elements_for(const collective_job& job, std::uint64_t slices)
{
    std::uint64_t most = 0;
    for (const track& one : job.tracks)
        most = std::max<std::uint64_t>(most, job.slice_elements * one.chunks * one.share_of);
    return most * slices;
}

collective_job unstaged(collective_job job)
{
    for (auto& part : job.part) {
        part.host_in.reset();
        part.copy_from.reset();
        part.host_out.reset();
    }
    job.after = wait_for::previous_stage;
    return job;
}

result<std::uint64_t> run_job(const planning& all, collective_job job, std::uint64_t count)
{
    job.count = count;
    job.after = wait_for::previous_stage;
    plan_builder to(all.what.cards, 1, 1, UINT32_MAX);
    to.begin_stage(0);
    emit(to, job);
    const auto seen = simulate(all.cables, to.finish());
    if (!seen)
        return tl::unexpected(seen.error());
    return seen->total_ns;
}

// The line through two short runs, at job.count.
result<measured> extrapolate(const planning& all, const collective_job& job, std::uint64_t shorter,
                             std::uint64_t longer)
{
    const auto a = run_job(all, job, shorter);
    if (!a)
        return tl::unexpected(a.error());
    const auto b = run_job(all, job, longer);
    if (!b)
        return tl::unexpected(b.error());
    const double per_element = static_cast<double>(*b - *a) / static_cast<double>(longer - shorter);
    const double more = per_element * static_cast<double>(job.count - longer);
    return measured{*b + static_cast<std::uint64_t>(std::llround(more)), false};
}

struct host_times {
    std::uint64_t in = 0, out = 0;
};

// Of the busiest card.
host_times staging(const planning& all, const collective_job& job)
{
    host_times made;
    const std::uint64_t bytes = job.count * job.element_bytes();
    for (std::uint32_t r = 0; r < all.ranks(); ++r) {
        const std::uint64_t rate = all.cables.costs(r).host_bytes_per_s;
        const std::uint64_t rows = job.gathers ? all.ranks() : 1;
        if (job.part[r].host_in)
            made.in = std::max(made.in, time_ns(bytes, rate));
        if (job.part[r].host_out)
            made.out = std::max(made.out, time_ns(bytes * rows, rate));
    }
    return made;
}

// Pieces flow through host link, cables, host link: the slowest sets the pace, the rest shows once.
result<measured> formula(const planning& all, const collective_job& job)
{
    collective_job cables = unstaged(job);
    cables.piece_elements = cables.count;
    auto on_cables = measure(all, cables);
    if (!on_cables)
        return on_cables;
    const host_times host = staging(all, job);
    const std::uint64_t slowest = std::max({host.in, host.out, on_cables->ns});
    const std::uint64_t pieces = std::max<std::uint64_t>(1, job.count / job.piece_elements);
    return measured{slowest + (host.in + host.out + on_cables->ns - slowest) / pieces, false};
}

}  // namespace

result<std::uint32_t> least_block(const planning& all, const collective_job& job)
{
    const rank_counts items = job.items(all.ranks(), std::min(job.count, elements_for(job, 1)));
    const std::uint32_t most = *std::max_element(items.begin(), items.end());
    if (most <= all.limit)
        return most;
    return fail(SPANKER_ERR_NOT_SUPPORTED,
                fmt::format("a queue of depth {} is too short: this collective on {} cards needs "
                            "{} commands in flight on each; open the cards with a deeper queue",
                            all.limit + 1, all.ranks(), most));
}

std::uint64_t most_slice_bytes(const cabling& cables)
{
    std::uint64_t least = UINT64_MAX;
    for (std::uint32_t r = 0; r < cables.size(); ++r)
        least = std::min<std::uint64_t>(least, cables.costs(r).rx_buffer_bytes);
    const std::uint64_t half = least / 2 / SPK_FLIT_BYTES * SPK_FLIT_BYTES;
    return std::max<std::uint64_t>(half, SPK_FLIT_BYTES);
}

std::uint64_t least_slice_bytes(const cabling& cables)
{
    std::uint64_t most = 0;
    for (std::uint32_t r = 0; r < cables.size(); ++r) {
        const card_costs& card = cables.costs(r);
        const double ns = static_cast<double>(card.hop_ns) + card.issue_ns;
        most = std::max(most, static_cast<std::uint64_t>(
                                  static_cast<double>(card.link_bytes_per_s) * ns / 1e9));
    }
    const std::uint64_t flits = (most + SPK_FLIT_BYTES + SPK_FLIT_BYTES - 1) / SPK_FLIT_BYTES;
    return std::min(flits * SPK_FLIT_BYTES, most_slice_bytes(cables));
}

bool is_staged(const collective_job& job)
{
    return std::any_of(job.part.begin(), job.part.end(), [](const auto& part) {
        return part.host_in || part.copy_from || part.host_out;
    });
}

result<measured> measure(const planning& all, const collective_job& job)
{
    if (total_items(all, job, job.count) <= most_exact_items) {
        const auto ns = run_job(all, job, job.count);
        if (!ns)
            return tl::unexpected(ns.error());
        return measured{*ns, true};
    }
    if (!is_staged(job)) {
        collective_job one = job;
        one.piece_elements = job.count;
        const std::uint64_t per_slice = total_items(all, job, elements_for(job, 1));
        const std::uint64_t slices = std::max(least_longer, items_of_longer / per_slice);
        if (elements_for(job, slices) < job.count)
            return extrapolate(all, one, elements_for(job, (slices + 1) / 2),
                               elements_for(job, slices));
        const auto ns = run_job(all, one, job.count);
        if (!ns)
            return tl::unexpected(ns.error());
        return measured{*ns, true};
    }
    const std::uint64_t longer = job.piece_elements * longer_pieces;
    if (longer < job.count &&
        longer_pieces * total_items(all, job, job.piece_elements) <= 2 * most_exact_items)
        return extrapolate(all, job, job.piece_elements * short_pieces, longer);
    return formula(all, job);
}

namespace {

// Slice sizes from the largest down, in elements, as long as they cut the vector anew.
std::vector<std::uint64_t> slice_sizes(const planning& all, const collective_job& job)
{
    const std::uint64_t least = least_slice_bytes(all.cables), unit = job.unit();
    std::vector<std::uint64_t> made;
    std::uint64_t before = 0;
    for (std::uint64_t bytes = most_slice_bytes(all.cables);
         made.empty() || (bytes >= least && made.size() < 4); bytes /= 2) {
        const std::uint64_t elements = std::max(unit, bytes / job.element_bytes() / unit * unit);
        const std::uint64_t slices = slicing(job.tracks[0], job.count, unit, elements).slices();
        if (slices != before)
            made.push_back(elements);
        before = slices;
    }
    return made;
}

schedule without_shift(schedule tracks)
{
    for (track& one : tracks)
        one.shift = 0;
    return tracks;
}

bool shifted(const schedule& tracks)
{
    return std::any_of(tracks.begin(), tracks.end(),
                       [](const track& one) { return one.shift != 0; });
}

// A long job is asked about its longest slices only, and if its short runs are dear once only.
bool worth_asking(const planning& all, const collective_job& job, std::size_t which,
                  const std::vector<choice>& tried)
{
    if (tried.empty() || tried.back().which != which ||
        total_items(all, job, job.count) <= most_exact_items)
        return true;
    return tried.back().slice_elements == job.slice_elements &&
           total_items(all, job, elements_for(job, least_longer)) <= items_of_longer;
}

result<void> try_one(const planning& all, const collective_job& job, std::size_t which,
                     std::vector<choice>& tried)
{
    if (!worth_asking(all, job, which, tried))
        return {};
    const auto time = measure(all, job);
    if (!time)
        return tl::unexpected(time.error());
    tried.push_back({which, job.tracks, job.slice_elements, *time});
    return {};
}

}  // namespace

result<choice> tune(const planning& all, const collective_job& job,
                    std::span<const schedule> candidates)
{
    std::vector<choice> tried;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
        collective_job trial = unstaged(job);
        trial.piece_elements = trial.count;
        trial.tracks = candidates[c];
        for (const std::uint64_t elements : slice_sizes(all, trial)) {
            trial.slice_elements = elements;
            trial.tracks = candidates[c];
            const std::uint64_t slices =
                slicing(trial.tracks[0], trial.count, trial.unit(), elements).slices();
            if (slices > 1 || !shifted(trial.tracks))
                if (auto done = try_one(all, trial, c, tried); !done)
                    return tl::unexpected(done.error());
            if (!shifted(trial.tracks))
                continue;
            trial.tracks = without_shift(std::move(trial.tracks));
            if (auto done = try_one(all, trial, c, tried); !done)
                return tl::unexpected(done.error());
        }
    }
    const auto faster = [](const choice& a, const choice& b) { return a.time.ns < b.time.ns; };
    const std::uint64_t best = std::min_element(tried.begin(), tried.end(), faster)->time.ns;
    const auto good = [best](const choice& one) {
        return static_cast<double>(one.time.ns) <= static_cast<double>(best) * good_enough;
    };
    return *std::find_if(tried.begin(), tried.end(), good);
}

std::uint64_t choose_piece(const planning& all, const collective_job& job, std::uint64_t ns)
{
    if (!is_staged(job))
        return job.count;
    const host_times host = staging(all, job);
    const std::uint64_t sum = host.in + host.out + ns;
    const std::uint64_t slowest = std::max({host.in, host.out, ns});
    // P pieces save (sum - slowest) (1 - 1/P) and cost about a hop and four issues each.
    double overhead = 0;
    for (std::uint32_t r = 0; r < all.ranks(); ++r)
        overhead = std::max(overhead, static_cast<double>(all.cables.costs(r).hop_ns) +
                                          4.0 * all.cables.costs(r).issue_ns);
    const double ideal = std::sqrt(static_cast<double>(sum - slowest) / std::max(overhead, 1.0));
    const std::uint64_t step = std::max<std::uint64_t>(1, elements_for(job, 1));
    const std::uint64_t pieces =
        std::clamp<std::uint64_t>(static_cast<std::uint64_t>(ideal), 1,
                                  std::clamp<std::uint64_t>(job.count / step, 1, most_pieces));
    const std::uint64_t piece = (job.count + pieces - 1) / pieces;
    return pieces == 1 ? job.count : (piece + step - 1) / step * step;
}

}  // namespace spanker::daemon::collective
