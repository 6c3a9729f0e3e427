// SPDX-License-Identifier: Apache-2.0
//
// The messages of vfio-user 0.0 as they stand on the wire. Where the protocol borrows from the ioctls of VFIO, so do the
// names here; <linux/vfio.h> is their source.
//
// Numbers are little endian. A message is a header, then `size - 16` bytes; file descriptors travel beside it.
#pragma once

#include <linux/vfio.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace spanker::sim::vfio_user {

static_assert(std::endian::native == std::endian::little, "structures are copied as they stand");

enum class command : std::uint16_t {
    version = 1,
    dma_map = 2,
    dma_unmap = 3,
    device_get_info = 4,
    device_get_region_info = 5,
    device_get_region_io_fds = 6,
    device_get_irq_info = 7,
    device_set_irqs = 8,
    region_read = 9,
    region_write = 10,
    dma_read = 11,   // server to client; not used, see dma_map.hpp
    dma_write = 12,  // server to client; not used
    device_reset = 13,
    dirty_pages = 14,
};

struct header {
    std::uint16_t id;  // the reply repeats id and command
    std::uint16_t command;
    std::uint32_t size;  // of the whole message
    std::uint32_t flags;
    std::uint32_t error;  // errno, with flag_error
};
static_assert(sizeof(header) == 16);

inline constexpr std::uint32_t flag_type = 0xf;
inline constexpr std::uint32_t type_command = 0;
inline constexpr std::uint32_t type_reply = 1;
inline constexpr std::uint32_t flag_no_reply = 1u << 4;
inline constexpr std::uint32_t flag_error = 1u << 5;

// What this server offers in the version reply.
inline constexpr std::uint16_t version_major = 0;
inline constexpr std::uint16_t version_minor = 0;
inline constexpr std::size_t max_message_fds = 8;
inline constexpr std::size_t max_data_bytes = 65536;  // of one region access: the whole BAR
inline constexpr std::uint64_t page_bytes = 4096;     // least unit of a DMA mapping
inline constexpr std::size_t max_dma_maps = 65535;    // what clients expect to be offered

// followed by JSON, NUL included
struct version {
    std::uint16_t major;
    std::uint16_t minor;
};
static_assert(sizeof(version) == 4);

struct dma_map_request {
    std::uint32_t argsz;
    std::uint32_t flags;   // VFIO_DMA_MAP_FLAG_*
    std::uint64_t offset;  // in the file that comes with it
    std::uint64_t address;
    std::uint64_t bytes;
};
static_assert(sizeof(dma_map_request) == 32);

struct dma_unmap_request {
    std::uint32_t argsz;
    std::uint32_t flags;  // VFIO_DMA_UNMAP_FLAG_*
    std::uint64_t address;
    std::uint64_t bytes;
};
static_assert(sizeof(dma_unmap_request) == 24);

struct device_info {
    std::uint32_t argsz;
    std::uint32_t flags;  // VFIO_DEVICE_FLAGS_*
    std::uint32_t regions;
    std::uint32_t irqs;
};
static_assert(sizeof(device_info) == 16);

struct region_info {
    std::uint32_t argsz;
    std::uint32_t flags;  // VFIO_REGION_INFO_FLAG_*
    std::uint32_t index;
    std::uint32_t capabilities_offset;
    std::uint64_t bytes;
    std::uint64_t offset;
};
static_assert(sizeof(region_info) == 32);

struct region_io_fds {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t count;
};
static_assert(sizeof(region_io_fds) == 16);

struct irq_info {
    std::uint32_t argsz;
    std::uint32_t flags;  // VFIO_IRQ_INFO_*
    std::uint32_t index;
    std::uint32_t count;
};
static_assert(sizeof(irq_info) == 16);

// followed by a byte per vector with VFIO_IRQ_SET_DATA_BOOL
struct irq_set {
    std::uint32_t argsz;
    std::uint32_t flags;  // VFIO_IRQ_SET_*
    std::uint32_t index;
    std::uint32_t start;
    std::uint32_t count;
};
static_assert(sizeof(irq_set) == 20);

// followed by the data of a write, or in the reply that of a read
struct region_access {
    std::uint64_t offset;
    std::uint32_t region;
    std::uint32_t count;
};
static_assert(sizeof(region_access) == 16);

// A message that is longer cannot be meant seriously.
inline constexpr std::size_t max_message_bytes =
    sizeof(header) + sizeof(region_access) + max_data_bytes;

inline constexpr std::uint32_t region_count = VFIO_PCI_NUM_REGIONS;
inline constexpr std::uint32_t irq_kinds = VFIO_PCI_NUM_IRQS;
static_assert(region_count == 9 && VFIO_PCI_CONFIG_REGION_INDEX == 7);
static_assert(irq_kinds == 5 && VFIO_PCI_MSI_IRQ_INDEX == 1 && VFIO_PCI_MSIX_IRQ_INDEX == 2);

}  // namespace spanker::sim::vfio_user
