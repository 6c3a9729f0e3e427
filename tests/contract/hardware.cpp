// SPDX-License-Identifier: Apache-2.0
//
// The contract on the cards that the kernel module drives. In a guest of the
// VM rig they are simulated, and faults go to the model through its control
// channel; without one, faults are not to be had and tests of them say so.
//
//   contract_kernel [--complete] [GoogleTest options]
//
// --complete: a test that is skipped is one that failed, but for those that
// are not about device nodes. For the guest whose fabric has everything.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string_view>
#include <variant>

#include "control_line.hpp"
#include "fabric.hpp"
#include "rig.hpp"

namespace contract {

namespace {

using namespace spanker::daemon;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t patience_ns = 30'000 * ms;
constexpr std::uint64_t look_ns = 5 * ms;
constexpr unsigned quiet_looks = 3;  // one after the other at which nothing had happened

constexpr const char* hang_parameter = "/sys/module/spanker/parameters/hang_ms";

constexpr std::string_view not_of_nodes[] = {
    "lifecycle.files_and_groups_may_outlive_their_backend"};

void sleep_ns(std::uint64_t ns)
{
    const timespec time{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                        .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
    ::nanosleep(&time, nullptr);
}

// The backend of the module, with inject() on top.
class rigged_backend final : public backend {
public:
    rigged_backend(std::unique_ptr<backend> real, control_line* control,
                   std::map<std::uint32_t, unsigned> model)
        : real_(std::move(real)), control_(control), model_(std::move(model))
    {}

    std::string name() const override { return real_->name(); }
    std::vector<std::uint32_t> cards() override { return real_->cards(); }
    result<spanker_get_info> info(std::uint32_t card) override { return real_->info(card); }
    result<std::vector<port_info>> ports(std::uint32_t card) override { return real_->ports(card); }
    result<telemetry> read_telemetry(std::uint32_t card) override
    {
        return real_->read_telemetry(card);
    }
    result<std::unique_ptr<card_file>> open(std::uint32_t card, std::uint32_t depth) override
    {
        return real_->open(card, depth);
    }
    result<std::unique_ptr<channel_group>>
    group_create(std::span<const spanker::daemon::group_member> members) override
    {
        return real_->group_create(members);
    }
    result<void> link_train(std::uint32_t card, std::uint32_t mask, bool retrain) override
    {
        return real_->link_train(card, mask, retrain);
    }
    result<void> link_set_admin(std::uint32_t card, std::uint32_t port, bool enable) override
    {
        return real_->link_set_admin(card, port, enable);
    }
    result<void> card_reset(std::uint32_t card, std::uint32_t mode) override
    {
        return real_->card_reset(card, mode);
    }
    int event_fd() const override { return real_->event_fd(); }
    std::vector<event> take_events() override { return real_->take_events(); }
    bool drive() override { return real_->drive(); }
    std::optional<std::uint64_t> next_work_ns() const override { return real_->next_work_ns(); }
    result<std::vector<trace_record>> trace(std::uint32_t card, std::size_t last) override
    {
        return real_->trace(card, last);
    }
    result<void> inject(std::uint32_t card, const std::string& what) override;

private:
    std::unique_ptr<backend> real_;
    control_line* control_;
    std::map<std::uint32_t, unsigned> model_;  // the model's card of each of the driver's
};

result<void> rigged_backend::inject(std::uint32_t card, const std::string& what)
{
    const auto known = model_.find(card);
    if (!control_ || known == model_.end())
        return real_->inject(card, what);
    auto done = control_->ask("card " + std::to_string(known->second) + " " + what);
    if (!done)
        return tl::unexpected(done.error());
    // A driver sees in its own time that a card is back.
    const std::uint64_t end_ns = now_ns() + patience_ns;
    while (what == "clear gone" && now_ns() < end_ns) {
        const auto now = info(card);
        if (now && now->out_state != SPANKER_CARD_GONE && now->out_state != SPANKER_CARD_PROBING)
            break;
        sleep_ns(look_ns);
    }
    return {};
}

class hardware_fabric final : public fabric {
public:
    hardware_fabric()
    {
        auto found = control_line::find();
        if (found)
            control_ = std::move(*found);
        else
            trouble_ = "the control channel of the card model: " + text_of(found);
        if (std::ofstream parameter(hang_parameter); !(parameter << hang_ms << std::flush))
            trouble_ += std::string(hang_parameter) + " cannot be written";
    }
    std::unique_ptr<backend> open() override;
    void settle(backend& cards) override;

private:
    nlohmann::json ask(const std::string& request);
    std::map<std::uint32_t, unsigned> match(backend& cards);
    void mend(backend& cards, std::uint32_t card);
    bool is_quiet(std::string& last);

    std::unique_ptr<control_line> control_;
    std::string trouble_;
};

nlohmann::json hardware_fabric::ask(const std::string& request)
{
    auto answer = control_->ask(request);
    EXPECT_TRUE(answer) << text_of(answer);
    return answer.value_or(nlohmann::json::object());
}

// The driver's numbers go by serial, the model's by place.
std::map<std::uint32_t, unsigned> hardware_fabric::match(backend& cards)
{
    std::map<std::uint64_t, unsigned> by_serial;
    const auto topology = ask("topology");
    for (const auto& card : topology.value("cards", nlohmann::json::array()))
        by_serial[std::stoull(card.value("serial", std::string("0")), nullptr, 0)] =
            card.value("card", 0u);
    std::map<std::uint32_t, unsigned> out;
    for (const std::uint32_t card : cards.cards())
        if (const auto info = cards.info(card); info && by_serial.contains(info->out_serial))
            out[card] = by_serial[info->out_serial];
    return out;
}

// Back to what a fresh card is: ready, its ports on.
void hardware_fabric::mend(backend& cards, std::uint32_t card)
{
    const std::uint64_t end_ns = now_ns() + patience_ns;
    auto info = cards.info(card);
    while (info && info->out_state != SPANKER_CARD_READY && now_ns() < end_ns) {
        if (info->out_state == SPANKER_CARD_DEAD)
            (void)cards.card_reset(card, SPANKER_RESET_FLR);
        sleep_ns(look_ns);
        info = cards.info(card);
    }
    EXPECT_TRUE(info && info->out_state == SPANKER_CARD_READY)
        << "card " << card << " stays broken";
    for (const port_info& port : cards.ports(card).value_or(std::vector<port_info>()))
        if (port.reason == SPK_REASON_ADMIN) {
            EXPECT_TRUE(cards.link_set_admin(card, port.port, true));
        }
}

std::unique_ptr<backend> hardware_fabric::open()
{
    EXPECT_EQ(trouble_, "");
    if (control_)
        ask("clear");
    auto made = make_kernel_backend();
    EXPECT_TRUE(made) << text_of(made);
    if (!made)
        return nullptr;
    for (const std::uint32_t card : (*made)->cards())
        mend(**made, card);
    settle(**made);
    return std::make_unique<rigged_backend>(std::move(*made), control_.get(),
                                            control_ ? match(**made)
                                                     : std::map<std::uint32_t, unsigned>());
}

// Whether the model is idle and nothing crossed the pins of its cards since the last look.
bool hardware_fabric::is_quiet(std::string& last)
{
    const bool idle = ask("time").value("idle", false);
    std::string now = ask("counters").dump();
    const bool same = now == last;
    last = std::move(now);
    return idle && same;
}

void hardware_fabric::settle(backend&)
{
    if (!control_)
        return sleep_ns(100 * ms);
    const std::uint64_t end_ns = now_ns() + patience_ns;
    std::string last;
    for (unsigned quiet = 0; quiet < quiet_looks && now_ns() < end_ns; sleep_ns(look_ns))
        quiet = is_quiet(last) ? quiet + 1 : 0;
    EXPECT_LT(now_ns(), end_ns) << "the cards do not come to rest";
}

// Turns skips into failures.
class completeness final : public testing::EmptyTestEventListener {
public:
    bool complete() const { return missing_ == 0; }

private:
    void OnTestEnd(const testing::TestInfo& test) override
    {
        const std::string name = std::string(test.test_suite_name()) + "." + test.name();
        if (!test.result()->Skipped() || std::find(std::begin(not_of_nodes), std::end(not_of_nodes),
                                                   name) != std::end(not_of_nodes))
            return;
        std::printf("contract_kernel: %s was skipped, but everything should run here\n",
                    name.c_str());
        missing_++;
    }

    unsigned missing_ = 0;
};

}  // namespace

bool cards_outlive_processes() { return true; }

fabric& tested_fabric()
{
    static hardware_fabric it;
    return it;
}

}  // namespace contract

int main(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    contract::completeness skips;
    bool all = false;
    for (int n = 1; n < argc; n++) {
        all = std::string_view(argv[n]) == "--complete";
        if (!all) {
            std::fprintf(stderr, "usage: %s [--complete] [GoogleTest options]\n", argv[0]);
            return 2;
        }
    }
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    if (all)
        listeners.Append(&skips);
    const int failed = RUN_ALL_TESTS();
    listeners.Release(&skips);
    return failed || (all && !skips.complete()) ? 1 : 0;
}
