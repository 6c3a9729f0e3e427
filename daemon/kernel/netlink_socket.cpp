// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/netlink_socket.hpp"

#include <linux/genetlink.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/handlers.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace spanker::daemon::kernel {

namespace {

constexpr int listen_bytes = 1 << 20;       // of events that wait
constexpr unsigned messages_at_once = 256;  // then the loop has other things to do
constexpr int answer_limit_s = 5;           // an answer is there when the question was sent

struct nl_msg_deleter {
    void operator()(nl_msg* message) const { ::nlmsg_free(message); }
};
struct nl_cb_deleter {
    void operator()(nl_cb* callbacks) const { ::nl_cb_put(callbacks); }
};
using nl_msg_ptr = std::unique_ptr<nl_msg, nl_msg_deleter>;
using nl_cb_ptr = std::unique_ptr<nl_cb, nl_cb_deleter>;

// The library's numbers that something of ours can cause.
int errno_of(int nl_error)
{
    switch (-nl_error) {
    case 0:
        return 0;
    case NLE_NOMEM:
        return -ENOMEM;
    case NLE_OBJ_NOTFOUND:
        return -ENOENT;
    case NLE_PERM:
    case NLE_NOACCESS:
        return -EPERM;
    case NLE_AGAIN:
        return -ETIMEDOUT;  // after answer_limit_s
    case NLE_OPNOTSUPP:
        return -EOPNOTSUPP;
    default:
        return -EPROTO;
    }
}

nl_sock_ptr connect(int& err)
{
    nl_sock_ptr socket(::nl_socket_alloc());
    err = socket ? errno_of(::genl_connect(socket.get())) : -ENOMEM;
    if (err)
        return nullptr;
    ::nl_socket_disable_auto_ack(socket.get());
    return socket;
}

std::span<const std::byte> payload_of(const nlmsghdr* header)
{
    return {static_cast<const std::byte*>(::nlmsg_data(header)),
            static_cast<std::size_t>(::nlmsg_datalen(header))};
}

// ---- answers ----

int take_answer(nl_msg* message, void* to)
{
    if (auto parsed = parse_message(payload_of(::nlmsg_hdr(message))))
        static_cast<netlink_answer*>(to)->messages.push_back(*parsed);
    return NL_OK;
}

// The end of a dump carries the errno that ended it.
int take_end(nl_msg* message, void* to)
{
    const auto end = payload_of(::nlmsg_hdr(message));
    if (int err; end.size() >= sizeof(err)) {
        std::memcpy(&err, end.data(), sizeof(err));
        static_cast<netlink_answer*>(to)->err = err < 0 ? err : 0;
    }
    return NL_STOP;
}

int take_error(sockaddr_nl*, nlmsgerr* said, void* to)
{
    static_cast<netlink_answer*>(to)->err = said->error;
    return NL_STOP;
}

int send_question(nl_sock* socket, int family, std::uint8_t command,
                  std::optional<std::uint32_t> card)
{
    nl_msg_ptr message(::nlmsg_alloc());
    if (!message || !::genlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, NLM_F_DUMP,
                                   command, SPANKER_GENL_VERSION))
        return -ENOMEM;
    if (card && ::nla_put_u32(message.get(), SPANKER_A_CARD, *card))
        return -ENOMEM;
    const int sent = ::nl_send_auto(socket, message.get());
    return sent < 0 ? errno_of(sent) : 0;
}

}  // namespace

netlink_answer dump(int family, std::uint8_t command, std::optional<std::uint32_t> card)
{
    netlink_answer out;
    const nl_sock_ptr socket = connect(out.err);
    if (!socket)
        return out;
    const timeval limit{.tv_sec = answer_limit_s, .tv_usec = 0};
    (void)::setsockopt(::nl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVTIMEO, &limit,
                       sizeof(limit));
    out.err = send_question(socket.get(), family, command, card);
    if (out.err)
        return out;
    const nl_cb_ptr callbacks(::nl_cb_alloc(NL_CB_DEFAULT));
    if (!callbacks) {
        out.err = -ENOMEM;
        return out;
    }
    ::nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, take_answer, &out);
    ::nl_cb_set(callbacks.get(), NL_CB_FINISH, NL_CB_CUSTOM, take_end, &out);
    ::nl_cb_err(callbacks.get(), NL_CB_CUSTOM, take_error, &out);
    const int got = ::nl_recvmsgs(socket.get(), callbacks.get());
    out.interrupted = got == -NLE_DUMP_INTR;
    if (got < 0 && !out.interrupted && out.err == 0)
        out.err = errno_of(got);
    return out;
}

