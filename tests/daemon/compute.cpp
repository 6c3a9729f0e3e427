// SPDX-License-Identifier: Apache-2.0
//
// Computing by messages alone, as a person with busctl would: buffers, weights, requests, jobs, and what goes wrong.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <cstring>
#include <map>

#include "tests/daemon/bed.hpp"
#include "uapi/spanker_status.h"

namespace {

using namespace bed;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::size_t page = 4096;
constexpr int operand_seals = F_SEAL_SHRINK | F_SEAL_GROW;

// Memory that the client and the cards share.
class operand final {
public:
    explicit operand(std::size_t bytes, int seals = operand_seals)
        : bytes_((bytes + page - 1) / page * page),
          fd_(memfd_create("operand", MFD_ALLOW_SEALING | MFD_CLOEXEC))
    {
        EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(bytes_)), 0);
        EXPECT_EQ(fcntl(fd_.get(), F_ADD_SEALS, seals), 0);
        map_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        EXPECT_NE(map_, MAP_FAILED);
        std::memset(map_, 0, bytes_);
    }
    ~operand() { munmap(map_, bytes_); }
    operand(const operand&) = delete;
    operand& operator=(const operand&) = delete;

    int fd() const { return fd_.get(); }
    std::size_t bytes() const { return bytes_; }
    float* floats() const { return static_cast<float*>(map_); }

private:
    std::size_t bytes_;
    unique_fd fd_;
    void* map_ = nullptr;
};

// A key and an unsigned number, or a word.
struct key {
    const char* name;
    std::uint64_t number = 0;
    const char* word = nullptr;
};

void append_keys(sd_bus_message* message, const std::vector<key>& keys)
{
    sd_bus_message_open_container(message, 'a', "{sv}");
    for (const key& one : keys)
        if (one.word)
            sd_bus_message_append(message, "{sv}", one.name, "s", one.word);
        else
            sd_bus_message_append(message, "{sv}", one.name, "t", one.number);
    sd_bus_message_close_container(message);
}

std::map<std::string, std::string> read_keys(sd_bus_message* message)
{
    std::map<std::string, std::string> found;
    sd_bus_message_enter_container(message, 'a', "{sv}");
    while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
        const char *name = "", *type = "";
        sd_bus_message_read(message, "s", &name);
        sd_bus_message_peek_type(message, nullptr, &type);
        std::uint64_t number = 0;
        const char* word = nullptr;
        if (*type == 't' && sd_bus_message_read(message, "v", "t", &number) > 0)
            found[name] = std::to_string(number);
        else if (*type == 's' && sd_bus_message_read(message, "v", "s", &word) > 0)
            found[name] = word;
        else
            sd_bus_message_skip(message, "v");
        sd_bus_message_exit_container(message);
    }
    sd_bus_message_exit_container(message);
    return found;
}

class compute : public testing::Test {
protected:
    explicit compute(const daemon_setup& setup = embedded("4:ring"))
        : daemon_(bus_, setup), one_(bus_), session_(open_session(one_))
    {
        EXPECT_EQ(session_.error, "") << session_.text;
    }

    answer call(const char* method, const filler& fill)
    {
        return one_.send(session_.path, interface("Session"), method, fill, seconds(60));
    }
    answer request(const char* method, const std::vector<key>& keys)
    {
        return call(method, [&](sd_bus_message* m) { append_keys(m, keys); });
    }
    answer try_register(int fd, std::uint64_t offset, std::uint64_t bytes,
                        const char* access = "rw")
    {
        return call("RegisterBuffer", [&](sd_bus_message* m) {
            sd_bus_message_append(m, "httsa{sv}", fd, offset, bytes, access, 0);
        });
    }
    static std::uint64_t handle_of(const answer& got)
    {
        std::uint64_t handle = 0;
        EXPECT_TRUE(got) << got.error << ": " << got.text;
        if (got)
            sd_bus_message_read(*got, "t", &handle);
        return handle;
    }
    std::uint64_t registered(const operand& what)
    {
        return handle_of(try_register(what.fd(), 0, what.bytes()));
    }
    answer all_reduce(std::uint64_t src, std::uint64_t dst, std::uint64_t count)
    {
        return request("AllReduce", {{"src", src},
                                     {"dst", dst},
                                     {"count", count},
                                     {"dtype", 0, "f32"},
                                     {"reduce", 0, "sum"}});
    }

    private_bus bus_;
    spanker_daemon daemon_;
    client one_;
    opened session_;
};

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

// Q4_K blocks whose every weight is 1: scale 1, six-bit scales 1, no minimum, quants 1.
std::vector<unsigned char> ones(std::size_t blocks)
{
    std::vector<unsigned char> all(blocks * 144);
    for (std::size_t b = 0; b < blocks; b++) {
        unsigned char* block = &all[b * 144];
        block[1] = 0x3c;                // d = 1.0 as f16
        std::memset(block + 4, 1, 4);   // scales 0..3
        std::memset(block + 12, 1, 4);  // scales 4..7, low nibble
        std::memset(block + 16, 0x11, 128);
    }
    return all;
}

unique_fd file_of(const std::vector<unsigned char>& bytes)
{
    unique_fd file(memfd_create("weights", MFD_CLOEXEC));
    EXPECT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return file;
}

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

// The cable goes at some moment of device time after now; where it hits the links' work, the error names the link.
TEST_F(compute, a_cable_cut_in_the_middle_is_an_error_that_names_it_and_the_next_request_works)
{
    operand memory(4 << 20);
    const auto buffer = registered(memory);
    const std::uint64_t count = (1 << 20) / sizeof(float);
    auto first = all_reduce(buffer, buffer, count);
    ASSERT_TRUE(first) << first.text;
    const auto lasts = std::stoull(read_keys(*first).at("device_ns"));
    const std::string link = std::string(root) + "/links/0_1__1_0";
    int named = 0;
    for (unsigned part = 1; part < 8; part++) {
        auto telemetry = one_.call(card_path(0), interface("Card"), "GetTelemetry");
        const auto now = std::stoull(read_keys(*telemetry).at("device_ns"));
        ASSERT_EQ(inject(one_, 0, fmt::format("cable_cut port=1 at_ns={}", now + lasts * part / 8)),
                  "");
        auto got = all_reduce(buffer, buffer, count);
        if (!got) {
            EXPECT_THAT(got.kind(), AnyOf("LinkDown", "LinkError", "Poisoned"));
            EXPECT_THAT(got.text, HasSubstr("0.1-1.0"));
            named++;
        }
        ASSERT_EQ(inject(one_, 0, "clear cable_cut"), "");
        ASSERT_TRUE(eventually([&] { return one_.get_string(link, "Link", "State") == "up"; },
                               seconds(10)));
        auto again = all_reduce(buffer, buffer, count);
        ASSERT_TRUE(again) << again.text;
    }
    EXPECT_GT(named, 0);
}

// ---- jobs and the end ----

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
