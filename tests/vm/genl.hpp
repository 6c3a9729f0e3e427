// SPDX-License-Identifier: Apache-2.0
//
// Generic netlink as the kernel speaks it, without a library between: a program that tests what the driver sends sees each
// datagram, each flag and each attribute, and decides itself when it reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace spanker_vm {

// In the order in which they stand; lengths are those of the strings.
using genl_attributes = std::vector<std::pair<std::uint16_t, std::string>>;

template <typename T>
std::string genl_bytes(T value)
{
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

struct genl_message {
    std::uint16_t type = 0, flags = 0;  // of the netlink header
    std::uint8_t command = 0;
    genl_attributes attributes;
    // Of an NLMSG_ERROR or NLMSG_DONE, else 0: a negative errno, and what the kernel says of it.
    int err = 0;
    std::string text;
    std::uint32_t bad_offset = 0;  // of the attribute that it did not like, in the request
    std::uint32_t missing = 0;     // the attribute that it misses

    bool is_end() const;
    const std::string* find(std::uint16_t attribute) const;
    // 0 when it is not there, or no such number.
    template <typename T>
    T number(std::uint16_t attribute) const
    {
        T out{};
        const std::string* at = find(attribute);
        if (at && at->size() == sizeof(T))
            std::memcpy(&out, at->data(), sizeof(T));
        return out;
    }
    std::uint32_t u32(std::uint16_t attribute) const { return number<std::uint32_t>(attribute); }
};

// The attributes inside another one.
genl_attributes genl_nested(const std::string& bytes);

class genl_socket {
public:
    genl_socket();
    ~genl_socket();
    genl_socket(const genl_socket&) = delete;
    genl_socket& operator=(const genl_socket&) = delete;
    int fd() const { return fd_; }

    bool join(std::uint32_t group) const;
    // As little as the kernel lets one have.
    bool shrink() const;
    bool send(std::uint16_t family, std::uint8_t command, std::uint16_t flags,
              const genl_attributes& attributes) const;
    // One datagram; 0, or a negative errno: -EAGAIN, nothing came in that time, -ENOBUFS, the kernel dropped some.
    int receive(std::vector<genl_message>& out, int timeout_ms) const;

private:
    int fd_;
};

struct genl_answer {
    int err = 0;  // that ended it
    std::vector<genl_message> messages;
    genl_message end;
    unsigned pieces = 0;       // datagrams with messages in them
    bool interrupted = false;  // NLM_F_DUMP_INTR on any message, the end included
};
// What there is up to the end of an answer.
genl_answer genl_collect(const genl_socket& socket);
genl_answer genl_ask(std::uint16_t family, std::uint8_t command, std::uint16_t flags,
                     const genl_attributes& attributes);

struct genl_family {
    std::uint16_t id = 0;  // 0: there is none
    std::vector<std::pair<std::string, std::uint32_t>> groups;
    std::uint32_t group(const std::string& name) const;
};
genl_family genl_find(const std::string& name);

}  // namespace spanker_vm
