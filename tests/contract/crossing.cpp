// SPDX-License-Identifier: Apache-2.0
//
// Every fault of the card model, crossed with what a program does meanwhile: it submits, waits, cancels, closes, is killed.
// Whatever the fault, what was asked ends soon and says what happened, work on another queue goes on where the fault is of
// one queue, and afterwards the card works and has all its memory.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ostream>
#include <thread>

#include "fabric.hpp"
#include "rig.hpp"

namespace contract {

namespace {

// A guest whose kernel checks everything says how much slower it is.
std::uint64_t slowed(std::uint64_t ns)
{
    const char* factor = std::getenv("SLOWER");
    return ns * (factor ? std::strtoull(factor, nullptr, 10) : 1);
}

const std::uint64_t soon_ns = slowed(15'000'000'000);  // on a busy machine under an emulator
constexpr std::uint64_t deadline_ns = 150'000'000;
constexpr std::uint32_t size = 4096;
constexpr std::uint64_t post_cookie = 2;  // of work that moves nothing

struct one_fault {
    const char* name;         // as the card model calls it
    const char* words;        // that follow it
    std::vector<int> ends;    // results that work may have
    bool of_a_queue = false;  // the first one; the second is not to notice
};

// Queue 1 is that of the first file.
const one_fault faults[] = {
    {"irq_drop", "count=0", {0}},
    {"irq_duplicate", "times=50 count=0", {0}},
    {"irq_delay", "ns=1000000 count=0", {0}},
    {"completion_drop", "queue=1 count=0", {-ETIMEDOUT}, true},
    {"completion_duplicate", "queue=1 count=0", {0}, true},
    {"completion_corrupt_id", "queue=1 count=0", {-ETIMEDOUT}, true},
    {"completion_error", "queue=1 status=5 count=0", {-ECOMM, -EREMOTEIO}, true},
    {"queue_hang", "queue=1", {-ETIMEDOUT}, true},
    {"engine_hang", "lane=0", {-ETIMEDOUT, -ESTALE, -EIO, 0}},
    {"engine_hang", "lane=1", {-ETIMEDOUT, -EIO}},
    {"gone", "", {-ENODEV, -ESTALE}},
    {"reset_stuck", "", {0}},
    {"ddr_uncalibrated", "", {-ETIMEDOUT, -ESTALE, -EIO}},
    {"dma_fault", "count=0", {-EFAULT, -EREMOTEIO, -ESTALE, -EIO, -ETIMEDOUT}},
    {"cable_cut", "port=0", {0}},
    {"temperature", "millidegrees=120000", {0}},
    {"ddr_bit_flip", "address=4194304", {0}},
    {"fatal", "reason=3", {-ESTALE, -EIO, -ETIMEDOUT}},
};

enum class act { submit, wait, cancel, close, kill };

struct cell {
    one_fault fault;
    act what;
};
const char* name_of(act what)
{
    constexpr const char* names[] = {"submit", "wait", "cancel", "close", "kill"};
    return names[static_cast<int>(what)];
}
std::ostream& operator<<(std::ostream& to, const cell& one)
{
    return to << one.fault.name << " x " << name_of(one.what);
}

std::vector<cell> all_cells()
{
    std::vector<cell> out;
    for (const auto& fault : faults)
        for (const act what : {act::submit, act::wait, act::cancel, act::close, act::kill})
            if (what != act::kill || cards_outlive_processes())
                out.push_back({fault, what});
    return out;
}

// vm_hold, in the middle of work; nothing where it cannot be started.
class holder {
public:
    explicit holder(std::uint32_t card)
    {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0)
            return;
        const std::string node = "/dev/spanker" + std::to_string(card);
        char* words[] = {const_cast<char*>("vm_hold"), const_cast<char*>(node.c_str()), nullptr};
        posix_spawn_file_actions_t files;
        ::posix_spawn_file_actions_init(&files);
        ::posix_spawn_file_actions_adddup2(&files, ends[1], 1);
        if (::posix_spawnp(&pid_, "vm_hold", &files, nullptr, words, environ) != 0)
            pid_ = 0;
        ::posix_spawn_file_actions_destroy(&files);
        ::close(ends[1]);
        char said[16];
        if (pid_ && ::read(ends[0], said, sizeof(said)) < 7)
            kill();
        ::close(ends[0]);
    }
    ~holder() { kill(); }
    bool holds() const { return pid_ != 0; }
    void kill()
    {
        if (pid_) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        pid_ = 0;
    }

private:
    pid_t pid_ = 0;
};

}  // namespace

class crossing : public rig, public testing::WithParamInterface<cell> {
protected:
    void SetUp() override;
    void inject();
    void submit_under_the_fault();
    void wait_through_the_fault();
    void cancel_under_the_fault();
    void close_under_the_fault();
    void expect_ends(std::size_t count, int also);
    void expect_neighbour_unharmed();
    void heal();
    void expect_all_is_well();

    bool may_time_out() const
    {
        const auto& ends = GetParam().fault.ends;
        return std::find(ends.begin(), ends.end(), -ETIMEDOUT) != ends.end();
    }
    // One that goes to the card and back; its deadline is not to strike where the card does its work.
    std::vector<spanker_work_item> work()
    {
        std::vector<spanker_work_item> out = {dma_in(tensor, buffer, size),
                                              dma_out(buffer, tensor, size)};
        for (auto& one : out)
            one.deadline_ns = now_ns() + (may_time_out() ? deadline_ns : soon_ns);
        return out;
    }

