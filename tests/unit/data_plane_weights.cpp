// SPDX-License-Identifier: Apache-2.0
//
// Loading weights: what is refused, what is shared, what gives way.
#include <numeric>

#include "daemon/data/load.hpp"
#include "data_fake_backend.hpp"
#include "data_rig.hpp"

namespace spanker::daemon::test {
namespace {

using collective::sharding;

constexpr std::uint64_t n_out = 1024, k = 512, bytes = n_out * (k / 256) * 144;
constexpr int frozen = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

unique_fd weights_file(std::uint8_t salt, int seals = 0, std::uint64_t size = bytes)
{
    std::vector<std::uint8_t> content(size);
    for (std::uint64_t i = 0; i < size; i++)
        content[i] = static_cast<std::uint8_t>(i * 131 + (i >> 9) + salt);
    unique_fd fd(::memfd_create("weights", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::pwrite(fd.get(), content.data(), size, 0), static_cast<ssize_t>(size));
    if (seals) {
        EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    }
    return fd;
}

struct bed {
    explicit bed(plane_limits limits = {}) : rig(cards, limits), session(rig.opened()) {}
    result<weights_info> load(unique_fd fd, weights_options how = {.n_out = n_out, .k = k})
    {
        return rig.load(session.id, std::move(fd), how);
    }
    std::uint64_t used() { return cards.card(0).used_bytes + cards.card(1).used_bytes; }
    std::size_t uploads()
    {
        return cards.card(0).count(SPK_OP_DMA_IN) + cards.card(1).count(SPK_OP_DMA_IN);
    }
    fake_backend cards{2};
    plane_rig rig;
    session_fds session;
};

TEST(data_weights, are_cut_over_the_cards)
{
    for (const sharding how : {sharding::rows, sharding::k_split, sharding::whole}) {
        bed b;
        const auto w = b.load(weights_file(0), {.n_out = n_out, .k = k, .how = how});
        ASSERT_TRUE(w) << w.error().message;
        EXPECT_EQ(w->how, how);
        EXPECT_EQ(w->bytes, bytes);
        EXPECT_FALSE(w->resident);
        EXPECT_EQ(w->hash.size(), 64u);
        EXPECT_EQ(b.used(), bytes);
        EXPECT_EQ(w->cards.size(), how == sharding::whole ? 1u : 2u);
    }
}

TEST(data_weights, without_a_wish_the_planner_chooses)
{
    bed b;
    const auto w = b.load(weights_file(0));
    ASSERT_TRUE(w) << w.error().message;
    EXPECT_EQ(b.used(), bytes);
}

TEST(data_weights, the_same_weights_lie_there_once)
{
    bed b;
    const auto first = b.load(weights_file(1)), second = b.load(weights_file(1));
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->handle, second->handle);
    EXPECT_EQ(first->hash, second->hash);
    EXPECT_EQ(b.used(), bytes);
    const auto other = b.load(weights_file(2));
    EXPECT_NE(first->hash, other->hash);
    EXPECT_EQ(b.used(), 2 * bytes);
}

TEST(data_weights, sealed_files_are_not_uploaded_again)
{
    bed b;
    ASSERT_TRUE(b.load(weights_file(1, frozen)));
    const std::size_t uploads = b.uploads();
    const auto again = b.load(weights_file(1, frozen));
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->resident);
    EXPECT_EQ(b.uploads(), uploads);
    const auto unsealed = b.load(weights_file(1));  // must be uploaded to be believed
    EXPECT_FALSE(unsealed->resident);
    EXPECT_GT(b.uploads(), uploads);
    EXPECT_EQ(b.used(), bytes);
}

TEST(data_weights, whole_ones_are_found_on_whichever_card_they_are)
{
    bed b;
    const weights_options whole = {.n_out = n_out, .k = k, .how = sharding::whole};
    const auto a = b.load(weights_file(1, frozen), whole),
               c = b.load(weights_file(2, frozen), whole);
    ASSERT_TRUE(a && c);
    EXPECT_NE(a->cards, c->cards);  // the emptier card
    EXPECT_TRUE(b.load(weights_file(1, frozen), whole)->resident);
    EXPECT_TRUE(b.load(weights_file(2, frozen), whole)->resident);
}

TEST(data_weights, shape_and_cut_are_part_of_the_key)
{
    bed b;
    ASSERT_TRUE(b.load(weights_file(1, frozen), {.n_out = n_out, .k = k, .how = sharding::rows}));
    EXPECT_FALSE(b.load(weights_file(1, frozen), {.n_out = n_out, .k = k, .how = sharding::k_split})
                     ->resident);
    EXPECT_FALSE(
        b.load(weights_file(1, frozen), {.n_out = n_out * 2, .k = k / 2, .how = sharding::rows})
            ->resident);
}

TEST(data_weights, stay_after_the_last_reference_until_memory_is_needed)
{
    bed b;
    const auto a = b.load(weights_file(1, frozen)), c = b.load(weights_file(2, frozen));
    ASSERT_TRUE(b.rig.unload(b.session.id, a->handle));
    ASSERT_TRUE(b.rig.unload(b.session.id, c->handle));
    EXPECT_EQ(b.used(), 2 * bytes);
    EXPECT_TRUE(b.load(weights_file(1, frozen))->resident);  // now 2 is the oldest, and free
    for (unsigned n = 0; n < 2; n++)
        b.cards.card(n).memory_bytes = b.cards.card(n).used_bytes + 1000;
    ASSERT_TRUE(b.rig.add_tensor(b.session.id, {.shape = {n_out * 8}}));
    EXPECT_TRUE(b.load(weights_file(1, frozen))->resident);
    b.cards.card(0).memory_bytes = b.cards.card(1).memory_bytes = 64u << 20;
    EXPECT_FALSE(b.load(weights_file(2, frozen))->resident);
}

TEST(data_weights, referenced_ones_never_give_way)
{
    bed b;
    ASSERT_TRUE(b.load(weights_file(1)));
    for (unsigned n = 0; n < 2; n++)
        b.cards.card(n).memory_bytes = b.cards.card(n).used_bytes + 1000;
    const auto refused = b.load(weights_file(2));
    EXPECT_EQ(refused.error().kind, SPANKER_ERR_NO_MEMORY);
    EXPECT_EQ(b.used(), bytes);
}

struct bad_load {
    const char* name;
    weights_options how;
    spanker_error_kind kind;
};

TEST(data_weights, bad_requests_are_refused_and_leave_nothing)
{
    const bad_load table[] = {
        {"k 0", {.n_out = 4, .k = 0}, SPANKER_ERR_BAD_DIMS},
        {"n_out 0", {.n_out = 0, .k = 256}, SPANKER_ERR_BAD_DIMS},
        {"k not of blocks", {.n_out = 4, .k = 300}, SPANKER_ERR_BAD_DIMS},
        {"k beyond a row", {.n_out = 1, .k = 256ull << 20}, SPANKER_ERR_BAD_DIMS},
        {"n_out beyond", {.n_out = 1ull << 33, .k = 256}, SPANKER_ERR_BAD_DIMS},
        {"file too short", {.n_out = n_out + 1, .k = k}, SPANKER_ERR_RANGE},
        {"offset past it", {.n_out = n_out, .k = k, .offset = 1}, SPANKER_ERR_RANGE},
        {"offset overflows", {.n_out = n_out, .k = k, .offset = ~0ull}, SPANKER_ERR_RANGE},
        {"seal without seals", {.n_out = n_out, .k = k, .seal = true}, SPANKER_ERR_NOT_SEALED},
    };
    bed b;
    for (const bad_load& row : table) {
        const auto w = b.load(weights_file(0), row.how);
        ASSERT_FALSE(w) << row.name;
        EXPECT_EQ(w.error().kind, row.kind) << row.name << ": " << w.error().message;
    }
    EXPECT_EQ(b.used(), 0u);
}

TEST(data_weights, pipes_are_refused_by_name)
{
    bed b;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const unique_fd write_end(ends[1]);
    const auto w = b.load(unique_fd(ends[0]));
    ASSERT_FALSE(w);
    EXPECT_EQ(w.error().kind, SPANKER_ERR_INVALID);
    EXPECT_NE(w.error().message.find("a pipe"), std::string::npos);
}

TEST(data_weights, a_failing_upload_names_its_cause_and_frees_the_card)
{
    bed b;
    b.cards.card(1).failures.push_back({SPK_OP_DMA_IN, -EFAULT, SPANKER_CARD_HOST_FAULT, 0, 0});
    const auto w = b.load(weights_file(1), {.n_out = n_out, .k = k, .how = sharding::rows});
    ASSERT_FALSE(w);
    EXPECT_EQ(w.error().kind, SPANKER_ERR_HOST_FAULT);
    EXPECT_EQ(b.used(), 0u);
    EXPECT_TRUE(b.load(weights_file(1)));
}

TEST(data_weights, a_load_can_be_cancelled)
{
    bed b;
    b.cards.card(0).hold = b.cards.card(1).hold = true;
    constexpr std::uint64_t rows = 64 * 1024;  // nine chunks
    std::optional<result<weights_info>> got;
    const load_id id = b.rig.data->load_weights(
        b.session.id, weights_file(0, 0, rows * 144), {.n_out = rows, .k = 256}, {},
        [&](result<weights_info> r) { got = std::move(r); });
    ASSERT_TRUE(b.rig.until([&] { return b.uploads() != 0; }));
    b.rig.data->cancel_load(id);
    b.cards.release(0);
    b.cards.release(1);
    ASSERT_TRUE(b.rig.until([&] { return got.has_value(); }));
    EXPECT_EQ(got->error().kind, SPANKER_ERR_CANCELLED);
    EXPECT_EQ(b.used(), 0u);
}

TEST(data_weights, a_session_that_ends_cancels_its_loads)
{
    bed b;
    b.cards.card(0).hold = b.cards.card(1).hold = true;
    std::optional<result<weights_info>> got;
    b.rig.data->load_weights(b.session.id, weights_file(0), {.n_out = n_out, .k = k}, {},
                             [&](result<weights_info> r) { got = std::move(r); });
    ASSERT_TRUE(b.rig.until([&] { return b.uploads() != 0; }));
    bool gone = false;
    b.rig.data->destroy_session(b.session.id, [&] { gone = true; });
    b.rig.settle(b.session.id);
    b.cards.release(0);
    b.cards.release(1);
    ASSERT_TRUE(b.rig.until([&] { return gone && got; }));
    EXPECT_EQ(got->error().kind, SPANKER_ERR_CANCELLED);
}

TEST(data_weights, what_no_card_can_hold_is_refused_before_it_is_read)
{
    bed b;
    constexpr std::uint64_t rows = 1ull << 24;
    const auto huge = b.rig.load(
        b.session.id, make_memfd(rows * 16 * 144, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
        {.n_out = rows, .k = 16 * 256, .how = collective::sharding::rows});
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().kind, SPANKER_ERR_NO_MEMORY);
    EXPECT_NE(huge.error().message.find("card 0"), std::string::npos) << huge.error().message;
}

TEST(data_weights, a_load_that_stands_still_holds_up_its_owner_alone)
{
    bed b;
    b.cards.card(0).hold = true;
    const auto slow = b.rig.open(1001, {0}), other = b.rig.open(1002, {1});
    std::optional<result<weights_info>> late;
    const weights_options how = {.n_out = n_out, .k = k};
    b.rig.data->load_weights(slow->id, weights_file(0), how, {},
                             [&](result<weights_info> r) { late = std::move(r); });
    EXPECT_TRUE(b.rig.load(other->id, weights_file(1), how));
    EXPECT_FALSE(late);
    b.cards.release(0);
    EXPECT_TRUE(b.rig.until([&] { return late.has_value(); }));
    EXPECT_TRUE(*late);
}

TEST(data_weights, loads_of_a_user_take_turns_and_a_waiting_one_can_be_cancelled)
{
    bed b;
    b.cards.card(0).hold = b.cards.card(1).hold = true;
    std::optional<result<weights_info>> first, second;
    const weights_options how = {.n_out = n_out, .k = k};
    b.rig.data->load_weights(b.session.id, weights_file(0), how, {},
                             [&](result<weights_info> r) { first = std::move(r); });
    const load_id waits =
        b.rig.data->load_weights(b.session.id, weights_file(1), how, {},
                                 [&](result<weights_info> r) { second = std::move(r); });
    b.rig.data->cancel_load(waits);
    ASSERT_TRUE(b.rig.until([&] { return second.has_value(); }));
    EXPECT_EQ(second->error().kind, SPANKER_ERR_CANCELLED);
    EXPECT_FALSE(first);
    b.cards.release(0);
    b.cards.release(1);
    ASSERT_TRUE(b.rig.until([&] { return first.has_value(); }));
    EXPECT_TRUE(*first);
}

TEST(data_weights, a_load_that_never_ends_holds_neither_its_session_nor_the_stop_of_the_daemon)
{
    bed b;
    for (unsigned c = 0; c < 2; c++)
        b.cards.card(c).hold = b.cards.card(c).deaf = true;
    std::optional<result<weights_info>> got;
    b.rig.data->load_weights(b.session.id, weights_file(0), {.n_out = n_out, .k = k}, {},
                             [&](result<weights_info> r) { got = std::move(r); });
    ASSERT_TRUE(b.rig.until([&] { return b.uploads() != 0; }));
    b.rig.close(b.session.id);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->error().kind, SPANKER_ERR_CANCELLED);
    EXPECT_FALSE(b.rig.data->stop(20));
    b.cards.release(0);
    b.cards.release(1);
    EXPECT_TRUE(b.rig.data->stop(patience_ms));
    EXPECT_EQ(b.used(), 0u);
}

