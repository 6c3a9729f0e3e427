// SPDX-License-Identifier: Apache-2.0
//
// What is the embedded backend's own: its options, its paces, its traces, and cards that hang.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <vector>

#include "daemon/backend.hpp"
#include "daemon/clock.hpp"

namespace {

using namespace spanker::daemon;

std::unique_ptr<backend> make(const embedded_options& options)
{
    auto made = make_embedded_backend(options);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
}

spanker_work_item item(std::uint8_t opcode)
{
    spanker_work_item out{};
    out.opcode = opcode;
    out.wait_signal = SPK_NO_SIGNAL;
    out.post_signal = SPK_NO_SIGNAL;
    return out;
}

spanker_work_item fill(std::uint32_t tensor, std::uint64_t bytes)
{
    auto out = item(SPK_OP_FILL);
    out.dst.handle = tensor;
    out.fill.bytes = bytes;
    return out;
}

// Polls, sleeping as next_work_ns() says, for at most some seconds.
std::vector<spanker_record> wait(backend& cards, card_file& file)
{
    spanker_record got[8];
    const std::uint64_t deadline = monotonic_ns() + 20'000'000'000;
    while (monotonic_ns() < deadline) {
        if (const std::size_t n = file.poll(got))
            return {got, got + n};
        const std::uint64_t now = monotonic_ns();
        const std::uint64_t next = cards.next_work_ns().value_or(now + 1'000'000);
        const timespec left{.tv_sec = 0,
                            .tv_nsec = next > now ? static_cast<long>(std::min<std::uint64_t>(
                                                        next - now, 10'000'000))
                                                  : 0};
        ::nanosleep(&left, nullptr);
        cards.drive();
    }
    ADD_FAILURE() << "no record came";
    return std::vector<spanker_record>(1);
}

TEST(embedded_options, that_make_no_sense_are_refused_with_a_reason)
{
    const struct {
        embedded_options options;
        const char* word;
    } table[] = {
        {{.cards = 0}, "card"},
        {{.cards = 17}, "16"},
        {{.cards = 4, .topology = "star"}, "star"},
        {{.cards = 16, .topology = "mesh"}, "port"},
        {{.cards = 2, .topology = "0.1-7.0"}, "7"},
    };
    for (const auto& row : table) {
        const auto made = make_embedded_backend(row.options);
        ASSERT_FALSE(made) << row.options.topology;
        EXPECT_EQ(made.error().kind, SPANKER_ERR_INVALID);
        EXPECT_NE(made.error().message.find(row.word), std::string::npos) << made.error().message;
    }
}

TEST(embedded_options, every_cabling_comes_up_trained)
{
    const struct {
        unsigned cards;
        const char* topology;
        std::size_t links;  // ports that are up, both ends counted
    } table[] = {{1, "ring", 0},  {2, "ring", 4},  {4, "ring", 8},   {4, "line", 6},
                 {4, "mesh", 12}, {8, "mesh", 56}, {3, "0.1-1.0", 2}};
    for (const auto& row : table) {
        const auto cards =
            make({.cards = row.cards, .topology = row.topology, .card_memory_bytes = 64 << 20});
        std::size_t up = 0;
        for (const auto card : cards->cards()) {
            const auto ports = *cards->ports(card);
            for (const auto& port : ports)
                up += port.state == SPK_PORT_UP;
        }
        EXPECT_EQ(up, row.links) << row.cards << " " << row.topology;
    }
}

TEST(embedded_options, memory_is_what_was_asked_for_or_a_share_of_the_machines)
{
    EXPECT_EQ(make({.cards = 1, .card_memory_bytes = 128 << 20})->info(0)->out_memory_bytes,
              128u << 20);
    const auto share = make({.cards = 2})->info(0)->out_memory_bytes;
    EXPECT_GE(share, 64u << 20);
    EXPECT_LE(share, std::uint64_t{4} << 30);
}

TEST(embedded_options, the_default_deadline_ends_what_waits_for_ever)
{
    const auto cards =
        make({.cards = 1, .card_memory_bytes = 64 << 20, .default_deadline_ns = 10'000'000});
    const auto file = std::move(*cards->open(0, 8));
    auto never = item(SPK_OP_NOP);
    never.wait_signal = 1;
    never.wait_value = 1;
    ASSERT_TRUE(file->submit({&never, 1}, 0));
    EXPECT_EQ(wait(*cards, *file)[0].result, -ETIMEDOUT);
}

TEST(embedded_pace, real_time_passes_as_device_time_does)
{
    const auto cards = make({.cards = 1, .card_memory_bytes = 64 << 20, .real_pace = true});
    const auto file = std::move(*cards->open(0, 8));
    const auto tensor = *file->tensor_alloc(40 << 20);
    const std::uint64_t start = monotonic_ns();
    auto work = fill(tensor, 40 << 20);  // 21 ms at 2 GB/s
    ASSERT_TRUE(file->submit({&work, 1}, 0));
    spanker_record none[1];
    EXPECT_EQ(file->poll(none), 0u) << "poll does not wait for device time";
    EXPECT_FALSE(cards->drive());
    ASSERT_TRUE(cards->next_work_ns());
    EXPECT_GT(*cards->next_work_ns(), monotonic_ns()) << "asks for later";
    const auto record = wait(*cards, *file)[0];
    EXPECT_EQ(record.result, 0);
    EXPECT_GE(monotonic_ns() - start, 20'000'000u);
    EXPECT_GE(record.end_ns - record.start_ns, 20'000'000u);
}

TEST(embedded_pace, real_cards_train_by_themselves_when_driven)
{
    const auto cards = make({.cards = 2, .card_memory_bytes = 64 << 20, .real_pace = true});
    const std::uint64_t deadline = monotonic_ns() + 10'000'000'000;
    for (;;) {
        cards->drive();
        const auto ports = *cards->ports(0);
        if (ports[0].state == SPK_PORT_UP && ports[1].state == SPK_PORT_UP)
            break;
        ASSERT_LT(monotonic_ns(), deadline);
    }
}

TEST(embedded_pace, fast_work_is_done_inside_poll)
{
    const auto cards = make({.cards = 1, .card_memory_bytes = 64 << 20});
    const auto file = std::move(*cards->open(0, 8));
    auto work = item(SPK_OP_NOP);
    ASSERT_TRUE(file->submit({&work, 1}, 0));
    spanker_record one[1];
    EXPECT_EQ(file->poll(one), 1u);
    EXPECT_FALSE(cards->drive());
}

TEST(embedded_descriptor, is_told_by_the_next_drive_unless_the_file_was_polled)
{
    const auto cards = make({.cards = 1, .card_memory_bytes = 64 << 20});
    const auto file = std::move(*cards->open(0, 8));
    const auto readable = [&] {
        pollfd at{.fd = file->fd(), .events = POLLIN, .revents = 0};
        return ::poll(&at, 1, 0) == 1;
    };
    EXPECT_FALSE(readable());
    auto work = item(SPK_OP_NOP);
    ASSERT_TRUE(file->submit({&work, 1}, 0));
    EXPECT_FALSE(cards->drive());
    ASSERT_TRUE(cards->next_work_ns());
    EXPECT_LE(*cards->next_work_ns(), monotonic_ns()) << "asks to be driven again at once";
    cards->drive();
    EXPECT_TRUE(readable());
    EXPECT_FALSE(cards->next_work_ns() && *cards->next_work_ns() <= monotonic_ns());
    spanker_record one[1];
    EXPECT_EQ(file->poll(one), 1u);
    EXPECT_FALSE(readable());
}

TEST(embedded_descriptor, that_is_one_too_many_is_a_quota_and_the_tensor_stays)
{
    const auto cards = make({.cards = 1, .topology = "line", .card_memory_bytes = 16 << 20});
    const auto file = cards->open(0, 0);
    ASSERT_TRUE(file);
    const auto tensor = (*file)->tensor_alloc(4096);
    ASSERT_TRUE(tensor) << tensor.error().message;
    rlimit before = {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const unique_fd last(::dup(0));
    const rlimit tight = {static_cast<rlim_t>(last.get()) + 1, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    const auto refused = (*file)->tensor_export(*tensor);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, SPANKER_ERR_QUOTA) << refused.error().message;
    EXPECT_TRUE((*file)->tensor_export(*tensor));
}

TEST(embedded_trace, tells_finished_commands_oldest_first)
{
    const auto cards = make({.cards = 2, .card_memory_bytes = 64 << 20});
    const auto file = std::move(*cards->open(1, 8));
    const auto tensor = *file->tensor_alloc(5000);
    const spanker_work_item work[] = {item(SPK_OP_NOP), fill(tensor, 5000)};
    ASSERT_TRUE(file->submit(work, 0));
    wait(*cards, *file);
    const auto trace = *cards->trace(1, 2);
    ASSERT_EQ(trace.size(), 2u);
    EXPECT_EQ(trace[0].opcode, SPK_OP_NOP);
    EXPECT_EQ(trace[1].opcode, SPK_OP_FILL);
    EXPECT_EQ(trace[1].bytes, 5000u);
    EXPECT_NE(trace[1].queue, 0u);
    EXPECT_EQ(trace[1].status, SPANKER_CARD_OK);
    EXPECT_FALSE(cards->trace(7, 1));
}

TEST(embedded_hang, an_unanswered_abort_resets_the_card)
{
    const auto cards = make({.cards = 2, .card_memory_bytes = 64 << 20});
    const auto file = std::move(*cards->open(0, 8));
    const auto other = std::move(*cards->open(1, 8));
    ASSERT_TRUE(cards->inject(0, "queue_hang queue=0"));
    const auto generation = cards->info(0)->out_reset_generation;
    auto never = item(SPK_OP_NOP);
    never.wait_signal = 1;
    never.wait_value = 1;
    never.deadline_ns = monotonic_ns() + 1'000'000;
    ASSERT_TRUE(file->submit({&never, 1}, 0));
    EXPECT_EQ(wait(*cards, *file)[0].result, -ESTALE);
    EXPECT_EQ(cards->info(0)->out_reset_generation, generation + 1);
    EXPECT_EQ(cards->info(0)->out_state, std::uint32_t{SPANKER_CARD_READY});
    auto work = item(SPK_OP_NOP);
    ASSERT_TRUE(other->submit({&work, 1}, 0));
    EXPECT_EQ(wait(*cards, *other)[0].result, 0) << "the other card goes on";
}

TEST(embedded_hang, a_hung_engine_ends_by_deadline_and_abort)
{
    const auto cards = make({.cards = 1, .card_memory_bytes = 64 << 20});
    const auto file = std::move(*cards->open(0, 8));
    const auto tensor = *file->tensor_alloc(4096);
    ASSERT_TRUE(cards->inject(0, "engine_hang lane=" + std::to_string(SPK_ENGINE_MEMORY)));
    auto work = fill(tensor, 4096);
    work.deadline_ns = monotonic_ns() + 5'000'000;
    ASSERT_TRUE(file->submit({&work, 1}, 0));
    EXPECT_EQ(wait(*cards, *file)[0].result, -ETIMEDOUT);
    ASSERT_TRUE(cards->inject(0, "clear engine_hang"));
    ASSERT_TRUE(file->submit(std::vector{fill(tensor, 4096)}, 0));
    EXPECT_EQ(wait(*cards, *file)[0].result, 0);
}

TEST(embedded_hang, a_card_whose_memory_is_not_calibrated_is_failed_by_name)
{
    const auto cards = make({.cards = 1, .card_memory_bytes = 64 << 20});
    ASSERT_TRUE(cards->inject(0, "ddr_uncalibrated"));
    const auto reset = cards->card_reset(0, SPANKER_RESET_SOFT);
    ASSERT_FALSE(reset);
    EXPECT_EQ(reset.error().kind, SPANKER_ERR_CARD_FAILED);
    EXPECT_NE(reset.error().message.find("calibrated"), std::string::npos);
    EXPECT_EQ(cards->info(0)->out_state, std::uint32_t{SPANKER_CARD_DEAD});
    ASSERT_TRUE(cards->inject(0, "clear ddr_uncalibrated"));
    EXPECT_TRUE(cards->card_reset(0, SPANKER_RESET_SOFT));
}

TEST(embedded_hang, memory_that_cannot_be_zeroed_is_not_handed_out)
{
    const auto cards = make({.cards = 1, .card_memory_bytes = 64 << 20});
    const auto file = std::move(*cards->open(0, 8));
    const auto all = *file->tensor_alloc(64 << 20);
    ASSERT_TRUE(cards->inject(0, "queue_hang queue=0"));
    ASSERT_TRUE(file->tensor_free(all));
    const auto refused = file->tensor_alloc(4096);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, SPANKER_ERR_NO_MEMORY);
    ASSERT_TRUE(cards->inject(0, "clear queue_hang"));
    EXPECT_TRUE(file->tensor_alloc(4096));
}

TEST(embedded_dma, a_fault_fails_the_command_as_host_fault)
{
    const auto cards = make({.cards = 1, .card_memory_bytes = 64 << 20});
    const auto file = std::move(*cards->open(0, 8));
    const auto tensor = *file->tensor_alloc(4096);
    std::vector<std::byte> memory(4096);
    const auto buffer = *file->buffer_register({.memfd = -1,
                                                .address = memory.data(),
                                                .offset = 0,
                                                .bytes = 4096,
                                                .access = SPANKER_BUFFER_READ});
    auto in = item(SPK_OP_DMA_IN);
    in.dst.handle = tensor;
    in.src.handle = buffer;
    in.rows.rows = 1;
    in.rows.row_bytes = 4096;
    // The first access fetches the command, the second the page of the scatter list.
    ASSERT_TRUE(cards->inject(0, "dma_fault skip=2"));
    ASSERT_TRUE(file->submit({&in, 1}, 0));
    const auto record = wait(*cards, *file)[0];
    EXPECT_EQ(record.result, -EFAULT);
    EXPECT_EQ(record.card_status, std::uint32_t{SPANKER_CARD_HOST_FAULT});
    ASSERT_TRUE(file->submit({&in, 1}, 0));
    EXPECT_EQ(wait(*cards, *file)[0].result, 0) << "the queue goes on";
}

TEST(embedded_events, of_a_flapping_cable_are_coalesced)
{
    const auto cards = make({.cards = 2, .card_memory_bytes = 64 << 20});
    cards->take_events();
    for (int n = 0; n < 1000; n++) {
        ASSERT_TRUE(cards->inject(0, "cable_cut port=1"));
        while (cards->drive())
            ;
        ASSERT_TRUE(cards->inject(0, "clear cable_cut"));
        while (cards->drive())
            ;
    }
    pollfd at{.fd = cards->event_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&at, 1, 0), 1);
    EXPECT_LE(cards->take_events().size(), 4u);
    EXPECT_EQ(::poll(&at, 1, 0), 0);
    EXPECT_EQ((*cards->ports(0))[1].state, std::uint32_t{SPK_PORT_UP});
}

}  // namespace
