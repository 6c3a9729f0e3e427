// SPDX-License-Identifier: Apache-2.0
//
// allreduce: combine one vector per card into the same vector on all. --check uses values whose sums
// are exact, so the answer must agree bit for bit whatever order the cards add in.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "context.hpp"
#include "operands.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

struct options {
    std::string bytes = "1M", reduce = "sum", in, out;
    std::string cards;
    std::uint64_t seed = 1, repeat = 1;
    bool check = false;
};
options o;

struct reduction {
    const char* name;
    spanker_reduce reduce;
    float (*fold)(float, float);
};
constexpr reduction reductions[] = {
    {"sum", SPANKER_SUM, [](float a, float b) { return a + b; }},
    {"prod", SPANKER_PROD, [](float a, float b) { return a * b; }},
    {"min", SPANKER_MIN, [](float a, float b) { return std::min(a, b); }},
    {"max", SPANKER_MAX, [](float a, float b) { return std::max(a, b); }},
};

const reduction& chosen()
{
    return *std::find_if(std::begin(reductions), std::end(reductions),
                         [](const reduction& r) { return o.reduce == r.name; });
}

std::uint64_t element_count()
{
    const auto bytes = parse_bytes(o.bytes);
    if (!bytes || *bytes == 0 || *bytes % sizeof(float) != 0)
        fail(exit_usage,
             fmt::format("--bytes {}: give a positive multiple of 4, e.g. 4096, 64K, 1M", o.bytes));
    return *bytes / sizeof(float);
}

// All ranks' inputs, one after the other.
std::vector<float> make_input(std::size_t ranks, std::uint64_t count)
{
    if (!o.in.empty()) {
        const auto bytes = read_file(o.in, ranks * count * sizeof(float));
        std::vector<float> in(ranks * count);
        std::memcpy(in.data(), bytes.data(), bytes.size());
        return in;
    }
    auto in = exact_summands(ranks * count, o.seed);
    if (chosen().reduce == SPANKER_PROD)  // signs and powers of two multiply exactly
        std::transform(in.begin(), in.end(), in.begin(),
                       [](float v) { return v < 0 ? -0.5F : 2.0F; });
    return in;
}

struct verdict {
    bool ok = true;
    std::size_t rank = 0;
    std::uint64_t element = 0;
};

verdict check(std::span<const float> in, std::span<const float> out, std::size_t ranks,
              std::uint64_t count)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        float expected = in[i];
        for (std::size_t r = 1; r < ranks; ++r)
            expected = chosen().fold(expected, in[r * count + i]);
        for (std::size_t r = 0; r < ranks; ++r) {
            if (std::bit_cast<std::uint32_t>(expected) !=
                std::bit_cast<std::uint32_t>(out[r * count + i]))
                return {false, r, i};
        }
    }
    return {};
}

json to_json(const spanker_result& r, const verdict& v, std::size_t ranks, std::uint64_t count)
{
    json out = document();
    out["cards"] = ranks;
    out["elements"] = count;
    out["bytes"] = count * sizeof(float);
    out["dtype"] = "f32";
    out["reduce"] = o.reduce;
    out["algorithm"] = r.algorithm;
    out["device_ns"] = r.device_ns;
    out["predicted_ns"] = r.predicted_ns;
    out["bound_ns"] = r.bound_ns;
    if (o.check)
        out["check"] = {{"ok", v.ok}};
    return out;
}

void print(const spanker_result& r, const verdict& v, std::size_t ranks, std::uint64_t count)
{
    fmt::print("allreduce {} of f32 ({}) over {} cards: {}\n", bytes_text(count * sizeof(float)),
               o.reduce, ranks, r.algorithm);
    fmt::print("  device time {}, predicted {}, bound {}", time_text(r.device_ns),
               time_text(r.predicted_ns), time_text(r.bound_ns));
    if (r.device_ns != 0)
        fmt::print(" ({:.1f} % of the bound)",
                   100.0 * static_cast<double>(r.bound_ns) / static_cast<double>(r.device_ns));
    fmt::print("\n");
    if (o.check && v.ok)
        fmt::print("  {} on all cards, bit for bit\n", paint("ok", colour::good));
    if (!v.ok)
        fmt::print("  {}: rank {} element {} differs\n", paint("WRONG", colour::bad), v.rank,
                   v.element);
}

// On card tensors, as inference does it: every card holds its summand, every card gets the sum.
spanker_result reduce_on_cards(context& c, session& s, const buffer& host, std::size_t ranks,
                               std::uint64_t count)
{
    const std::uint64_t bytes = count * sizeof(float);
    const tensor partial = must(s.make_tensor(SPANKER_PARTIAL, SPANKER_F32, 1, count));
    const tensor sum = must(s.make_tensor(SPANKER_REPLICATED, SPANKER_F32, 1, count));
    for (std::uint32_t r = 0; r < ranks; ++r)
        if (spanker_tensor_write(partial.get(), 0, host.get(), r * bytes, bytes, r, nullptr) < 0)
            fail(*spanker_last_error(s.get()));
    spanker_result best = {};
    for (std::uint64_t i = 0; i < o.repeat; ++i) {
        const auto r = must(s.all_reduce(partial, sum, count, SPANKER_F32, chosen().reduce,
                                         work_options(0, c.timeout_ns())));
        if (i == 0 || r.device_ns < best.device_ns)
            best = r;
    }
    for (std::uint32_t r = 0; r < ranks; ++r)  // each card's own copy
        if (spanker_tensor_read(sum.get(), 0, host.get(), r * bytes, bytes, r, nullptr) < 0)
            fail(*spanker_last_error(s.get()));
    return best;
}

int run(context& c)
{
    const std::uint64_t count = element_count();
    const auto cards = chosen_cards(o.cards);
    session s = must(c.link().open_session(cards));
    const std::size_t ranks = s.cards().size();
    const auto in = make_input(ranks, count);
    const buffer host = must(s.make_buffer(in.size() * sizeof(float)));
    std::copy(in.begin(), in.end(), host.as<float>().begin());
    const spanker_result r = reduce_on_cards(c, s, host, ranks, count);
    const auto out = host.as<float>().first(in.size());
    if (!o.out.empty())
        write_file(o.out, std::as_bytes(out.first(count)));
    const verdict v = o.check ? check(in, out, ranks, count) : verdict{};
    if (c.wants_json())
        print_json(to_json(r, v, ranks, count), c.mode);
    else if (!c.quiet)
        print(r, v, ranks, count);
    if (!v.ok)
        fmt::print(stderr, "spankerctl: rank {} has a wrong sum at element {}\n", v.rank,
                   v.element);
    return v.ok ? exit_ok : exit_failed;
}

void add_options(CLI::App& app)
{
    app.add_option("--bytes", o.bytes, "size of each card's vector: 4096, 64K, 1M")
        ->type_name("SIZE");
    app.add_option("--reduce", o.reduce, "how elements combine")
        ->check(CLI::IsMember({"sum", "prod", "min", "max"}));
    app.add_option("--in", o.in, "file of f32: each card's vector, one after the other");
    app.add_option("--out", o.out, "write the result here, f32");
    app.add_option("--cards", o.cards, "use only these, e.g. 0,2")->type_name("LIST");
    app.add_option("--seed", o.seed, "of what is made");
    app.add_option("--repeat", o.repeat, "run so often, report the best")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31));
    app.add_flag("--check", o.check, "compare bit for bit (exact only for data made here)");
}

}  // namespace

const verb allreduce_verb = {
    .name = "allreduce",
    .summary = "combine one vector per card into the same on all",
    .options = add_options,
    .run = run,
};

}  // namespace spanker::cli
