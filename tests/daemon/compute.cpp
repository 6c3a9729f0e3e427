// SPDX-License-Identifier: Apache-2.0
//
// Computing by messages alone: buffers, weights, requests, and what goes wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <cstdint>

#include "tests/daemon/compute_bed.hpp"
#include "uapi/spanker_status.h"

namespace {

using namespace bed;
using testing::AnyOf;
using testing::HasSubstr;

// ---- collectives ----

TEST_F(compute, an_all_reduce_adds_what_every_rank_brought_and_tells_times)
{
    constexpr std::size_t count = 1000, ranks = 4;
    operand src(ranks * count * sizeof(float)), dst(ranks * count * sizeof(float));
    for (std::size_t i = 0; i < ranks * count; i++)
        src.floats()[i] = static_cast<float>(i % count + i / count);
    auto got = all_reduce(registered(src), registered(dst), count);
    ASSERT_TRUE(got) << got.error << ": " << got.text;
    for (std::size_t i = 0; i < ranks * count; i++)
        ASSERT_EQ(dst.floats()[i], static_cast<float>(4 * (i % count) + 6)) << i;
    auto said = read_keys(*got);
    EXPECT_GT(std::stoull(said.at("device_ns")), 0u);
    EXPECT_GT(std::stoull(said.at("predicted_ns")), 0u);
    EXPECT_GT(std::stoull(said.at("bound_ns")), 0u);
    EXPECT_LE(std::stoull(said.at("bound_ns")), std::stoull(said.at("device_ns")));
    EXPECT_NE(said.at("algorithm"), "none");
}

TEST_F(compute, an_all_gather_brings_every_part_to_every_rank)
{
    constexpr std::size_t count = 64, ranks = 4;
    operand src(ranks * count * sizeof(float)), dst(ranks * ranks * count * sizeof(float));
    for (std::size_t i = 0; i < ranks * count; i++)
        src.floats()[i] = static_cast<float>(i);
    auto got = request("AllGather", {{"src", registered(src)},
                                     {"dst", registered(dst)},
                                     {"count", count},
                                     {"dtype", 0, "f32"}});
    ASSERT_TRUE(got) << got.text;
    for (std::size_t rank = 0; rank < ranks; rank++)
        for (std::size_t i = 0; i < ranks * count; i++)
            ASSERT_EQ(dst.floats()[rank * ranks * count + i], static_cast<float>(i)) << rank;
}

TEST_F(compute, a_broadcast_brings_the_roots_part_to_every_rank)
{
    constexpr std::size_t count = 256, ranks = 4;
    operand src(ranks * count * sizeof(float)), dst(ranks * count * sizeof(float));
    for (std::size_t i = 0; i < count; i++)
        src.floats()[2 * count + i] = static_cast<float>(i + 1);
    auto got = request("Broadcast", {{"src", registered(src)},
                                     {"dst", registered(dst)},
                                     {"count", count},
                                     {"dtype", 0, "f32"},
                                     {"root", 2}});
    ASSERT_TRUE(got) << got.text;
    for (std::size_t i = 0; i < ranks * count; i++)
        ASSERT_EQ(dst.floats()[i], static_cast<float>(i % count + 1)) << i;
}

// ---- matmul ----

TEST_F(compute, a_matmul_over_loaded_weights)
{
    constexpr std::size_t n_out = 64, k = 512, n_tok = 3;
    auto weights = file_of(ones(n_out * k / 256));
    auto loaded = call("LoadWeights", [&](sd_bus_message* m) {
        sd_bus_message_append(m, "h", weights.get());
        append_keys(m, {{"format", 0, "q4_k"}, {"n_out", n_out}, {"k", k}});
    });
    ASSERT_TRUE(loaded) << loaded.text;
    std::uint64_t handle = 0;
    const char* job = "";
    sd_bus_message_read(*loaded, "to", &handle, &job);
    EXPECT_NE(handle, 0u);
    EXPECT_STREQ(job, "/");
    EXPECT_EQ(read_keys(*loaded).at("bytes"), std::to_string(n_out * k / 256 * 144));

    operand x(n_tok * k * sizeof(float)), y(n_tok * n_out * sizeof(float));
    for (std::size_t i = 0; i < n_tok * k; i++)
        x.floats()[i] = static_cast<float>(i / k + 1);
    auto got = request(
        "MatMul",
        {{"weights", handle}, {"n_tok", n_tok}, {"x", registered(x)}, {"y", registered(y)}});
    ASSERT_TRUE(got) << got.text;
    for (std::size_t i = 0; i < n_tok * n_out; i++)
        EXPECT_NEAR(y.floats()[i], static_cast<float>(k * (i / n_out + 1)), 1) << i;
    EXPECT_TRUE(
        call("UnloadWeights", [&](sd_bus_message* m) { sd_bus_message_append(m, "t", handle); }));
    auto gone = request(
        "MatMul", {{"weights", handle}, {"n_tok", 1}, {"x", registered(x)}, {"y", registered(y)}});
    EXPECT_EQ(gone.kind(), "NoSuchObject");
}

TEST_F(compute, submit_answers_every_entry_in_its_place)
{
    auto got = call("Submit", [](sd_bus_message* m) {
        sd_bus_message_open_container(m, 'a', "a{sv}");
        append_keys(m, {{"op", 0, "nop"}, {"user_data", 7}});
        append_keys(m, {{"op", 0, "read_tensor"},
                        {"tensor", 99},
                        {"buffer", 98},
                        {"bytes", 4},
                        {"user_data", 8}});
        append_keys(m, {{"op", 0, "nop"}, {"user_data", 9}});
        sd_bus_message_close_container(m);
    });
    ASSERT_TRUE(got) << got.text;
    sd_bus_message_enter_container(*got, 'a', "a{sv}");
    auto first = read_keys(*got), second = read_keys(*got), third = read_keys(*got);
    EXPECT_EQ(first.at("user_data"), "7");
    EXPECT_FALSE(first.contains("error"));
    EXPECT_EQ(second.at("user_data"), "8");
    EXPECT_EQ(second.at("error"), "NoSuchObject");
    EXPECT_NE(second.at("message"), "");
    EXPECT_EQ(third.at("user_data"), "9");
    EXPECT_EQ(sd_bus_message_at_end(*got, false), 1);
}

TEST_F(compute, a_tensor_is_written_and_read_back)
{
    operand out(page), in(page);
    for (std::size_t i = 0; i < 1024; i++)
        out.floats()[i] = static_cast<float>(i);
    const auto tensor = handle_of(call("AllocTensor", [](sd_bus_message* m) {
        sd_bus_message_append(m, "tssata{sv}", std::uint64_t{0}, "replicated", "f32", 2,
                              std::uint64_t{4}, std::uint64_t{256}, 0);
    }));
    ASSERT_TRUE(
        request("WriteTensor", {{"tensor", tensor}, {"buffer", registered(out)}, {"bytes", 4096}}));
    ASSERT_TRUE(
        request("ReadTensor", {{"tensor", tensor}, {"buffer", registered(in)}, {"bytes", 4096}}));
    EXPECT_EQ(std::memcmp(out.floats(), in.floats(), page), 0);
    EXPECT_TRUE(
        call("FreeTensor", [&](sd_bus_message* m) { sd_bus_message_append(m, "t", tensor); }));
    EXPECT_EQ(call("FreeTensor", [&](sd_bus_message* m) { sd_bus_message_append(m, "t", tensor); })
                  .kind(),
              "NoSuchObject");
}

// ---- refusals ----

TEST_F(compute, memory_that_may_shrink_or_is_none_is_refused_by_name)
{
    operand good(page), unsealed(page, 0), half(page, F_SEAL_SHRINK);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    unique_fd out(ends[0]), in(ends[1]), plain(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (plain) {
        EXPECT_EQ(ftruncate(plain.get(), page), 0);
    }
    const struct {
        const char* what;
        answer got;
        const char* error;
    } rows[] = {
        {"no seal", try_register(unsealed.fd(), 0, page), "NotSealed"},
        {"half of the seals", try_register(half.fd(), 0, page), "NotSealed"},
        {"a pipe", try_register(out.get(), 0, page), "NotAMemfd"},
        {"a file", try_register(plain ? plain.get() : out.get(), 0, page), "NotAMemfd"},
        {"past the end", try_register(good.fd(), 0, 2 * page), "OutOfRange"},
        {"offset past the end", try_register(good.fd(), page, page), "OutOfRange"},
        {"an overflow", try_register(good.fd(), ~std::uint64_t{0} - page + 1, page), "OutOfRange"},
        {"no page", try_register(good.fd(), 1, page), "InvalidArgs"},
        {"nothing", try_register(good.fd(), 0, 0), "InvalidArgs"},
        {"an unknown access", try_register(good.fd(), 0, page, "rwx"), "InvalidArgs"},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(row.got.kind(), row.error) << row.what << ": " << row.got.text;
        EXPECT_NE(row.got.text, "") << row.what;
    }
    EXPECT_NE(registered(good), 0u) << "the next request works";
}

TEST_F(compute, wrong_handles_and_ranges_are_named)
{
    operand small(page);
    const auto buffer = registered(small);
    EXPECT_EQ(all_reduce(77, 78, 4).kind(), "NoSuchObject");
    EXPECT_THAT(all_reduce(buffer, buffer, 1 << 20).kind(), AnyOf("OutOfRange", "OutputTooSmall"));
    EXPECT_THAT(all_reduce(buffer, buffer, ~std::uint64_t{0}).kind(),
                AnyOf("OutOfRange", "BadDims"));
    auto missing = request("AllReduce", {{"src", buffer}});
    EXPECT_EQ(missing.kind(), "InvalidArgs");
    EXPECT_THAT(missing.text, HasSubstr("AllReduce"));
    EXPECT_TRUE(all_reduce(buffer, buffer, 4));
}

TEST_F(compute, a_negative_or_wrongly_typed_value_is_named)
{
    auto got = call("MatMul", [](sd_bus_message* m) {
        sd_bus_message_append(m, "a{sv}", 1, "n_tok", "i", -3);
    });
    EXPECT_EQ(got.kind(), "InvalidArgs");
    EXPECT_EQ(got.text, "MatMul: key 'n_tok' must not be negative");
    got = call("MatMul", [](sd_bus_message* m) {
        sd_bus_message_append(m, "a{sv}", 1, "weights", "s", "w");
    });
    EXPECT_EQ(got.kind(), "InvalidArgs");
    EXPECT_THAT(got.text, HasSubstr("weights"));
}

TEST_F(compute, weights_that_are_not_there_are_refused)
{
    auto file = file_of(ones(2));
    auto load = [&](const std::vector<key>& keys) {
        return call("LoadWeights", [&](sd_bus_message* m) {
            sd_bus_message_append(m, "h", file.get());
            append_keys(m, keys);
        });
    };
    EXPECT_EQ(load({{"format", 0, "q4_k"}, {"n_out", 64}, {"k", 256}}).kind(), "OutOfRange");
    EXPECT_THAT(load({{"format", 0, "q4_k"}, {"n_out", 1}, {"k", 255}}).kind(),
                AnyOf("InvalidArgs", "BadDims"));
    EXPECT_EQ(load({{"format", 0, "q9_k"}, {"n_out", 1}, {"k", 256}}).kind(), "InvalidArgs");
    EXPECT_EQ(load({{"format", 0, "q4_k"}, {"n_out", 1}, {"k", 256}, {"colour", 1}}).kind(),
              "InvalidArgs");
    EXPECT_TRUE(load({{"format", 0, "q4_k"}, {"n_out", 2}, {"k", 256}}));
}

class few_buffers : public compute {
protected:
    few_buffers() : compute(setup()) {}
    static daemon_setup setup()
    {
        static folder home;
        auto made = embedded("1");
        made.arguments.push_back("--config=" +
                                 home.write("c", "[limits]\nbuffers_per_session = 2\n"));
        return made;
    }
};

TEST_F(few_buffers, a_quota_is_refused_at_once_and_free_again_later)
{
    operand memory(page);
    const auto first = registered(memory);
    registered(memory);
    EXPECT_EQ(try_register(memory.fd(), 0, page).kind(), "QuotaExceeded");
    EXPECT_TRUE(
        call("UnregisterBuffer", [&](sd_bus_message* m) { sd_bus_message_append(m, "t", first); }));
    registered(memory);
}

// ---- faults ----

TEST_F(compute,
       with_one_cable_cut_an_all_reduce_goes_the_other_way_with_two_it_names_what_is_missing)
{
    operand memory(4 * page);
    const auto buffer = registered(memory);
    ASSERT_EQ(inject(one_, 0, "cable_cut port=1"), "");
    ASSERT_TRUE(
        eventually([&] { return one_.get_string(root, "Manager", "FabricState") == "degraded"; }));
    auto line = all_reduce(buffer, buffer, 1024);
    EXPECT_TRUE(line) << line.text;
    ASSERT_EQ(inject(one_, 2, "cable_cut port=1"), "");
    const std::string link = std::string(root) + "/links/2_1__3_0";
    ASSERT_TRUE(eventually([&] { return one_.get_string(link, "Link", "State") != "up"; }));
    auto islands = all_reduce(buffer, buffer, 1024);
    EXPECT_EQ(islands.kind(), "TopologyMismatch");
    EXPECT_NE(islands.text, "");
}

TEST_F(compute, a_cable_cut_in_the_middle_is_an_error_that_names_it_and_the_next_request_works)
{
    operand memory(4 << 20);
    const auto buffer = registered(memory);
    const std::uint64_t count = (1 << 20) / sizeof(float);
    auto first = all_reduce(buffer, buffer, count);
    ASSERT_TRUE(first) << first.text;
    const auto lasts = std::stoull(read_keys(*first).at("device_ns"));
    const std::string link = std::string(root) + "/links/0_1__1_0";
    for (unsigned part = 1; part < 8; part++) {
        auto telemetry = one_.call(card_path(0), interface("Card"), "GetTelemetry");
        const auto now = std::stoull(read_keys(*telemetry).at("device_ns"));
        ASSERT_EQ(inject(one_, 0, fmt::format("cable_cut port=1 at_ns={}", now + lasts * part / 8)),
                  "");
        auto got = all_reduce(buffer, buffer, count);
        EXPECT_THAT(got.kind(), AnyOf("LinkDown", "LinkError", "Poisoned")) << part;
        EXPECT_THAT(got.text, HasSubstr("0.1-1.0")) << part;
        ASSERT_EQ(inject(one_, 0, "clear cable_cut"), "");
        ASSERT_TRUE(eventually([&] { return one_.get_string(link, "Link", "State") == "up"; },
                               seconds(10)));
        auto again = all_reduce(buffer, buffer, count);
        ASSERT_TRUE(again) << again.text;
    }
}

// ---- the end ----

class real_pace : public compute {
protected:
    real_pace()
        : compute({.arguments = {"--cards=embedded:4:ring", "--card-memory=64M", "--pace=real"},
                   .environment = {}})
    {}
};

TEST_F(real_pace, sigterm_answers_what_is_in_flight_and_ends_with_0)
{
    operand memory(32 << 20);
    const auto buffer = registered(memory);
    struct outcome {
        bool answered = false;
        std::string error;
    } seen;
    sd_bus_message* question = nullptr;
    sd_bus_message_new_method_call(one_.bus(), &question, name, session_.path.c_str(),
                                   interface("Session").c_str(), "AllReduce");
    append_keys(question, {{"src", buffer},
                           {"dst", buffer},
                           {"count", 2 << 20},
                           {"dtype", 0, "f32"},
                           {"reduce", 0, "sum"}});
    sd_bus_call_async(
        one_.bus(), nullptr, question,
        [](sd_bus_message* reply, void* userdata, sd_bus_error*) {
            auto* s = static_cast<outcome*>(userdata);
            s->answered = true;
            if (auto* problem = sd_bus_message_get_error(reply))
                s->error = problem->name;
            return 1;
        },
        &seen, 60'000'000);
    sd_bus_message_unref(question);
    sd_bus_flush(one_.bus());
    // A call behind it, so that it has arrived.
    client other(bus_);
    ASSERT_TRUE(eventually([&] {
        auto got = other.call(root, interface("Manager"), "ListSessions");
        sd_bus_message_enter_container(*got, 'a', "(tuusauttta{sv})");
        sd_bus_message_enter_container(*got, 'r', "tuusauttta{sv}");
        sd_bus_message_skip(*got, "tuusaut");
        std::uint64_t in_flight = 0;
        sd_bus_message_read(*got, "t", &in_flight);
        return in_flight > 0 || seen.answered;
    }));
    daemon_.child().signal(SIGTERM);
    EXPECT_TRUE(one_.process_until([&] { return seen.answered; }, patience));
    EXPECT_THAT(seen.error, AnyOf("", "org.popsolutions.Spanker1.Error.Cancelled"));
    EXPECT_EQ(daemon_.child().wait(patience), 0);
}

}  // namespace