TEST(data_weights, a_file_that_shrinks_is_an_error_by_name)
{
    bed b;
    b.cards.card(0).hold = b.cards.card(1).hold = true;
    constexpr std::uint64_t rows = 128 * 1024;  // 18 MiB: five chunks
    unique_fd fd = weights_file(0, 0, rows * 144);
    const unique_fd mine(::dup(fd.get()));
    std::optional<result<weights_info>> got;
    b.rig.data->load_weights(b.session.id, std::move(fd), {.n_out = rows, .k = 256}, {},
                             [&](result<weights_info> r) { got = std::move(r); });
    ASSERT_TRUE(b.rig.until([&] { return b.uploads() != 0; }));
    ASSERT_EQ(::ftruncate(mine.get(), 100), 0);
    b.cards.release(0);
    b.cards.release(1);
    ASSERT_TRUE(b.rig.until([&] { return got.has_value(); }));
    ASSERT_FALSE(*got);
    EXPECT_EQ(got->error().kind, SPANKER_ERR_RANGE);
    EXPECT_NE(got->error().message.find("shrank"), std::string::npos);
    EXPECT_EQ(b.used(), 0u);
}

TEST(data_weights, progress_is_told)
{
    bed b;
    std::optional<result<weights_info>> got;
    std::vector<load_progress> told;
    b.rig.data->load_weights(
        b.session.id, weights_file(0), {.n_out = n_out, .k = k},
        [&](const load_progress& p) { told.push_back(p); },
        [&](result<weights_info> r) { got = std::move(r); });
    ASSERT_TRUE(b.rig.until([&] { return got.has_value(); }));
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told[0].total_bytes, bytes);
    EXPECT_STREQ(told[0].stage, "uploading");
}

TEST(data_weights, their_number_is_limited_and_handles_end)
{
    bed b({.weights_per_session = 1});
    const auto w = b.load(weights_file(1));
    EXPECT_EQ(b.load(weights_file(1)).error().kind, SPANKER_ERR_QUOTA);
    EXPECT_TRUE(b.rig.unload(b.session.id, w->handle));
    EXPECT_EQ(b.rig.unload(b.session.id, w->handle).error().kind, SPANKER_ERR_NO_OBJECT);
    EXPECT_TRUE(b.load(weights_file(1)));
}

}  // namespace
}  // namespace spanker::daemon::test
