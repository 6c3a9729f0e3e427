// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/buffer.hpp"
#include "daemon/os_error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace spanker::daemon::embedded {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t bytes_max = std::uint64_t{1} << 40;

result<void> check_spec(const buffer_spec& spec)
{
    if (!spec.access || (spec.access & ~SPANKER_BUFFER_FLAGS))
        return fail(SPANKER_ERR_INVALID,
                    "access of a buffer is SPANKER_BUFFER_READ, _WRITE or both, not " +
                        std::to_string(spec.access));
    if (spec.bytes == 0 || spec.bytes > bytes_max)
        return fail(SPANKER_ERR_INVALID,
                    "a buffer has 1 to 2^40 bytes, not " + std::to_string(spec.bytes));
    if ((spec.memfd >= 0) == (spec.address != nullptr))
        return fail(SPANKER_ERR_INVALID, "a buffer is a memfd or an address, one of them");
    if (spec.offset % page || (spec.address && spec.offset))
        return fail(SPANKER_ERR_INVALID, "the offset of a buffer must be a multiple of 4096 in a "
                                         "memfd and 0 with an address, not " +
                                             std::to_string(spec.offset));
    return {};
}

// Nobody may take away pages that a card writes to.
result<void> check_memfd(const buffer_spec& spec)
{
    const int seals = ::fcntl(spec.memfd, F_GET_SEALS);
    if (seals < 0)
        return fail(SPANKER_ERR_NOT_A_MEMFD, std::string("buffer: the descriptor is no memfd (") +
                                                 std::strerror(errno) + ")");
    if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0)
        return fail(SPANKER_ERR_NOT_SEALED,
                    "buffer: seal the memfd with F_SEAL_SHRINK and F_SEAL_GROW first");
    if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) && (spec.access & SPANKER_BUFFER_WRITE))
        return fail(SPANKER_ERR_DENIED,
                    "buffer: the memfd is sealed against writing; register it for reading only");
    struct stat at = {};
    if (::fstat(spec.memfd, &at) != 0)
        return fail_os(errno, "buffer: cannot learn the size of the memfd");
    const auto size = static_cast<std::uint64_t>(at.st_size);
    if (spec.offset > size || spec.bytes > size - spec.offset)
        return fail(SPANKER_ERR_RANGE, "buffer: " + std::to_string(spec.bytes) + " bytes at " +
                                           std::to_string(spec.offset) +
                                           " reach past the end of the memfd, which has " +
                                           std::to_string(size));
    return {};
}

}  // namespace

result<void> buffer::map_memfd(const buffer_spec& spec)
{
    if (auto good = check_memfd(spec); !good)
        return good;
    const int writes = access_ & SPANKER_BUFFER_WRITE ? PROT_WRITE : 0;
    void* at = ::mmap(nullptr, spec.bytes, PROT_READ | writes, MAP_SHARED | MAP_POPULATE,
                      spec.memfd, static_cast<off_t>(spec.offset));
    if (at == MAP_FAILED)
        return fail_os(errno, "buffer: cannot map " + std::to_string(spec.bytes) + " bytes");
    memory_ = at;
    mapped_ = true;
    return {};
}

result<void> buffer::build_list(bus_map& bus, unsigned card)
{
    data_bus_ = bus_range(bus, card, memory_, bytes_, access_);
    const auto count = spk_sg_pages_for(static_cast<std::uint32_t>(spk_sg_entries_for(bytes_)));
    list_pages_ = pages(std::size_t{count} * sizeof(spk_sg_page));
    if (!list_pages_ || data_bus_.bus() == 0)
        return fail(SPANKER_ERR_NO_MEMORY, "buffer: no memory for its scatter list");
    list_bus_ = bus_range(bus, card, list_pages_.data(), list_pages_.bytes(), SPANKER_BUFFER_READ);
    auto* page_at = static_cast<spk_sg_page*>(list_pages_.data());
    for (std::uint32_t n = 0; n < count; n++)
        slots_.push_back({page_at + n, list_bus_.bus() + n * sizeof(spk_sg_page)});
    starts_.resize(std::size_t{count} * SPK_SG_ENTRIES);
    spk_sg_init(&sg_, slots_.data(), count, starts_.data());
    if (spk_sg_add(&sg_, data_bus_.bus(), bytes_) || spk_sg_seal(&sg_))
        return fail(SPANKER_ERR_NO_MEMORY, "buffer: it does not fit its scatter list");
    return {};
}

result<buffer*> buffer::make(bus_map& bus, unsigned card, const buffer_spec& spec)
{
    if (auto good = check_spec(spec); !good)
        return tl::unexpected(good.error());
    std::unique_ptr<buffer> made(new buffer);
    made->bytes_ = spec.bytes;
    made->access_ = spec.access;
    made->memory_ = spec.address;
    if (spec.memfd >= 0)
        if (auto mapped = made->map_memfd(spec); !mapped)
            return tl::unexpected(mapped.error());
    if (auto built = made->build_list(bus, card); !built)
        return tl::unexpected(built.error());
    return made.release();
}

buffer::~buffer()
{
    data_bus_ = bus_range();
    if (mapped_)
        ::munmap(memory_, bytes_);
}

}  // namespace spanker::daemon::embedded
