// SPDX-License-Identifier: Apache-2.0
//
// Weights too large for one reply: they come as a job that is watched, cancelled, left, and that fails.
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

class large_weights : public compute {
protected:
    large_weights()
        : compute(
              {.arguments = {"--cards=embedded:2:line", "--card-memory=256M"}, .environment = {}})
    {}
    static constexpr std::uint64_t k = 4096, n_out = 31'000;  // 71 MB

    answer load(std::uint64_t rows = n_out)
    {
        unique_fd file(memfd_create("weights", MFD_CLOEXEC));
        EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(n_out * k / 256 * 144)), 0);
        return call("LoadWeights", [&](sd_bus_message* m) {
            sd_bus_message_append(m, "h", file.get());
            append_keys(m, {{"format", 0, "q4_k"}, {"n_out", rows}, {"k", k}});
        });
    }
    static std::string job_of(const answer& got)
    {
        std::uint64_t handle = 1;
        const char* job = "";
        EXPECT_TRUE(got) << got.text;
        if (got)
            sd_bus_message_read(*got, "to", &handle, &job);
        EXPECT_EQ(handle, 0u);
        return job;
    }
};

TEST_F(large_weights, are_a_job_of_ones_own_that_ends_with_the_handle)
{
    const std::string job = job_of(load());
    EXPECT_THAT(job, HasSubstr("Spanker1_private/jobs/"));
    client other(bus_);
    EXPECT_EQ(other.call(job, interface("Job"), "Cancel").kind(), "AccessDenied");
    EXPECT_EQ(other.call(job, properties, "GetAll", "s", interface("Job").c_str()).kind(),
              "AccessDenied");
    answer got;
    ASSERT_TRUE(eventually(
        [&] {
            got = one_.call(job, interface("Job"), "Wait", "t", std::uint64_t{0});
            return static_cast<bool>(got);
        },
        2 * patience))
        << got.text;
    const char* state = "";
    sd_bus_message_read(*got, "s", &state);
    EXPECT_STREQ(state, "done");
    auto outcome = read_keys(*got);
    EXPECT_NE(outcome.at("weights"), "0");
    EXPECT_EQ(outcome.at("bytes"), std::to_string(n_out * k / 256 * 144));
    EXPECT_EQ(one_.get_string(job, "Job", "Kind"), "load-weights");
}

TEST_F(large_weights, can_be_cancelled)
{
    const std::string job = job_of(load());
    EXPECT_TRUE(one_.call(job, interface("Job"), "Cancel"));
    EXPECT_EQ(one_.get_string(job, "Job", "State"), "cancelled");
    EXPECT_TRUE(one_.call(session_.path, interface("Session"), "Close"));
}

TEST_F(large_weights, a_client_that_leaves_in_the_middle_leaves_no_memory_taken)
{
    const auto used = [&] {
        auto got = one_.call(card_path(0), interface("Card"), "GetTelemetry");
        return got ? std::stoull(read_keys(*got).at("memory_used_bytes")) : 0;
    };
    const auto before = used();
    job_of(load());
    ASSERT_TRUE(eventually([&] { return used() > before; })) << "the load takes no memory";
    session_.control.reset();
    EXPECT_TRUE(eventually([&] { return count_sessions(one_) == 0; }));
    EXPECT_TRUE(eventually([&] { return used() == before; })) << used() << ", was " << before;
}

TEST_F(large_weights, a_load_that_meets_a_fault_is_a_job_that_failed_and_says_why)
{
    for (unsigned queue = 0; queue < 16; queue++)
        ASSERT_EQ(inject(one_, 1,
                         fmt::format("completion_error queue={} status={} count=1000", queue,
                                     static_cast<unsigned>(SPANKER_CARD_HOST_FAULT))),
                  "");
    const std::string job = job_of(load());
    auto got = one_.call(job, interface("Job"), "Wait", "t", std::uint64_t{0});
    ASSERT_TRUE(got) << got.text;
    const char *state = "", *error = "", *text = "";
    sd_bus_message_read(*got, "s", &state);
    EXPECT_STREQ(state, "failed");
    auto said = one_.call(job, properties, "Get", "ss", interface("Job").c_str(), "Error");
    ASSERT_TRUE(said) << said.text;
    sd_bus_message_read(*said, "v", "(ss)", &error, &text);
    EXPECT_STREQ(error, (std::string(name) + ".Error." +
                         spanker_error_name(spanker_card_status_kind(SPANKER_CARD_HOST_FAULT)))
                            .c_str());
    EXPECT_THAT(text, HasSubstr("card 1: "));
    EXPECT_THAT(text, HasSubstr("host memory"));
}

TEST_F(large_weights, progress_is_told_to_who_asked_and_to_nobody_else)
{
    const auto count = [](sd_bus_message* message, void* userdata, sd_bus_error*) {
        *static_cast<int*>(userdata) +=
            std::string(sd_bus_message_get_path(message)).find("/jobs/") != std::string::npos;
        return 0;
    };
    client other(bus_);
    int mine = 0, others = 0;
    for (auto [who, heard] : {std::pair{&one_, &mine}, std::pair{&other, &others}})
        ASSERT_GE(sd_bus_add_match(who->bus(), nullptr,
                                   "type='signal',sender='org.popsolutions.Spanker1',"
                                   "interface='org.freedesktop.DBus.Properties'",
                                   count, heard),
                  0);
    const std::string job = job_of(load());
    EXPECT_TRUE(one_.process_until(
        [&] { return mine > 0 && one_.get_string(job, "Job", "State") == "done"; }, patience));
    // What was sent before this answer has arrived.
    EXPECT_TRUE(other.call(root, interface("Manager"), "GetTopology"));
    other.process_until([] { return false; }, milliseconds(0));
    EXPECT_EQ(others, 0);
    EXPECT_GT(mine, 0);
}

}  // namespace
