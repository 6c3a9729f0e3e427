// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "rig.hpp"

int main(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    for (int n = 1; n < argc; n++) {
        const std::string_view word = argv[n];
        if (word == "--backend=embedded" || word == "--backend=hardware") {
            contract::chosen_backend = word.substr(word.find('=') + 1);
        } else {
            std::fprintf(stderr, "usage: %s [--backend=embedded|hardware] [gtest options]\n",
                         argv[0]);
            return 2;
        }
    }
    return RUN_ALL_TESTS();
}
