// SPDX-License-Identifier: Apache-2.0
//
// The contract on simulated cards in this process: four of them in a ring.
#include <gtest/gtest.h>

#include "fabric.hpp"
#include "rig.hpp"

namespace contract {

namespace {

class embedded_fabric final : public fabric {
public:
    std::unique_ptr<backend> open() override
    {
        auto made = spanker::daemon::make_embedded_backend({.cards = 4,
                                                            .topology = "ring",
                                                            .card_memory_bytes = 64 << 20,
                                                            .real_pace = false,
                                                            .hang_ns = hang_ms * 1'000'000});
        EXPECT_TRUE(made) << text_of(made);
        return made ? std::move(*made) : nullptr;
    }
    void settle(backend& cards) override
    {
        for (;;) {
            while (cards.drive())
                ;
            const auto next = cards.next_work_ns();
            if (!next || *next > now_ns())
                return;
        }
    }
};

}  // namespace

bool cards_outlive_processes() { return false; }

fabric& tested_fabric()
{
    static embedded_fabric it;
    return it;
}

}  // namespace contract

int main(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
