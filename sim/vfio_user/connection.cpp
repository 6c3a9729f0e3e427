// SPDX-License-Identifier: Apache-2.0
#include "sim/vfio_user/connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace spanker::sim::vfio_user {

connection::connection(unique_fd socket, doorman& door, device& card,
                       std::function<void()> answered)
    : socket_(std::move(socket)), door_(door), card_(card), answered_(std::move(answered))
{}

std::string connection::serve()
{
    while (serve_one())
        ;
    return why_ended_;
}

// Reads the header, then the rest; descriptors come with either.
bool connection::serve_one()
{
    descriptors_.clear();
    header head;
    const passed got = receive(std::as_writable_bytes(std::span(&head, 1)));
    if (got == passed::none)
        why_ended_ = "the client left";
    if (got != passed::all)
        return false;
    if (const auto wrong = why_not(head)) {
        why_ended_ = "the client sent " + *wrong;
        return false;
    }
    payload_.resize(head.size - sizeof head);
    if (receive(payload_) != passed::all)
        return false;
    const int error = card_.handle(head.command, payload_, descriptors_, reply_);
    const bool quiet = (head.flags & flag_no_reply) != 0;
    const bool sent = quiet || (error == 0 ? send(reply_header(head, reply_.size()), reply_)
                                           : send(error_header(head, error), {}));
    answered_();
    return sent;
}

bool connection::take_descriptors(const msghdr& from)
{
    for (cmsghdr* at = CMSG_FIRSTHDR(&from); at != nullptr;
         at = CMSG_NXTHDR(const_cast<msghdr*>(&from), at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; i++) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
            descriptors_.emplace_back(fd);
        }
    }
    if ((from.msg_flags & MSG_CTRUNC) == 0 && descriptors_.size() <= max_message_fds)
        return true;
    why_ended_ = "the client sent more than " + std::to_string(max_message_fds) +
                 " descriptors with one message, or none are left here";
    return false;
}

connection::passed connection::receive(std::span<std::byte> to)
{
    for (std::size_t done = 0; done < to.size();) {
        alignas(cmsghdr) std::array<char, CMSG_SPACE(max_message_fds * sizeof(int))> control;
        iovec piece = {.iov_base = to.data() + done, .iov_len = to.size() - done};
        msghdr message = {};
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (got > 0) {
            done += static_cast<std::size_t>(got);
            if (!take_descriptors(message))
                return passed::end;
        } else if (got == 0) {
            why_ended_ = "the client left in the middle of a message";
            return done == 0 ? passed::none : passed::end;
        } else if (errno == EAGAIN || errno == EINTR) {
            if (!door_.wait(socket_.get(), POLLIN)) {
                why_ended_ = "the server ends";
                return passed::end;
            }
        } else {
            why_ended_ = std::string("the client is lost: ") + std::strerror(errno);
            return passed::end;
        }
    }
    return passed::all;
}

// Header and payload go out at once: QEMU takes a header in two pieces for an error.
bool connection::send(const header& head, std::span<const std::byte> payload)
{
    const std::size_t total = sizeof head + payload.size();
    for (std::size_t done = 0; done < total;) {
        const auto whole = std::as_bytes(std::span(&head, 1));
        const auto first = whole.subspan(std::min(done, whole.size()));
        const auto second = payload.subspan(done > whole.size() ? done - whole.size() : 0);
        iovec pieces[] = {
            {.iov_base = const_cast<std::byte*>(first.data()), .iov_len = first.size()},
            {.iov_base = const_cast<std::byte*>(second.data()), .iov_len = second.size()}};
        msghdr message = {};
        message.msg_iov = pieces;
        message.msg_iovlen = std::size(pieces);
        const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            done += static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN || errno == EINTR) {
            if (!door_.wait(socket_.get(), POLLOUT)) {
                why_ended_ = "the server ends";
                return false;
            }
        } else {
            why_ended_ = std::string("the client is lost: ") + std::strerror(errno);
            return false;
        }
    }
    return true;
}

}  // namespace spanker::sim::vfio_user