    std::uint32_t card = 0;
    std::uint64_t free_before = 0;
    std::uint32_t generation = 0;
    std::unique_ptr<card_file> file, neighbour;
    bytes memory = bytes(size, 0x42);
    std::uint32_t tensor = 0, buffer = 0;
};

void crossing::SetUp()
{
    rig::SetUp();
    if (IsSkipped() || HasFatalFailure())
        return;
    card = cards->cards().front();
    if (!can_inject(card))
        GTEST_SKIP() << "faults cannot be injected here";
    forgive(card);
    free_before = cards->info(card)->out_memory_free_bytes;
    generation = cards->info(card)->out_reset_generation;
    if (GetParam().what != act::kill) {
        file = open(card, 16);
        tensor = alloc(*file, size);
        buffer = share(*file, memory, read_access | write_access);
    }
}

void crossing::inject()
{
    const one_fault& what = GetParam().fault;
    ASSERT_EQ(errno_of(cards->inject(card, std::string(what.name) + " " + what.words)), 0);
}

void crossing::expect_ends(std::size_t count, int also)
{
    for (const auto& record : wait(*file, count)) {
        const auto& ends = GetParam().fault.ends;
        const bool posted = record.cookie == post_cookie && record.result == 0;
        EXPECT_TRUE(posted || record.result == also ||
                    std::find(ends.begin(), ends.end(), record.result) != ends.end())
            << "the work ended with " << record.result;
    }
}

void crossing::submit_under_the_fault()
{
    inject();
    const auto sent = file->submit(work(), 1);
    const auto& ends = GetParam().fault.ends;
    if (sent)
        expect_ends(1, ends[0]);
    else
        EXPECT_NE(std::find(ends.begin(), ends.end(), errno_of(sent)), ends.end()) << text_of(sent);
}

void crossing::wait_through_the_fault()
{
    auto batch = work();
    batch[0] = waiting(batch[0], 9);
    submit(*file, batch);
    settle();
    inject();
    auto post = posting(nop(), 9);
    post.deadline_ns = now_ns() + deadline_ns;
    // Where it did not get out, the first one ends all the same.
    const bool posted = file->submit(std::vector{post}, post_cookie).has_value();
    expect_ends(posted ? 2 : 1, -ETIMEDOUT);
}

void crossing::cancel_under_the_fault()
{
    submit(*file, {wait_for_ever(9), waiting(dma_out(buffer, tensor, size), 9)});
    settle();
    inject();
    const int refused = errno_of(file->cancel_all());
    EXPECT_TRUE(refused == 0 || refused == -ENODEV || refused == -ESTALE) << refused;
    expect_ends(1, -ECANCELED);
}

void crossing::close_under_the_fault()
{
    submit(*file, {wait_for_ever(9), waiting(dma_out(buffer, tensor, size), 9)});
    submit(*file, {dma_in(tensor, buffer, size)});
    inject();
    file.reset();
    // It is ours again: the card must not write to it.
    memory.assign(size, 0x77);
}

void crossing::expect_neighbour_unharmed()
{
    if (!GetParam().fault.of_a_queue)
        return;
    EXPECT_EQ(run(*neighbour, {nop()}).result, 0);
    EXPECT_EQ(cards->info(card)->out_reset_generation, generation) << "the card was reset";
}

void crossing::heal()
{
    EXPECT_EQ(errno_of(cards->inject(card, std::string("clear ") + GetParam().fault.name)), 0);
    const std::uint64_t end_ns = now_ns() + soon_ns;
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
        settle();
        const auto state = cards->info(card)->out_state;
        if (state == SPANKER_CARD_READY || now_ns() > end_ns)
            break;
        if (state == SPANKER_CARD_DEAD)
            (void)cards->card_reset(card, SPANKER_RESET_FLR);
    }
    EXPECT_EQ(cards->info(card)->out_state, std::uint32_t{SPANKER_CARD_READY});
    // What the driver has yet to do about it, it has done after this.
    if (!GetParam().fault.of_a_queue)
        forgive(card);
}

void crossing::expect_all_is_well()
{
    const bytes closed(size, 0x77);
    if (GetParam().what == act::close) {
        EXPECT_EQ(memory, closed) << "the card wrote to memory that was given back";
    }
    file.reset();
    neighbour.reset();
    settle();
    const std::uint64_t end_ns = now_ns() + soon_ns;
    while (cards->info(card)->out_memory_free_bytes != free_before && now_ns() < end_ns) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        settle();
    }
    EXPECT_EQ(cards->info(card)->out_memory_free_bytes, free_before);
    auto fresh = open(card, 16);
    const auto again = alloc(*fresh, size);
    upload(*fresh, again, pattern(size, 1));
    EXPECT_EQ(download(*fresh, again, size), pattern(size, 1));
}

TEST_P(crossing, ends_and_heals)
{
    std::unique_ptr<holder> victim;
    if (GetParam().what == act::kill) {
        victim = std::make_unique<holder>(card);
        ASSERT_TRUE(victim->holds());
    }
    neighbour = open(card, 16);
    const std::uint64_t start_ns = now_ns();
    switch (GetParam().what) {
    case act::submit:
        submit_under_the_fault();
        break;
    case act::wait:
        wait_through_the_fault();
        break;
    case act::cancel:
        cancel_under_the_fault();
        break;
    case act::close:
        close_under_the_fault();
        break;
    case act::kill:
        inject();
        victim->kill();
    }
    EXPECT_LT(now_ns() - start_ns, soon_ns);
    expect_neighbour_unharmed();
    heal();
    expect_neighbour_unharmed();
    expect_all_is_well();
}

INSTANTIATE_TEST_SUITE_P(faults, crossing, testing::ValuesIn(all_cells()), [](const auto& row) {
    std::string out = row.param.fault.name;
    if (out == "engine_hang")
        out += std::string(row.param.fault.words).back() == '0' ? "_of_control" : "_of_transfers";
    return out + "_x_" + name_of(row.param.what);
});

}  // namespace contract
