// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/buffer.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>

#include "daemon/os_error.hpp"
#include "daemon/refusals.hpp"

namespace spanker::daemon::embedded {

result<void> buffer::map_memfd(const buffer_spec& spec)
{
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
    if (auto good = refusals::check_buffer(spec); !good)
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
