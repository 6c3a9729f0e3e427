// SPDX-License-Identifier: Apache-2.0
#include "progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace spanker::cli {
namespace {

constexpr int cells = 30;
constexpr std::chrono::milliseconds between(100);

// What is drawn is no result: a terminal that does not take it loses nothing.
void draw(int terminal, const std::string& text)
{
    static_cast<void>(!::write(terminal, text.data(), text.size()));
}

}  // namespace

progress_bar::progress_bar(std::string label, int terminal, std::chrono::milliseconds patience)
    : label_(std::move(label)), terminal_(terminal >= 0 && isatty(terminal) == 1 ? terminal : -1),
      next_(std::chrono::steady_clock::now() + patience)
{}

progress_bar::~progress_bar()
{
    if (shown_)
        draw(terminal_, "\r\x1b[K");
}

void progress_bar::show(double fraction)
{
    const auto now = std::chrono::steady_clock::now();
    if (terminal_ < 0 || now < next_ || !std::isfinite(fraction))
        return;
    next_ = now + between;
    shown_ = true;
    const double share = std::clamp(fraction, 0.0, 1.0);
    const int full = static_cast<int>(share * cells);
    draw(terminal_, fmt::format("\r{} [{:#<{}}{:.<{}}] {:3.0f} %\x1b[K", label_, "", full, "",
                                cells - full, share * 100));
}

}  // namespace spanker::cli
