// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/group.hpp"

#include <unistd.h>

#include <bit>
#include <string>

#include "daemon/clock.hpp"
#include "daemon/embedded/file.hpp"
#include "daemon/embedded/machine.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::embedded {

namespace {

// Writes a domain to the registers of the claimed channels of cards that answer.
void write_domains(machine& home, const group_object& group, std::uint32_t domain)
{
    for (const spk_channel_claim& claim : group.claims) {
        driven_card& card = *home.cards[claim.card];
        if (card.gate(card.generation()) != 0)
            continue;
        for (std::uint32_t port = 0; port < card.caps().ports; port++)
            if (claim.port_mask >> port & 1)
                card.set_domain(port, claim.channel, domain);
    }
}

class embedded_group final : public channel_group {
public:
    embedded_group(std::shared_ptr<machine> home, group_object& group)
        : home_(std::move(home)), group_(group)
    {}
    ~embedded_group() override;
    std::uint32_t id() const override { return group_.domain; }

private:
    std::shared_ptr<machine> home_;
    group_object& group_;
};

// New items cannot name the group any more; those in flight are aborted and waited for, then
// the channels are free.
embedded_group::~embedded_group()
{
    {
        const std::lock_guard hold(home_->lock);
        std::erase(home_->groups, &group_);
        for (embedded_file* file : group_.files)
            spk_batch_cancel_group(&file->queue().batches(), group_.domain);
        for (embedded_file* file : group_.files)
            file->card().issue_aborts(monotonic_ns());
        home_->deadline_at(0);
    }
    home_->advance_until([this] {
        std::uint32_t flights = 0;
        for (embedded_file* file : group_.files) {
            if (file->card().gate(file->generation()) == 0)
                file->queue().reap();
            file->update_fd();
            flights += spk_batch_group_flights(&file->queue().batches(), group_.domain);
        }
        return flights == 0;
    });
    const std::lock_guard hold(home_->lock);
    write_domains(*home_, group_, 0);
    spk_group_release(&home_->channels, group_.domain);
    group_.files.clear();
    group_.put();
}

result<spk_channel_claim> claim_of(const machine& home, const group_member& member)
{
    const auto* file = dynamic_cast<const embedded_file*>(member.file);
    if (!file || &file->home() != &home)
        return tl::unexpected(refusals::foreign_file());
    const driven_card& card = file->card();
    if (const int err = card.gate(file->generation()))
        return tl::unexpected(refusals::gate(card.number(), err));
    const spk_channel_claim claim{card.number(), member.port_mask, member.channel};
    if (auto good = refusals::check_claim(claim, card.caps().ports, card.caps().channels); !good)
        return tl::unexpected(good.error());
    return claim;
}

}  // namespace

result<std::unique_ptr<channel_group>> make_group(const std::shared_ptr<machine>& home,
                                                  std::span<const group_member> members)
{
    const std::lock_guard hold(home->lock);
    std::vector<spk_channel_claim> claims;
    for (const group_member& member : members) {
        auto claim = claim_of(*home, member);
        if (!claim)
            return tl::unexpected(claim.error());
        claims.push_back(*claim);
    }
    u32 domain = 0;
    spk_channel_conflict conflict{};
    const int err = spk_group_claim(&home->channels, claims.data(), static_cast<u32>(claims.size()),
                                    static_cast<u32>(::getpid()), &domain, &conflict);
    if (err == -EBUSY)
        return tl::unexpected(
            refusals::channel_taken(claims[conflict.claim], conflict.port, conflict.pid));
    if (err)
        return tl::unexpected(refusals::empty_group());
    auto* group = new group_object;
    group->domain = domain;
    group->cards = spk_group_cards(&home->channels, domain);
    group->claims = std::move(claims);
    for (const group_member& member : members) {
        auto* file = static_cast<embedded_file*>(member.file);
        if (!group->has(*file))
            group->files.push_back(file);
    }
    write_domains(*home, *group, domain);
    home->groups.push_back(group);
    return std::make_unique<embedded_group>(home, *group);
}

}  // namespace spanker::daemon::embedded
