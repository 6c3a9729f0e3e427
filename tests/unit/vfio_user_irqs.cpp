// SPDX-License-Identifier: Apache-2.0
//
// SET_IRQS: which eventfds are armed, and when they are rung.
#include "vfio_user_bench.hpp"

#include <cerrno>

namespace spanker::sim::vfio_user::bench {
namespace {

constexpr std::uint32_t msi = VFIO_PCI_MSI_IRQ_INDEX;
constexpr std::uint32_t msix = VFIO_PCI_MSIX_IRQ_INDEX;
constexpr std::uint32_t trigger = VFIO_IRQ_SET_ACTION_TRIGGER;
constexpr std::uint32_t none = VFIO_IRQ_SET_DATA_NONE;
constexpr std::uint32_t boolean = VFIO_IRQ_SET_DATA_BOOL;
constexpr std::uint32_t eventfd = VFIO_IRQ_SET_DATA_EVENTFD;

class vfio_user_irqs : public testing::Test {
protected:
    irq_table it{16, 16};
    std::array<unique_fd, 16> events;

    vfio_user_irqs()
    {
        for (unique_fd& one : events)
            one = new_eventfd();
    }
    static irq_set request(std::uint32_t flags, std::uint32_t kind, std::uint32_t start,
                           std::uint32_t count)
    {
        return {.argsz = 20, .flags = flags, .index = kind, .start = start, .count = count};
    }
    // As the protocol passes them: duplicates.
    std::vector<unique_fd> duplicates(std::uint32_t start, std::uint32_t count)
    {
        std::vector<unique_fd> out;
        for (std::uint32_t i = start; i < start + count; i++)
            out.emplace_back(::fcntl(events[i].get(), F_DUPFD_CLOEXEC, 0));
        return out;
    }
    int arm(std::uint32_t kind, std::uint32_t start, std::uint32_t count)
    {
        auto fds = duplicates(start, count);
        return it.set(request(trigger | eventfd, kind, start, count), {}, fds);
    }
    int set(const irq_set& what, const bytes& data = {})
    {
        std::vector<unique_fd> fds;
        return it.set(what, data, fds);
    }
    std::uint64_t rung(unsigned vector) { return taken_from(events[vector]); }
};

TEST_F(vfio_user_irqs, a_signal_rings_the_eventfd_of_its_vector_alone)
{
    ASSERT_EQ(arm(msix, 0, 8), 0);
    it.signal(3);
    it.signal(3);
    for (unsigned vector = 0; vector < 8; vector++)
        EXPECT_EQ(rung(vector), vector == 3 ? 2u : 0u);
}

TEST_F(vfio_user_irqs, eventfds_come_in_chunks)
{
    ASSERT_EQ(arm(msix, 0, 8), 0);
    ASSERT_EQ(arm(msix, 8, 5), 0);
    EXPECT_EQ(it.armed(), 0x1fffu);
    for (unsigned vector = 0; vector < 13; vector++)
        it.signal(vector);
    for (unsigned vector = 0; vector < 13; vector++)
        EXPECT_EQ(rung(vector), 1u) << vector;
}

TEST_F(vfio_user_irqs, eventfd_without_a_descriptor_disarms)
{
    ASSERT_EQ(arm(msix, 0, 4), 0);
    ASSERT_EQ(set(request(trigger | eventfd, msix, 1, 2)), 0);
    EXPECT_EQ(it.armed(), 0b1001u);
    it.signal(1);
    EXPECT_EQ(rung(1), 0u);
    it.signal(0);
    EXPECT_EQ(rung(0), 1u);
}

TEST_F(vfio_user_irqs, a_count_of_0_disarms_its_kind)
{
    ASSERT_EQ(arm(msix, 0, 4), 0);
    EXPECT_EQ(set(request(trigger | none, msi, 0, 0)), 0);
    EXPECT_EQ(it.armed(), 0xfu) << "the other kind";
    EXPECT_EQ(set(request(trigger | none, msix, 0, 0)), 0);
    EXPECT_EQ(it.armed(), 0u);
    EXPECT_EQ(set(request(trigger | none, VFIO_PCI_INTX_IRQ_INDEX, 0, 0)), 0) << "never armed";
}

TEST_F(vfio_user_irqs, what_was_missed_is_rung_once_when_armed)
{
    it.signal(2);
    it.signal(2);
    ASSERT_EQ(arm(msix, 0, 4), 0);
    EXPECT_EQ(rung(2), 1u);
    EXPECT_EQ(rung(1), 0u);
    ASSERT_EQ(set(request(trigger | eventfd, msix, 0, 4)), 0);
    ASSERT_EQ(arm(msix, 0, 4), 0);
    EXPECT_EQ(rung(2), 0u) << "once";
    ASSERT_EQ(set(request(trigger | eventfd, msix, 0, 4)), 0);
    it.signal(2);
    it.forget();
    ASSERT_EQ(arm(msix, 0, 4), 0);
    EXPECT_EQ(rung(2), 0u) << "a reset forgets";
}

TEST_F(vfio_user_irqs, the_client_may_trigger)
{
    ASSERT_EQ(arm(msix, 0, 4), 0);
    EXPECT_EQ(set(request(trigger | none, msix, 1, 2)), 0);
    EXPECT_EQ(rung(0), 0u);
    EXPECT_EQ(rung(1), 1u);
    EXPECT_EQ(rung(2), 1u);
    EXPECT_EQ(
        set(request(trigger | boolean, msix, 0, 3), {std::byte{1}, std::byte{0}, std::byte{1}}), 0);
    EXPECT_EQ(rung(0), 1u);
    EXPECT_EQ(rung(1), 0u);
    EXPECT_EQ(rung(2), 1u);
    EXPECT_EQ(set(request(trigger | none, msix, 8, 8)), 0) << "not armed: nothing to ring";
}

TEST_F(vfio_user_irqs, kinds_do_not_mix)
{
    ASSERT_EQ(arm(msix, 0, 1), 0);
    EXPECT_EQ(arm(msi, 1, 1), EINVAL);
    ASSERT_EQ(set(request(trigger | none, msix, 0, 0)), 0);
    EXPECT_EQ(arm(msi, 1, 1), 0);
    EXPECT_EQ(it.armed(), 0b10u);
}

TEST_F(vfio_user_irqs, nonsense_is_refused_and_changes_nothing)
{
    ASSERT_EQ(arm(msix, 0, 2), 0);
    const bytes one_byte(1), five_bytes(5);
    const struct {
        irq_set what;
        bytes data;
    } table[] = {
        {request(0, msix, 0, 1), {}},
        {request(trigger, msix, 0, 1), {}},
        {request(none, msix, 0, 1), {}},
        {request(trigger | none | boolean, msix, 0, 1), one_byte},
        {request(trigger | none | VFIO_IRQ_SET_ACTION_MASK, msix, 0, 1), {}},
        {request(VFIO_IRQ_SET_ACTION_MASK | none, msix, 0, 1), {}},
        {request(VFIO_IRQ_SET_ACTION_UNMASK | none, msix, 0, 1), {}},
        {request(trigger | none | 1u << 6, msix, 0, 1), {}},
        {request(trigger | none, 5, 0, 0), {}},
        {request(trigger | none, ~0u, 0, 0), {}},
        {request(trigger | none, VFIO_PCI_INTX_IRQ_INDEX, 0, 1), {}},
        {request(trigger | none, VFIO_PCI_ERR_IRQ_INDEX, 0, 1), {}},
        {request(trigger | none, msix, 16, 1), {}},
        {request(trigger | none, msix, 0, 17), {}},
        {request(trigger | none, msix, 1, ~0u), {}},
        {request(trigger | none, msix, ~0u, 1), {}},
        {request(trigger | none, msix, ~0u, ~0u), {}},
        {request(trigger | none, msix, 0, 1), one_byte},
        {request(trigger | boolean, msix, 0, 4), five_bytes},
        {request(trigger | boolean, msix, 0, 4), one_byte},
        {request(trigger | boolean, msix, 0, 0), {}},
        {request(trigger | eventfd, msix, 0, 0), {}},
        {request(trigger | eventfd, msix, 0, 1), five_bytes},
    };
    for (const auto& row : table)
        EXPECT_EQ(set(row.what, row.data), EINVAL)
            << row.what.flags << " " << row.what.index << " " << row.what.start;
    for (const std::uint32_t count : {1u, 3u}) {
        auto fds = duplicates(0, 2);
        EXPECT_EQ(it.set(request(trigger | eventfd, msix, 0, count), {}, fds), EINVAL);
    }
    auto fds = duplicates(0, 1);
    EXPECT_EQ(it.set(request(trigger | none, msix, 0, 1), {}, fds), EINVAL);
    EXPECT_EQ(it.armed(), 0b11u);
    EXPECT_EQ(rung(0), 0u);
}

TEST_F(vfio_user_irqs, only_eventfds_are_armed)
{
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const unique_fd reader(ends[0]);
    std::vector<unique_fd> fds;
    fds.emplace_back(ends[1]);
    EXPECT_EQ(it.set(request(trigger | eventfd, msix, 0, 1), {}, fds), EINVAL);
    fds.clear();
    fds.push_back(unique_fd(::memfd_create("no event", MFD_CLOEXEC)));
    EXPECT_EQ(it.set(request(trigger | eventfd, msix, 0, 1), {}, fds), EINVAL);
    EXPECT_EQ(it.armed(), 0u);
}

TEST_F(vfio_user_irqs, a_full_eventfd_holds_nobody_up)
{
    const unique_fd blocking(::eventfd(0, EFD_CLOEXEC));
    const std::uint64_t full = ~std::uint64_t{0} - 1;
    ASSERT_EQ(::write(blocking.get(), &full, sizeof full), 8);
    std::vector<unique_fd> fds;
    fds.emplace_back(::fcntl(blocking.get(), F_DUPFD_CLOEXEC, 0));
    ASSERT_EQ(it.set(request(trigger | eventfd, msix, 0, 1), {}, fds), 0);
    it.signal(0);
    EXPECT_EQ(taken_from(blocking), full);
}

TEST_F(vfio_user_irqs, vectors_beyond_the_table_ring_nothing)
{
    ASSERT_EQ(arm(msix, 0, 16), 0);
    it.signal(16);
    it.signal(~0u);
    for (unsigned vector = 0; vector < 16; vector++)
        EXPECT_EQ(rung(vector), 0u);
}

}  // namespace
}  // namespace spanker::sim::vfio_user::bench
