// SPDX-License-Identifier: Apache-2.0
//
// The progress bar as a terminal and a pipe see it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <limits>
#include <string>

#include "tools/spankerctl/progress_bar.hpp"

namespace {

using spanker::cli::progress_bar;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
constexpr std::chrono::milliseconds at_once(0), never(3'600'000);

// Both ends of a line; what was written to one is read from the other.
class line {
public:
    explicit line(bool terminal)
    {
        EXPECT_EQ(terminal ? openpty(&ends_[0], &ends_[1], nullptr, nullptr, nullptr)
                           : pipe2(ends_, O_CLOEXEC),
                  0);
        EXPECT_EQ(fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
    }
    ~line()
    {
        close(ends_[0]);
        close(ends_[1]);
    }
    line(const line&) = delete;
    line& operator=(const line&) = delete;
    int writer() const { return ends_[1]; }
    std::string text() const
    {
        char buffer[4096];
        const ssize_t n = read(ends_[0], buffer, sizeof buffer);
        return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
    }

private:
    int ends_[2] = {-1, -1};
};

TEST(cli_progress_bar, shows_how_far_the_work_is_and_is_gone_at_its_end)
{
    const line terminal(true);
    {
        progress_bar bar("loading weights", terminal.writer(), at_once);
        bar.show(0.5);
        const std::string text = terminal.text();
        EXPECT_THAT(text, StartsWith("\rloading weights ["));
        EXPECT_THAT(text, HasSubstr("###############..............."));
        EXPECT_THAT(text, HasSubstr(" 50 %"));
        bar.show(0.6);  // too soon after the last
        EXPECT_EQ(terminal.text(), "");
    }
    EXPECT_EQ(terminal.text(), "\r\x1b[K");
}

TEST(cli_progress_bar, does_not_flicker_up_for_work_that_ends_at_once)
{
    const line terminal(true);
    {
        progress_bar bar("loading weights", terminal.writer(), never);
        bar.show(0.5);
    }
    EXPECT_EQ(terminal.text(), "");
}

TEST(cli_progress_bar, writes_nothing_into_pipes_or_nowhere)
{
    const line pipe(false);
    {
        progress_bar bar("loading weights", pipe.writer(), at_once), none("x", -1, at_once);
        bar.show(0.5);
        none.show(0.5);
    }
    EXPECT_EQ(pipe.text(), "");
}

TEST(cli_progress_bar, keeps_fractions_within_the_line)
{
    for (const double fraction : {-1.0, 0.0, 1.0, 7.0}) {
        const line terminal(true);
        progress_bar bar("x", terminal.writer(), at_once);
        bar.show(fraction);
        EXPECT_THAT(terminal.text(), EndsWith(fraction > 0 ? " 100 %\x1b[K" : "   0 %\x1b[K"))
            << fraction;
    }
    const line terminal(true);
    progress_bar bar("x", terminal.writer(), at_once);
    bar.show(std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(terminal.text(), "");
}

}  // namespace
