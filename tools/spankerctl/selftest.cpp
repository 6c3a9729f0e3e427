// SPDX-License-Identifier: Apache-2.0
//
// selftest: known answers on every card (memory, multiply) and over every link (a sum between its two
// ends, both directions), each on its own so that what fails has a name. Then one AllReduce over all.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "context.hpp"
#include "operands.hpp"
#include "tools/reference/q4k_reference.hpp"
#include "tools/reference/q8k_reference.hpp"
#include "units.hpp"

namespace spanker::cli {
namespace {

struct outcome {
    std::string name, what;
    bool ok;
    std::string message;
    std::uint64_t device_ns;
};

// Thrown by a test whose answer is wrong.
struct wrong {
    std::string message;
};

constexpr std::uint64_t pattern_bytes = 1u << 20;
constexpr std::uint64_t link_elements = 16384;

std::uint64_t test_memory(session& s)
{
    const buffer host = must(s.make_buffer(2 * pattern_bytes));
    const tensor card = must(s.make_tensor(SPANKER_REPLICATED, SPANKER_I8, 1, pattern_bytes));
    const auto bytes = host.as<std::byte>();
    const auto values = exact_summands(pattern_bytes / sizeof(float), 7);
    const auto pattern = std::as_bytes(std::span(values));
    std::copy(pattern.begin(), pattern.end(), bytes.begin());
    if (spanker_tensor_write(card.get(), 0, host.get(), 0, pattern_bytes, 0, nullptr) < 0 ||
        spanker_tensor_read(card.get(), 0, host.get(), pattern_bytes, pattern_bytes, 0, nullptr) <
            0)
        fail(*spanker_last_error(s.get()));
    const auto [a, b] =
        std::mismatch(bytes.begin(), bytes.begin() + pattern_bytes, bytes.begin() + pattern_bytes);
    if (a != bytes.begin() + pattern_bytes)
        throw wrong{fmt::format("byte {} came back changed", a - bytes.begin())};
    return 0;
}

std::uint64_t test_matmul(session& s)
{
    const reference::shape shape = {64, 512, 3};
    const auto w = q4k_weights(shape.n_out, shape.k, 11);
    const auto x = gaussian(shape.n_tok * shape.k, 13);
    const weights loaded = must(s.load(w, shape.n_out, shape.k, SPANKER_SHARD_WHOLE));
    const buffer bx = must(s.make_buffer(x.size() * sizeof(float), SPANKER_ACCESS_READ));
    const buffer by =
        must(s.make_buffer(shape.n_tok * shape.n_out * sizeof(float), SPANKER_ACCESS_WRITE));
    std::copy(x.begin(), x.end(), bx.as<float>().begin());
    const auto r = must(s.matmul(loaded, bx, by, shape.n_tok));
    const auto expected = reference::matmul(w, reference::through_q8k(x), shape);
    const double nmse = reference::nmse(expected, by.as<float>().first(expected.size()));
    if (!(nmse <= 1e-8))
        throw wrong{fmt::format("the product is off: NMSE {:.2e}, limit 1e-8", nmse)};
    return r.device_ns;
}

std::uint64_t test_sum(session& s)
{
    const std::size_t ranks = s.cards().size();
    const std::uint64_t bytes = link_elements * sizeof(float);
    const auto in = exact_summands(ranks * link_elements, 17);
    const buffer host = must(s.make_buffer(ranks * bytes));
    const auto values = host.as<float>();
    std::copy(in.begin(), in.end(), values.begin());
    const auto r = must(s.all_reduce(host, host, link_elements, SPANKER_F32));
    for (std::size_t i = 0; i < ranks * link_elements; ++i) {
        float expected = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank)
            expected += in[rank * link_elements + i % link_elements];
        if (values[i] != expected)
            throw wrong{fmt::format("rank {} has a wrong sum at element {}", i / link_elements,
                                    i % link_elements)};
    }
    return r.device_ns;
}

outcome test(context& c, const std::string& name, const std::string& what,
             const std::vector<std::uint32_t>& cards,
             const std::function<std::uint64_t(session&)>& body)
{
    try {
        session s = must(c.link().open_session(cards));
        return {name, what, true, {}, body(s)};
    } catch (const wrong& w) {
        return {name, what, false, w.message, 0};
    } catch (const failure& f) {
        if (f.code == exit_no_daemon || f.code == exit_denied)
            throw;
        return {name, what, false, f.error.message, 0};
    }
}

std::vector<std::uint32_t> test_cards(context& c, const fabric_view& view,
                                      std::vector<outcome>& out)
{
    std::vector<std::uint32_t> ready;
    for (const auto& card : view.cards) {
        const std::string name = fmt::format("card {}", card.index);
        if (card.state != SPANKER_STATE_READY) {
            out.push_back({name, "state", false,
                           fmt::format("it is {} {}", state_text(card.state), card.state_reason),
                           0});
            continue;
        }
        ready.push_back(card.index);
        out.push_back(test(c, name, "memory", {card.index}, test_memory));
        out.push_back(test(c, name, "matmul", {card.index}, test_matmul));
    }
    return ready;
}

void test_links(context& c, const fabric_view& view, std::vector<outcome>& out)
{
    for (const auto& link : view.links) {
        const std::string name = fmt::format("link {}", link.name);
        if (std::strcmp(link.state, "up") != 0)
            out.push_back({name, "state", false, "it is " + link_state_text(link), 0});
        else
            out.push_back(test(c, name, "sum", {link.card_a, link.card_b}, test_sum));
    }
}

json to_json(const std::vector<outcome>& outcomes, bool ok)
{
    json out = document();
    out["ok"] = ok;
    out["tests"] = json::array();
    for (const auto& t : outcomes)
        out["tests"].push_back(
            {{"name", t.name},
             {"test", t.what},
             {"ok", t.ok},
             {"message", t.message.empty() ? json(nullptr) : json(t.message)},
             {"device_ns", t.device_ns == 0 ? json(nullptr) : json(t.device_ns)}});
    return out;
}

int run(context& c)
{
    const fabric_view view = look(c);
    if (view.cards.empty())
        fail(exit_no_object, "no card is present: there is nothing to test");
    std::vector<outcome> outcomes;
    const auto ready = test_cards(c, view, outcomes);
    test_links(c, view, outcomes);
    if (ready.size() > 1 && std::strcmp(view.fabric.kind, "islands") != 0)
        outcomes.push_back(test(c, "fabric", "sum", ready, test_sum));
    const bool ok =
        std::all_of(outcomes.begin(), outcomes.end(), [](const outcome& t) { return t.ok; });
    if (c.wants_json())
        print_json(to_json(outcomes, ok), c.mode);
    else if (!c.quiet) {
        for (const auto& t : outcomes)
            fmt::print("{:6} {} {}{}{}\n",
                       t.ok ? paint("ok", colour::good) : paint("FAILED", colour::bad), t.name,
                       t.what, t.device_ns != 0 ? fmt::format(" ({})", time_text(t.device_ns)) : "",
                       t.ok ? "" : ": " + t.message);
    }
    for (const auto& t : outcomes) {
        if (!t.ok)
            fmt::print(stderr, "spankerctl: {} failed its {} test: {}\n", t.name, t.what,
                       t.message);
    }
    return ok ? exit_ok : exit_failed;
}

}  // namespace

const verb selftest_verb = {
    .name = "selftest",
    .summary = "known answers on every card and over every link; names what fails",
    .options = [](CLI::App&) {},
    .run = run,
};

}  // namespace spanker::cli
