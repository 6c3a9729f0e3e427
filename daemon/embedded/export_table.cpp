// SPDX-License-Identifier: Apache-2.0
#include "daemon/embedded/export_table.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "daemon/embedded/tensor.hpp"
#include "daemon/os_error.hpp"

namespace spanker::daemon::embedded {

export_table::~export_table()
{
    for (entry& one : entries_)
        one.what->put();
}

void export_table::sweep()
{
    std::erase_if(entries_, [](entry& one) {
        pollfd at{.fd = one.reader.get(), .events = POLLIN, .revents = 0};
        if (::poll(&at, 1, 0) <= 0 || (at.revents & POLLHUP) == 0)
            return false;
        one.what->put();
        return true;
    });
}

result<unique_fd> export_table::add(tensor& what)
{
    sweep();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return fail_os(errno, "tensor export: no descriptor left");
    unique_fd reader(ends[0]), writer(ends[1]);
    struct stat at = {};
    if (::fstat(reader.get(), &at) != 0)
        return fail_os(errno, "tensor export: cannot identify the descriptor");
    what.hold();
    entries_.push_back({std::move(reader), at.st_dev, at.st_ino, &what});
    return writer;
}

result<tensor*> export_table::find(int fd)
{
    sweep();
    struct stat at = {};
    if (::fstat(fd, &at) == 0)
        for (entry& one : entries_)
            if (one.device == at.st_dev && one.inode == at.st_ino)
                return one.what;
    return fail(SPANKER_ERR_INVALID,
                "descriptor " + std::to_string(fd) + " is not an exported tensor");
}

}  // namespace spanker::daemon::embedded
