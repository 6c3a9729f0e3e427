// SPDX-License-Identifier: Apache-2.0
//
// How far long work is, for people who look at a terminal: one line that is gone when the work is done. Nothing is
// written where no terminal is, nor of work that ends within the first moments.
#pragma once

#include <chrono>
#include <string>

namespace spanker::cli {

class progress_bar {
public:
    explicit progress_bar(std::string label, int terminal,
                          std::chrono::milliseconds patience = std::chrono::milliseconds(300));
    ~progress_bar();
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;

    void show(double fraction);  // 0 to 1

private:
    const std::string label_;
    const int terminal_;  // -1: there is none
    std::chrono::steady_clock::time_point next_;
    bool shown_ = false;
};

}  // namespace spanker::cli