int find_family(netlink_family& out)
{
    int err = 0;
    out = {};
    const nl_sock_ptr socket = connect(err);
    if (!socket)
        return err;
    const int id = ::genl_ctrl_resolve(socket.get(), SPANKER_GENL_NAME);
    if (id < 0)
        return id == -NLE_OBJ_NOTFOUND ? 0 : errno_of(id);
    for (const char* name :
         {SPANKER_GENL_GROUP_CARD, SPANKER_GENL_GROUP_LINK, SPANKER_GENL_GROUP_HEALTH}) {
        const int group = ::genl_ctrl_resolve_grp(socket.get(), SPANKER_GENL_NAME, name);
        if (group == -NLE_OBJ_NOTFOUND)
            return 0;  // it went while we asked; nlctrl will tell
        if (group < 0)
            return errno_of(group);
        out.groups.push_back(group);
    }
    out.id = id;
    return 0;
}

// ---- listening ----

int netlink_listener::open()
{
    int err = 0;
    socket_ = connect(err);
    if (!socket_)
        return err;
    ::nl_socket_disable_seq_check(socket_.get());
    // Beyond the system's limit it is cut down to that.
    (void)::nl_socket_set_buffer_size(socket_.get(), listen_bytes, 0);
    if (const int r = ::nl_socket_set_nonblocking(socket_.get()); r < 0)
        return errno_of(r);
    // The controller's own group has the controller's own number.
    const int r = ::nl_socket_add_membership(socket_.get(), GENL_ID_CTRL);
    return r < 0 ? errno_of(r) : 0;
}

int netlink_listener::join(const netlink_family& family)
{
    for (const int group : family.groups)
        if (const int r = ::nl_socket_add_membership(socket_.get(), group); r < 0)
            return errno_of(r);
    return 0;
}

netlink_listener::outcome netlink_listener::read(const handler& take)
{
    const nl_cb_ptr callbacks(::nl_cb_alloc(NL_CB_DEFAULT));
    if (!callbacks)
        return outcome::more;
    const auto pass_on = [](nl_msg* message, void* to) -> int {
        const nlmsghdr* header = ::nlmsg_hdr(message);
        if (::nlmsg_get_src(message)->nl_pid != 0)
            return NL_SKIP;  // not the kernel
        (*static_cast<const handler*>(to))(header->nlmsg_type, payload_of(header));
        return NL_OK;
    };
    const auto skip = [](nl_msg*, void*) -> int { return NL_OK; };
    ::nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, pass_on, const_cast<handler*>(&take));
    ::nl_cb_set(callbacks.get(), NL_CB_SEQ_CHECK, NL_CB_CUSTOM, skip, nullptr);
    bool lost = false;
    for (unsigned n = 0; n < messages_at_once; n++) {
        const int r = ::nl_recvmsgs(socket_.get(), callbacks.get());
        if (r == -NLE_AGAIN)
            return lost ? outcome::lost : outcome::all;
        lost |= r < 0;  // ENOBUFS, or what cannot be told from it
    }
    return lost ? outcome::lost : outcome::more;
}

family_news parse_family_news(std::span<const std::byte> payload)
{
    genlmsghdr header;
    if (payload.size() < GENL_HDRLEN)
        return family_news::none;
    std::memcpy(&header, payload.data(), sizeof(header));
    if (header.cmd != CTRL_CMD_NEWFAMILY && header.cmd != CTRL_CMD_DELFAMILY)
        return family_news::none;
    const auto attributes = payload.subspan(GENL_HDRLEN);
    const nlattr* name = ::nla_find(reinterpret_cast<const nlattr*>(attributes.data()),
                                    static_cast<int>(attributes.size()), CTRL_ATTR_FAMILY_NAME);
    if (!name)
        return family_news::none;
    const std::string_view ours(SPANKER_GENL_NAME, sizeof(SPANKER_GENL_NAME));  // with its NUL
    const std::string_view said(static_cast<const char*>(::nla_data(name)),
                                static_cast<std::size_t>(::nla_len(name)));
    if (said != ours)
        return family_news::none;
    return header.cmd == CTRL_CMD_NEWFAMILY ? family_news::came : family_news::went;
}

}  // namespace spanker::daemon::kernel
