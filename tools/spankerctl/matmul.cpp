// SPDX-License-Identifier: Apache-2.0
//
// matmul: Y = X . W^T on the cards, W in Q4_K. Operands from files or from a seed; --check holds the
// answer against an f64 reference that shares nothing with the cards.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "context.hpp"
#include "operands.hpp"
#include "progress_bar.hpp"
#include "tools/reference/q4k_reference.hpp"
#include "tools/reference/q8k_reference.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

// Normalised mean square error that a right answer stays below (docs/card.md, MATMUL).
constexpr double limit_quantised = 1e-8;  // against the exact result of the quantised X
constexpr double limit_f32 = 5e-4;        // against the exact result of X itself
constexpr double limit_exact = 1e-9;      // --exact: X is not quantised

struct options {
    std::uint64_t rows = 4096, cols = 4096, tokens = 1, seed = 1, repeat = 1;
    std::string weights, x, out, sharding = "auto";
    std::string cards;
    bool exact = false, check = false;
};
options o;

struct verdict {
    double nmse = 0, nmse_quantised = 0;
    bool ok = true;
};

spanker_sharding to_sharding(const std::string& name)
{
    if (name == "rows")
        return SPANKER_SHARD_ROWS;
    if (name == "k")
        return SPANKER_SHARD_K;
    return name == "whole" ? SPANKER_SHARD_WHOLE : SPANKER_SHARD_AUTO;
}

void check_sizes()
{
    std::uint64_t w = 0, x = 0, y = 0;
    if (o.cols % SPANKER_QK_K != 0)
        fail(exit_usage, fmt::format("--cols {} is not a multiple of {}", o.cols, SPANKER_QK_K));
    if (__builtin_mul_overflow(o.rows, o.cols, &w) ||
        __builtin_mul_overflow(o.tokens, o.cols, &x) ||
        __builtin_mul_overflow(o.tokens, o.rows, &y) || std::max({w, x, y}) > UINT64_MAX / 8)
        fail(exit_usage, fmt::format("{} x {} with {} tokens is larger than 64 bits can say",
                                     o.rows, o.cols, o.tokens));
}

std::vector<std::byte> make_weights()
{
    const std::size_t bytes = o.rows * (o.cols / SPANKER_QK_K) * SPANKER_Q4_K_BLOCK_BYTES;
    return o.weights.empty() ? q4k_weights(o.rows, o.cols, o.seed) : read_file(o.weights, bytes);
}

std::vector<float> make_x()
{
    if (o.x.empty())
        return gaussian(o.tokens * o.cols, o.seed + 0x5eed);
    const auto bytes = read_file(o.x, o.tokens * o.cols * sizeof(float));
    std::vector<float> x(o.tokens * o.cols);
    std::memcpy(x.data(), bytes.data(), bytes.size());
    return x;
}

verdict check(std::span<const std::byte> w, std::span<const float> x, std::span<const float> y)
{
    const reference::shape shape = {o.rows, o.cols, o.tokens};
    verdict v;
    v.nmse = reference::nmse(reference::matmul(w, x, shape), y);
    if (o.exact) {
        v.ok = v.nmse <= limit_exact;
        return v;
    }
    v.nmse_quantised = reference::nmse(reference::matmul(w, reference::through_q8k(x), shape), y);
    v.ok = v.nmse <= limit_f32 && v.nmse_quantised <= limit_quantised;
    return v;
}

json to_json(const spanker_result& r, const verdict& v)
{
    json out = document();
    out["rows"] = o.rows;
    out["cols"] = o.cols;
    out["tokens"] = o.tokens;
    out["algorithm"] = r.algorithm;
    out["device_ns"] = r.device_ns;
    out["predicted_ns"] = r.predicted_ns;
    out["bound_ns"] = r.bound_ns;
    if (o.check) {
        out["check"] = {{"ok", v.ok}, {"nmse", v.nmse}};
        out["check"]["nmse_quantised"] = o.exact ? json(nullptr) : json(v.nmse_quantised);
    }
    return out;
}

