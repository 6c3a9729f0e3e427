// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/device.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

namespace spanker::daemon::kernel {

std::string node_of(std::uint32_t card) { return "/dev/spanker" + std::to_string(card); }

int device_call(int fd, unsigned long request, void* argument)
{
    for (;;) {
        if (::ioctl(fd, request, argument) >= 0)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

int open_node(const std::string& node, unique_fd& out)
{
    do
        out.reset(::open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    while (!out && errno == EINTR);
    return out ? 0 : -errno;
}

error device_error(const std::string& node, int err, const std::string& what)
{
    return {spanker_errno_kind(err), node + ": " + what + ": " + std::strerror(-err)};
}

error open_error(const std::string& node, int err)
{
    switch (err) {
    case -EACCES:
    case -EPERM:
        return {SPANKER_ERR_DENIED,
                node + ": permission denied; is this user in the group of the node (spankerd)?"};
    case -ENOENT:
    case -ENXIO:
        return {SPANKER_ERR_NO_OBJECT,
                node + (node == control_node ? ": the driver is not there; modprobe spanker"
                                             : ": there is no such card")};
    case -EMFILE:
    case -ENFILE:
        return {SPANKER_ERR_QUOTA, node + ": no descriptor left; raise the limit of open files"};
    default:
        return device_error(node, err, "cannot open it");
    }
}

}  // namespace spanker::daemon::kernel
