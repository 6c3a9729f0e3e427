// SPDX-License-Identifier: Apache-2.0
#include "daemon/session.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "daemon/descriptors.hpp"
#include "daemon/log.hpp"
#include "daemon/os_error.hpp"

namespace spanker::daemon {

namespace {

std::string describe(const session& which)
{
    return fmt::format("session {} (uid {}, pid {}{}{})", which.id, which.owner.uid,
                       which.owner.pid, which.owner.comm.empty() ? "" : ", ", which.owner.comm);
}

}  // namespace

session* sessions::find(session_id id)
{
    auto found = all_.find(id);
    return found == all_.end() ? nullptr : found->second.get();
}

// The client is watched before anything is made for it, so one that leaves at any moment leaves nothing behind.
result<sessions::offer> sessions::open(sd_bus_message* message, session_options wanted)
{
    if (!plane_)
        return fail(SPANKER_ERR_AGAIN, "the cards are still being found; try again");
    auto made = std::make_unique<session>();
    made->home = this;
    auto gone = [](sd_bus_track*, void* userdata) {
        auto* which = static_cast<session*>(userdata);
        which->home->close(which->id, "its client left the bus");
        return 0;
    };
    auto track = watch_sender(message, gone, made.get());
    if (!track)
        return tl::unexpected(track.error());
    made->track = std::move(*track);
    auto who = identify(message);
    if (!who)
        return tl::unexpected(who.error());
    made->owner = std::move(*who);

    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return fail_os(errno,
                       "no descriptors left for a session; close others or raise LimitNOFILE");
    made->control = unique_fd(ends[0]);
    offer to_client{.control = unique_fd(ends[1])};
    if (auto enough = keep_reserve(ends[1]); !enough)
        return tl::unexpected(enough.error());

    wanted.uid = made->owner.uid;
    wanted.pid = made->owner.pid;
    auto fds = plane_->create_session(wanted);
    if (!fds)
        return tl::unexpected(fds.error());
    made->id = to_client.id = fds->id;
    made->cards = fds->cards;
    made->control_watch = home_.on_io(
        made->control.get(), EPOLLIN,
        [this, id = made->id, fd = made->control.get()](std::uint32_t) { on_control(id, fd); });
    to_client.fds = std::move(*fds);
    session& which = *(all_[made->id] = std::move(made));
    log(log_level::info, fmt::format("{} opened", describe(which)),
        {.session = which.id, .client_uid = which.owner.uid});
    handlers_.opened(which);
    return to_client;
}

// Nothing is expected on control yet; what comes is dropped, its descriptors too. Only the end counts.
void sessions::on_control(session_id id, int fd)
{
    char dropped[64];
    const ssize_t got = recv(fd, dropped, sizeof dropped, MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close(id, "its control socket was closed");
}

std::unique_ptr<session> sessions::forget(session_id id, const std::string& why)
{
    session* which = find(id);
    if (!which)
        return nullptr;
    handlers_.closed(id);
    log(log_level::info, fmt::format("{} ended: {}", describe(*which), why),
        {.session = id, .client_uid = which->owner.uid});
    auto node = all_.extract(id);
    return std::move(node.mapped());
}

void sessions::close(session_id id, const std::string& why)
{
    // What is forgotten lives to the end of this function: the caller may be its own watch.
    auto ended = forget(id, why);
    if (ended && plane_)
        plane_->destroy_session(id, handlers_.released);
}

void sessions::closed_by_plane(session_id id, const error& why)
{
    if (forget(id, why.message))
        handlers_.released();
}

void sessions::close_all(const std::string& why)
{
    while (!all_.empty())
        close(all_.begin()->first, why);
}

std::string sessions::users_of(std::uint32_t card) const
{
    std::string users;
    for (const auto& [id, which] : all_)
        if (std::find(which->cards.begin(), which->cards.end(), card) != which->cards.end())
            users += fmt::format("{}session {} (uid {}{}{})", users.empty() ? "" : ", ", id,
                                 which->owner.uid, which->owner.comm.empty() ? "" : ", ",
                                 which->owner.comm);
    return users;
}

}  // namespace spanker::daemon