void print(const spanker_result& r, const verdict& v)
{
    fmt::print("matmul {} x {}, {} token{}: {}\n", o.rows, o.cols, o.tokens,
               o.tokens == 1 ? "" : "s", r.algorithm);
    fmt::print("  device time {}, predicted {}, bound {}\n", time_text(r.device_ns),
               time_text(r.predicted_ns), time_text(r.bound_ns));
    if (!o.check)
        return;
    fmt::print("  {} against the f64 reference: NMSE {:.2e}",
               v.ok ? paint("ok", colour::good) : paint("WRONG", colour::bad), v.nmse);
    if (o.exact)
        fmt::print(" (limit {:.0e})\n", limit_exact);
    else
        fmt::print(" (limit {:.0e}), of the quantised X {:.2e} (limit {:.0e})\n", limit_f32,
                   v.nmse_quantised, limit_quantised);
}

weights load(const context& c, session& s, std::span<const std::byte> w)
{
    progress_bar bar("loading weights", c.quiet ? -1 : STDERR_FILENO);
    const auto told = [](void* data, double fraction) {
        static_cast<progress_bar*>(data)->show(fraction);
    };
    return must(s.load(w, o.rows, o.cols, {to_sharding(o.sharding), c.timeout_ns(), told, &bar}));
}

int run(context& c)
{
    check_sizes();
    const auto cards = chosen_cards(o.cards);
    const auto w = make_weights();
    const auto x = make_x();
    session s = must(c.link().open_session(cards));
    const weights loaded = load(c, s, w);
    const buffer bx = must(s.make_buffer(x.size() * sizeof(float), SPANKER_ACCESS_READ));
    const buffer by = must(s.make_buffer(o.tokens * o.rows * sizeof(float), SPANKER_ACCESS_WRITE));
    std::copy(x.begin(), x.end(), bx.as<float>().begin());
    const work_options work(o.exact ? SPANKER_EXACT : 0, c.timeout_ns());
    spanker_result best = {};
    for (std::uint64_t i = 0; i < o.repeat; ++i) {
        const spanker_result r = must(s.matmul(loaded, bx, by, o.tokens, SPANKER_X_F32, work));
        if (i == 0 || r.device_ns < best.device_ns)
            best = r;
    }
    const auto y = by.as<float>().first(o.tokens * o.rows);
    if (!o.out.empty())
        write_file(o.out, std::as_bytes(y));
    const verdict v = o.check ? check(w, x, y) : verdict{};
    if (c.wants_json())
        print_json(to_json(best, v), c.mode);
    else if (!c.quiet)
        print(best, v);
    if (!v.ok)
        fmt::print(
            stderr,
            "spankerctl: the cards' answer is wrong; spankerctl selftest finds out which card\n");
    return v.ok ? exit_ok : exit_failed;
}

void add_options(CLI::App& app)
{
    const auto positive = CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31);
    app.add_option("--rows", o.rows, "outputs, rows of W")->check(positive);
    app.add_option("--cols", o.cols, "inputs, columns of W; a multiple of 256")->check(positive);
    app.add_option("--tokens", o.tokens, "rows of X")->check(positive);
    app.add_option("--weights", o.weights,
                   "file of Q4_K blocks, packed rows; default: made from the seed");
    app.add_option("--x", o.x, "file of f32, tokens x cols; default: made from the seed");
    app.add_option("--out", o.out, "write Y here, f32, tokens x rows");
    app.add_option("--sharding", o.sharding, "how W is split over the cards")
        ->check(CLI::IsMember({"auto", "rows", "k", "whole"}));
    app.add_option("--cards", o.cards, "use only these, e.g. 0,2")->type_name("LIST");
    app.add_option("--seed", o.seed, "of what is made");
    app.add_option("--repeat", o.repeat, "run so often, report the best")->check(positive);
    app.add_flag("--exact", o.exact, "do not quantise X on the card");
    app.add_flag("--check", o.check, "compare with an f64 reference");
}

}  // namespace

const verb matmul_verb = {
    .name = "matmul",
    .summary = "multiply Q4_K weights with activations on the cards",
    .options = add_options,
    .run = run,
};

}  // namespace spanker::cli
