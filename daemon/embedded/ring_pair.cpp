// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/ring_pair.hpp"

#include <cstring>

#include "uapi/spanker.h"

namespace spanker::daemon::embedded {

bool ring_pair::make(bus_map& bus, const queue_place& place, std::uint32_t depth)
{
    place_ = place;
    bus_ = &bus;
    depth_ = depth;
    sq_ = pages(depth * sizeof(spk_cmd));
    cq_ = pages(depth * sizeof(spk_completion));
    status_ = pages(SPK_STATUS_BLOCK_BYTES);
    if (!sq_ || !cq_ || !status_)
        return false;
    sq_bus_ = bus_range(bus, place.card, sq_.data(), sq_.bytes(), SPANKER_BUFFER_READ);
    cq_bus_ = bus_range(bus, place.card, cq_.data(), cq_.bytes(), SPANKER_BUFFER_WRITE);
    status_bus_ = bus_range(bus, place.card, status_.data(), status_.bytes(), SPANKER_BUFFER_WRITE);
    return sq_bus_.bus() != 0 && cq_bus_.bus() != 0 && status_bus_.bus() != 0;
}

void ring_pair::write(std::uint32_t reg, std::uint32_t value)
{
    place_.fabric->bar_write(place_.card, SPK_REG_Q(place_.queue, reg), value);
}

void ring_pair::write64(std::uint32_t reg, std::uint64_t value)
{
    write(reg, static_cast<std::uint32_t>(value));
    write(reg + 4, static_cast<std::uint32_t>(value >> 32));
}

void ring_pair::start()
{
    std::memset(sq_.data(), 0, sq_.bytes());
    std::memset(cq_.data(), 0, cq_.bytes());
    std::memset(status_.data(), 0, status_.bytes());
    spk_progress_init(&progress_);
    write64(SPK_Q_SQ_BASE_LO, sq_bus_.bus());
    write64(SPK_Q_CQ_BASE_LO, cq_bus_.bus());
    write64(SPK_Q_STATUS_BASE_LO, status_bus_.bus());
    write(SPK_Q_SQ_DEPTH, depth_);
    write(SPK_Q_CQ_DEPTH, depth_);
    write(SPK_Q_VECTOR, place_.vector);
    write(SPK_Q_COALESCE_COUNT, 0);
    write(SPK_Q_COALESCE_NS, 0);
    write(SPK_Q_CTRL, SPK_QCTRL_ENABLE);
}

void ring_pair::stop() { write(SPK_Q_CTRL, 0); }

bool ring_pair::is_off()
{
    const std::uint32_t now = state();
    if (now == SPK_QSTATE_FAULT)
        stop();  // a fault promises nothing; it is left this way
    return now == SPK_QSTATE_OFF;
}

std::uint32_t ring_pair::state() const
{
    return place_.fabric->bar_read(place_.card, SPK_REG_Q(place_.queue, SPK_Q_STATE));
}

std::uint32_t ring_pair::sq_head() const
{
    return place_.fabric->bar_read(place_.card, SPK_REG_Q(place_.queue, SPK_Q_SQ_HEAD));
}

std::optional<spk_hang> ring_pair::find_hang(std::uint64_t now_ns, std::uint64_t hang_ns)
{
    spk_hang hang{};
    const auto* block = static_cast<const spk_status_block*>(status_.data());
    const auto held = quiet();
    if (!spk_progress_look(&progress_, block, now_ns, hang_ns, &hang))
        return std::nullopt;
    return hang;
}

void ring_pair::ring_sq(std::uint32_t tail)
{
    place_.fabric->bar_write(place_.card, SPK_REG_SQ_TAIL(place_.queue), tail);
}

void ring_pair::ring_cq(std::uint32_t head)
{
    place_.fabric->bar_write(place_.card, SPK_REG_CQ_HEAD(place_.queue), head);
}

}  // namespace spanker::daemon::embedded
