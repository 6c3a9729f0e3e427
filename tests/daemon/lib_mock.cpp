// SPDX-License-Identifier: Apache-2.0
//
// with_mock: a daemon of one's own, and nothing left of it afterwards; and the example of docs/library.md.
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/daemon/lib_stack.hpp"

namespace {

using namespace stack;
using testing::HasSubstr;

class lib_mock : public testing::Test {
protected:
    lib_mock()
    {
        setenv("SPANKERD", SPANKER_BIN_DIR "/spankerd", 1);
        setenv("TMPDIR", home_.path().c_str(), 1);
    }
    ~lib_mock() override
    {
        unsetenv("SPANKERD");
        unsetenv("TMPDIR");
    }
    bool home_is_empty() const { return std::filesystem::is_empty(home_.path()); }
    bed::folder home_;
};

TEST_F(lib_mock, n_cards_are_a_full_mesh)
{
    for (const std::uint32_t n : {1u, 2u, 4u, 9u}) {
        const auto mock = must(spanker::mock::start(n));
        auto link = must(connection::open(mock.bus()));
        EXPECT_EQ(must(link.enumerate()).size(), n);
        EXPECT_TRUE(bed::eventually([&] { return fabric_is_up(link); }, std::chrono::seconds(60)));
        spanker_fabric_info fabric = {};
        const auto links = must(link.topology(fabric));
        EXPECT_EQ(links.size(), n * (n - 1) / 2);
        std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
        for (const auto& l : links) {
            pairs.emplace(l.card_a, l.card_b);
            EXPECT_STREQ(l.state, "up") << l.name;
        }
        EXPECT_EQ(pairs.size(), links.size()) << "each pair once";
    }
}

TEST_F(lib_mock, another_cabling_can_be_asked_for)
{
    const auto mock = must(spanker::mock::start(3, "line"));
    auto link = must(connection::open(mock.bus()));
    spanker_fabric_info fabric = {};
    EXPECT_TRUE(bed::eventually([&] { return must(link.topology(fabric)).size() == 2; }));
}

TEST_F(lib_mock, two_live_side_by_side)
{
    const auto one = must(spanker::mock::start(1)), two = must(spanker::mock::start(2));
    EXPECT_NE(one.bus(), two.bus());
    EXPECT_EQ(must(must(connection::open(two.bus())).enumerate()).size(), 2u);
    EXPECT_EQ(must(must(connection::open(one.bus())).enumerate()).size(), 1u);
}

TEST_F(lib_mock, nothing_is_left_of_it)
{
    pid_t daemon = 0;
    {
        const auto mock = must(spanker::mock::start(1));
        daemon = mock.daemon_pid();
        EXPECT_EQ(kill(daemon, 0), 0);
        EXPECT_FALSE(home_is_empty());
    }
    EXPECT_EQ(kill(daemon, 0), -1);
    EXPECT_TRUE(home_is_empty());
}

TEST_F(lib_mock, it_ends_with_the_process_that_started_it)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        spanker_mock* mock = nullptr;
        pid_t daemon = -1;
        if (spanker_with_mock(1, nullptr, &mock) == 0)
            daemon = spanker_mock_daemon_pid(mock);
        _exit(write(ends[1], &daemon, sizeof daemon) == sizeof daemon ? 0 : 1);
    }
    pid_t daemon = -1;
    ASSERT_EQ(read(ends[0], &daemon, sizeof daemon), static_cast<ssize_t>(sizeof daemon));
    waitpid(child, nullptr, 0);
    ASSERT_GT(daemon, 0);
    EXPECT_TRUE(bed::eventually(
        [&] {
            std::ifstream stat("/proc/" + std::to_string(daemon) + "/stat");
            std::string number, name, state;
            return !(stat >> number >> name >> state) || state == "Z";
        },
        std::chrono::seconds(20)));
    close(ends[0]);
    close(ends[1]);
}

TEST_F(lib_mock, a_daemon_that_is_not_there_is_said_and_nothing_is_left)
{
    setenv("SPANKERD", "/nonexistent/spankerd", 1);
    const auto mock = spanker::mock::start(1);
    ASSERT_FALSE(mock);
    EXPECT_EQ(mock.error().kind, SPANKER_KIND_NO_DAEMON);
    EXPECT_THAT(mock.error().message, HasSubstr("$SPANKERD"));
    EXPECT_TRUE(home_is_empty());
}

TEST_F(lib_mock, a_cabling_that_is_none_is_said)
{
    const auto mock = spanker::mock::start(2, "spaghetti");
    ASSERT_FALSE(mock);
    EXPECT_EQ(mock.error().kind, SPANKER_KIND_NO_DAEMON);
    EXPECT_TRUE(home_is_empty());
}

TEST_F(lib_mock, a_folder_that_cannot_be_made_is_said)
{
    setenv("TMPDIR", "/nonexistent", 1);
    EXPECT_EQ(spanker::mock::start(1).error().negative_errno, -ENOENT);
    const std::string deep = home_.path() + "/" + std::string(100, 'd');
    std::filesystem::create_directory(deep);
    setenv("TMPDIR", deep.c_str(), 1);
    EXPECT_FALSE(spanker::mock::start(1));
    EXPECT_TRUE(std::filesystem::is_empty(deep));
}

TEST_F(lib_mock, it_starts_whatever_signals_the_program_blocks_or_ignores)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto terminate = signal(SIGTERM, SIG_IGN);
    pid_t daemon = 0;
    {
        const auto mock = must(spanker::mock::start(1));
        daemon = mock.daemon_pid();
    }
    signal(SIGTERM, terminate);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(kill(daemon, 0), -1);
    EXPECT_TRUE(home_is_empty());
}

TEST_F(lib_mock, the_example_of_the_manual_works)
{
    const std::string out = home_.path() + "/out";
    const std::string command = std::string(SPANKER_BIN_DIR) + "/tests/lib_example --mock >" + out;
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(out);
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(said, HasSubstr("y[0] = 512, y[511] = 512 ("));
}

}  // namespace
