// SPDX-License-Identifier: Apache-2.0
//
// Where the messages of one card go: an eventfd for each, of MSI or of MSI-X, never of both at once.
//
// The card holds back what has no eventfd (fabric::set_host_vectors); what was on its way when its eventfd was taken is
// kept here and sent with the next.
//
// Threads: any. signal() does not block: only eventfds are taken, and they are made non-blocking.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "sim/unique_fd.hpp"
#include "sim/vfio_user/wire.hpp"
#include "uapi/spanker_card.h"

namespace spanker::sim::vfio_user {

class irq_table final {
public:
    // How many messages the card has of each kind.
    irq_table(std::uint32_t msi, std::uint32_t msix);

    // Nothing for a kind that the protocol does not have; kinds that the card does not have count 0.
    std::optional<irq_info> describe(std::uint32_t kind) const;

    // SET_IRQS: arms, disarms or triggers. 0 or EINVAL, and then nothing has changed. Takes the descriptors that it keeps.
    int set(const irq_set& what, std::span<const std::byte> data, std::vector<unique_fd>& fds);
    void disarm();  // all of them, and forgets what was missed
    void forget();  // what was missed: after a reset

    std::uint32_t armed() const;  // vectors that have an eventfd, one bit each
    void signal(unsigned vector);

private:
    int judge(const irq_set& what, std::span<const std::byte> data,
              const std::vector<unique_fd>& fds) const;
    std::uint32_t count(std::uint32_t kind) const;
    void arm(const irq_set& what, std::vector<unique_fd>& fds);
    void disarm_kind(std::uint32_t kind);
    void trigger(const irq_set& what, std::span<const std::byte> data);
    bool is_idle() const;

    const std::uint32_t msi_, msix_;
    mutable std::mutex lock_;                       // all below
    std::uint32_t kind_ = VFIO_PCI_MSIX_IRQ_INDEX;  // whose eventfds these are
    std::array<unique_fd, SPK_MSIX_VECTORS> fds_;
    std::uint32_t missed_ = 0;
};

}  // namespace spanker::sim::vfio_user
