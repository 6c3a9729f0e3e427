// SPDX-License-Identifier: Apache-2.0
//
// A card that does not do its work: who is to blame, and the rung of the ladder (kernel/core/ladder.h) that is climbed.
#include <algorithm>
#include <utility>

#include "daemon/clock.hpp"
#include "daemon/embedded/driven_card.hpp"
#include "daemon/embedded/file.hpp"
#include "daemon/embedded/machine.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::embedded {

namespace {

constexpr std::uint64_t longest_look_ns = 250'000'000;
constexpr std::uint64_t stop_look_ns = 10'000'000;

}  // namespace

result<void> driven_card::reset(std::uint32_t mode)
{
    spk_ladder_forgive(&ladder_);
    return reset_again(mode);
}

result<void> driven_card::reset_again(std::uint32_t mode)
{
    check_presence();
    if (state_ == SPANKER_CARD_GONE)
        return tl::unexpected(refusals::gate(number_, -ENODEV));
    set_state(SPANKER_CARD_RESETTING);
    end_all(-ESTALE, SPANKER_CARD_RESET);
    if (mode == SPANKER_RESET_FLR)
        home_.fabric->reset(number_, sim::reset_kind::flr);
    else
        write(SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    auto up = bring_up();
    if (!up)
        set_state(SPANKER_CARD_DEAD);
    return up;
}

// Resets do not help.
void driven_card::give_up()
{
    set_state(SPANKER_CARD_RESETTING);
    write(SPK_REG_CTRL, SPK_CTRL_SOFT_RESET);
    end_all(-EIO, SPANKER_CARD_RESET);
    set_state(SPANKER_CARD_DEAD);
}

void driven_card::tell_rung(std::uint32_t rung, int err)
{
    home_.events.add(event_rung{number_, rung, err});
}

// One rung after the other, until one helps.
void driven_card::in_trouble(std::uint64_t now_ns)
{
    if (state_ != SPANKER_CARD_READY)
        return;
    for (;;) {
        const spanker_reset_rung rung = spk_ladder_card(&ladder_, now_ns);
        if (rung == SPANKER_RUNG_DEAD) {
            give_up();
            return tell_rung(rung, 0);
        }
        const auto mode = rung == SPANKER_RUNG_FLR ? SPANKER_RESET_FLR : SPANKER_RESET_SOFT;
        const bool up = reset_again(mode).has_value();
        if (state_ == SPANKER_CARD_GONE)
            return;
        tell_rung(rung, up ? 0 : -EIO);
        if (up)
            return;
    }
}

bool driven_card::command_hangs(std::uint32_t queue, const spk_hang& hang, std::uint64_t now_ns)
{
    home_.events.add(event_hang{number_, queue, hang.id});
    if (!spk_ladder_command(&ladder_, hang.engine, now_ns, home_.hang_ns)) {
        in_trouble(now_ns);
        return false;
    }
    tell_rung(SPANKER_RUNG_ABORT, 0);
    return true;
}

void driven_card::queue_is_stuck(embedded_file& file, std::uint64_t now_ns)
{
    if (file.queue().restarting() || file.queue().closing())
        return;
    const std::uint32_t queue = file.queue().batches().queue;
    home_.events.add(event_hang{number_, queue, SPANKER_NO_COMMAND});
    if (!spk_ladder_queue(&ladder_, queue, now_ns, home_.hang_ns))
        return in_trouble(now_ns);
    file.queue().begin_restart(now_ns);
    home_.deadline_at(now_ns);
}

// Queues that were stopped to be started again.
void driven_card::continue_restart(embedded_file& file, std::uint64_t now_ns)
{
    if (file.queue().finish_restart(-EIO)) {
        tell_rung(SPANKER_RUNG_QUEUE, 0);
        file.update_fd();
    } else if (file.queue().restart_is_late(now_ns, stands())) {
        tell_rung(SPANKER_RUNG_QUEUE, -ETIMEDOUT);
        in_trouble(now_ns);
    } else {
        home_.deadline_at(now_ns + stop_look_ns);
    }
}

// Some queue went to fault: which?
void driven_card::look_for_faults(std::uint64_t now_ns)
{
    for (std::uint32_t queue = 1; queue < caps_.queues && state_ == SPANKER_CARD_READY; queue++)
        if (files[queue] && files[queue]->generation() == generation_ &&
            files[queue]->queue().rings().state() == SPK_QSTATE_FAULT)
            queue_is_stuck(*files[queue], now_ns);
    if (state_ == SPANKER_CARD_READY && own_.rings().state() == SPK_QSTATE_FAULT)
        in_trouble(now_ns);
}

void driven_card::look_at(embedded_file& file, std::uint64_t now_ns)
{
    if (file.queue().batches().flying == 0 || file.queue().restarting())
        return;
    spk_batches& batches = file.queue().batches();
    const auto hang = file.queue().rings().find_hang(now_ns, home_.hang_ns);
    if (!hang || !command_hangs(batches.queue, *hang, now_ns))
        return;
    (void)spk_batch_abort_hung(&batches, hang->id);  // it may be aborted already
    issue_aborts(now_ns);
}

// The driver's own work: zeroing hangs like any.
void driven_card::look_at_own(std::uint64_t now_ns)
{
    if (!busy())
        return;
    const auto hang = own_.rings().find_hang(now_ns, home_.hang_ns);
    if (hang && command_hangs(0, *hang, now_ns) && own_.room() != 0)
        own_.abort(0, hang->id);
}

std::uint64_t driven_card::look_interval_ns() const
{
    return std::min(longest_look_ns, home_.hang_ns / 4 + 1);
}

// Whether work gets on; when to look again.
std::uint64_t driven_card::look(std::uint64_t now_ns)
{
    if (home_.hang_ns == 0 || state_ != SPANKER_CARD_READY || (!has_work() && !busy()))
        return SPK_NEVER_NS;
    if (now_ns < next_look_ns_)
        return next_look_ns_;
    next_look_ns_ = now_ns + look_interval_ns();
    if (home_.fabric->idle())  // else its clock runs, or it computes
        home_.fabric->refresh_status();
    look_at_own(now_ns);
    for (embedded_file* file : files)
        if (file && state_ == SPANKER_CARD_READY && file->generation() == generation_)
            look_at(*file, now_ns);
    return next_look_ns_;
}

}  // namespace spanker::daemon::embedded
