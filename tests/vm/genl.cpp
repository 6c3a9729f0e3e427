// SPDX-License-Identifier: Apache-2.0
#include "genl.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace spanker_vm {

namespace {

constexpr int answer_ms = 20'000;

genl_attributes take_attributes(const char* at, std::size_t bytes)
{
    genl_attributes out;
    nlattr header;
    while (bytes >= sizeof(header)) {
        std::memcpy(&header, at, sizeof(header));
        if (header.nla_len < sizeof(header) || header.nla_len > bytes)
            break;
        out.emplace_back(header.nla_type & NLA_TYPE_MASK,
                         std::string(at + NLA_HDRLEN, header.nla_len - NLA_HDRLEN));
        const std::size_t step = std::min<std::size_t>(NLA_ALIGN(header.nla_len), bytes);
        at += step;
        bytes -= step;
    }
    return out;
}

// The errno at its beginning, and of an error, behind the header that it echoes, what there is to say.
void take_end(genl_message& out, const char* at, std::size_t bytes)
{
    if (bytes >= sizeof(out.err))
        std::memcpy(&out.err, at, sizeof(out.err));
    const std::size_t said = out.type == NLMSG_ERROR ? sizeof(nlmsgerr) : sizeof(out.err);
    if (!(out.flags & NLM_F_ACK_TLVS) || bytes < said)
        return;
    out.attributes = take_attributes(at + said, bytes - said);
    out.bad_offset = out.u32(NLMSGERR_ATTR_OFFS);
    out.missing = out.u32(NLMSGERR_ATTR_MISS_TYPE);
    if (const std::string* text = out.find(NLMSGERR_ATTR_MSG))
        out.text = text->c_str();
}

genl_message take_message(const nlmsghdr& header, const char* at, std::size_t bytes)
{
    genl_message out;
    out.type = header.nlmsg_type;
    out.flags = header.nlmsg_flags;
    if (out.is_end()) {
        take_end(out, at, bytes);
    } else if (bytes >= GENL_HDRLEN) {
        out.command = static_cast<std::uint8_t>(*at);
        out.attributes = take_attributes(at + GENL_HDRLEN, bytes - GENL_HDRLEN);
    }
    return out;
}

}  // namespace

bool genl_message::is_end() const { return type == NLMSG_ERROR || type == NLMSG_DONE; }

const std::string* genl_message::find(std::uint16_t attribute) const
{
    for (const auto& one : attributes)
        if (one.first == attribute)
            return &one.second;
    return nullptr;
}

genl_attributes genl_nested(const std::string& bytes)
{
    return take_attributes(bytes.data(), bytes.size());
}

genl_socket::genl_socket() : fd_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC))
{
    sockaddr_nl own{};
    own.nl_family = AF_NETLINK;
    (void)::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof(own));
    const int on = 1;
    ::setsockopt(fd_, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    ::setsockopt(fd_, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
}

genl_socket::~genl_socket() { ::close(fd_); }

bool genl_socket::join(std::uint32_t group) const
{
    return ::setsockopt(fd_, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) == 0;
}

bool genl_socket::shrink() const
{
    const int least = 1;
    return ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) == 0;
}

bool genl_socket::send(std::uint16_t family, std::uint8_t command, std::uint16_t flags,
                       const genl_attributes& attributes) const
{
    genlmsghdr verb{};
    verb.cmd = command;
    verb.version = 1;
    std::string body = genl_bytes(verb);
    for (const auto& [type, bytes] : attributes) {
        nlattr header{};
        header.nla_type = type;
        header.nla_len = static_cast<__u16>(NLA_HDRLEN + bytes.size());
        body += genl_bytes(header) + bytes;
        body.resize(NLA_ALIGN(body.size()));
    }
    nlmsghdr header{};
    header.nlmsg_len = static_cast<__u32>(NLMSG_HDRLEN + body.size());
    header.nlmsg_type = family;
    header.nlmsg_flags = static_cast<__u16>(NLM_F_REQUEST | flags);
    const std::string all = genl_bytes(header) + body;
    return ::send(fd_, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size());
}

int genl_socket::receive(std::vector<genl_message>& out, int timeout_ms) const
{
    static char memory[1 << 16];
    pollfd at = {fd_, POLLIN, 0};
    if (::poll(&at, 1, timeout_ms) != 1)
        return -EAGAIN;
    const ssize_t got = ::recv(fd_, memory, sizeof(memory), 0);
    if (got < 0)
        return -errno;
    nlmsghdr header;
    for (std::size_t from = 0, all = static_cast<std::size_t>(got); all - from >= sizeof(header);) {
        std::memcpy(&header, memory + from, sizeof(header));
        if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > all - from)
            break;
        out.push_back(
            take_message(header, memory + from + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN));
        from += std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), all - from);
    }
    return 0;
}

genl_answer genl_collect(const genl_socket& socket)
{
    genl_answer out;
    std::vector<genl_message> part;
    while (out.err == 0) {
        part.clear();
        out.err = socket.receive(part, answer_ms);
        out.pieces += !part.empty() && !part.front().is_end();
        for (const auto& one : part) {
            out.interrupted = out.interrupted || (one.flags & NLM_F_DUMP_INTR);
            if (one.is_end()) {
                out.end = one;
                out.err = one.err;
                return out;
            }
            out.messages.push_back(one);
        }
    }
    return out;
}

// What is no dump ends with an acknowledgment, which is an error of 0.
genl_answer genl_ask(std::uint16_t family, std::uint8_t command, std::uint16_t flags,
                     const genl_attributes& attributes)
{
    const genl_socket socket;
    const bool dump = (flags & NLM_F_DUMP) == NLM_F_DUMP;
    if (socket.send(family, command, static_cast<std::uint16_t>(flags | (dump ? 0 : NLM_F_ACK)),
                    attributes))
        return genl_collect(socket);
    genl_answer out;
    out.err = -errno;
    return out;
}

std::uint32_t genl_family::group(const std::string& name) const
{
    for (const auto& one : groups)
        if (one.first == name)
            return one.second;
    return 0;
}

genl_family genl_find(const std::string& name)
{
    genl_family out;
    const auto answer =
        genl_ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, {{CTRL_ATTR_FAMILY_NAME, name + '\0'}});
    if (answer.err != 0 || answer.messages.size() != 1)
        return out;
    const auto& said = answer.messages.front();
    out.id = said.number<std::uint16_t>(CTRL_ATTR_FAMILY_ID);
    if (const std::string* groups = said.find(CTRL_ATTR_MCAST_GROUPS))
        for (const auto& one : genl_nested(*groups)) {
            genl_message group;
            group.attributes = genl_nested(one.second);
            if (const std::string* called = group.find(CTRL_ATTR_MCAST_GRP_NAME))
                out.groups.emplace_back(called->c_str(), group.u32(CTRL_ATTR_MCAST_GRP_ID));
        }
    return out;
}

}  // namespace spanker_vm
