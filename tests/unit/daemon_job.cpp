// SPDX-License-Identifier: Apache-2.0
//
// Jobs: they end once, whoever is first, and are forgotten later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/job.hpp"

namespace spanker::daemon {
namespace {

class job_test : public testing::Test {
protected:
    job_test() : home_(std::move(*loop::make())), all_(*home_, 1000)
    {
        all_.listen({.changed = [this](job&) { changed_++; },
                     .ended = [this](job&) { ended_++; },
                     .removed =
                         [this](job_id) {
                             removed_++;
                             home_->exit(0);
                         }});
    }
    job& start(std::function<void()> abort = {})
    {
        return **all_.start("reset", {.sender = ":1.5", .uid = 1000}, false, std::move(abort));
    }

    std::unique_ptr<loop> home_;
    jobs all_;
    int changed_ = 0, ended_ = 0, removed_ = 0;
};

TEST_F(job_test, runs_until_it_is_finished_with_a_result)
{
    job& work = start();
    EXPECT_EQ(work.state, job_state::running);
    all_.progress(work.id, 0.5, "probing");
    all_.finish(work.id, options{{"weights", std::uint64_t{3}}});
    EXPECT_EQ(work.state, job_state::done);
    EXPECT_EQ(work.progress, 1);
    EXPECT_EQ(work.outcome.at(0).key, "weights");
    EXPECT_EQ(changed_, 1);
    EXPECT_EQ(ended_, 1);
}

TEST_F(job_test, fails_with_its_error)
{
    job& work = start();
    all_.finish(work.id, fail(SPANKER_ERR_CARD_FAILED, "card 1 is dead"));
    EXPECT_EQ(work.state, job_state::failed);
    EXPECT_EQ(work.problem.message, "card 1 is dead");
}

TEST_F(job_test, cancel_aborts_the_work_once_and_what_comes_later_does_not_count)
{
    int aborted = 0;
    job& work = start([&] { aborted++; });
    all_.cancel(work.id, "enough");
    all_.cancel(work.id, "again");
    all_.finish(work.id, options{});
    all_.progress(work.id, 0.9, "late");
    EXPECT_EQ(aborted, 1);
    EXPECT_EQ(work.state, job_state::cancelled);
    EXPECT_EQ(work.problem.kind, SPANKER_ERR_CANCELLED);
    EXPECT_EQ(ended_, 1);
    EXPECT_EQ(changed_, 0);
}

TEST_F(job_test, an_abort_that_finishes_the_job_does_not_undo_the_cancel)
{
    job_id id = 0;
    job& work = start([&] { all_.finish(id, options{}); });
    id = work.id;
    all_.cancel(id, "enough");
    EXPECT_EQ(work.state, job_state::cancelled);
    EXPECT_EQ(ended_, 1);
}

TEST_F(job_test, is_forgotten_after_its_time)
{
    job& work = start();
    const job_id id = work.id;
    all_.finish(id, options{});
    EXPECT_NE(all_.find(id), nullptr);
    home_->run();
    EXPECT_EQ(all_.find(id), nullptr);
    EXPECT_EQ(removed_, 1);
}

TEST_F(job_test, a_user_has_no_more_than_his_quota)
{
    for (std::size_t i = 0; i < jobs::per_uid; i++)
        start();
    auto more = all_.start("reset", {.uid = 1000}, false, {});
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().kind, SPANKER_ERR_QUOTA);
    EXPECT_TRUE(all_.start("reset", {.uid = 1001}, false, {}));
}

TEST_F(job_test, ended_ones_do_not_count_and_the_oldest_of_them_makes_room)
{
    for (std::size_t i = 0; i < jobs::per_uid; i++)
        start();
    for (const job_id id : {3, 2})
        all_.finish(id, options{});
    EXPECT_TRUE(all_.start("reset", {.uid = 1000}, false, {}));
    EXPECT_EQ(all_.find(2), nullptr);
    EXPECT_NE(all_.find(3), nullptr);
    EXPECT_EQ(removed_, 1);
    EXPECT_TRUE(all_.start("reset", {.uid = 1000}, false, {}));
    EXPECT_FALSE(all_.start("reset", {.uid = 1000}, false, {}));
}

TEST_F(job_test, says_whether_it_runs)
{
    job& work = start();
    EXPECT_TRUE(all_.runs(work.id));
    all_.cancel(work.id, "enough");
    EXPECT_FALSE(all_.runs(work.id));
    EXPECT_FALSE(all_.runs(work.id + 1));
}

TEST_F(job_test, all_are_cancelled_at_the_end)
{
    job &one = start(), &two = start();
    all_.finish(one.id, options{});
    all_.cancel_all("the daemon stops");
    EXPECT_EQ(one.state, job_state::done);
    EXPECT_EQ(two.state, job_state::cancelled);
}

}  // namespace
}  // namespace spanker::daemon
