// SPDX-License-Identifier: Apache-2.0
//
// Messages of generic netlink, made byte by byte as the kernel lays them out.
#pragma once

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace netlink_test {

class message final {
public:
    explicit message(std::uint8_t command)
    {
        const genlmsghdr header{.cmd = command, .version = 1, .reserved = 0};
        append(&header, sizeof(header));
    }
    // len: what the attribute says of itself, if not the truth.
    message& raw(std::uint16_t type, const void* data, std::size_t bytes, int len = -1)
    {
        const auto whole = static_cast<std::uint16_t>(NLA_HDRLEN + bytes);
        const nlattr header{.nla_len = len < 0 ? whole : static_cast<std::uint16_t>(len),
                            .nla_type = type};
        append(&header, sizeof(header));
        append(data, bytes);
        bytes_.resize(NLA_ALIGN(bytes_.size()));
        return *this;
    }
    message& u32(std::uint16_t type, std::uint32_t value) { return raw(type, &value, 4); }
    message& u64(std::uint16_t type, std::uint64_t value) { return raw(type, &value, 8); }
    message& text(std::uint16_t type, const std::string& value)
    {
        return raw(type, value.c_str(), value.size() + 1);
    }
    message& nest(std::uint16_t type, const message& inner)
    {
        const auto payload = inner.bytes().subspan(GENL_HDRLEN);
        return raw(type | NLA_F_NESTED, payload.data(), payload.size());
    }
    std::span<const std::byte> bytes() const { return bytes_; }

private:
    void append(const void* data, std::size_t bytes)
    {
        const std::size_t before = bytes_.size();
        bytes_.resize(before + bytes);
        if (bytes != 0)
            std::memcpy(bytes_.data() + before, data, bytes);
    }

    std::vector<std::byte> bytes_;
};

}  // namespace netlink_test
