// SPDX-License-Identifier: Apache-2.0
#include "sim/unix_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace spanker::sim {
namespace {

constexpr int waiting_clients = 16;

[[noreturn]] void fail(const std::string& path, const std::string& what, int error)
{
    throw std::system_error(error, std::generic_category(), path + ": " + what);
}

sockaddr_un address_of(const std::string& path)
{
    sockaddr_un out = {};
    out.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof out.sun_path)
        throw std::invalid_argument(
            path + ": a socket's path has 1 to " + std::to_string(sizeof out.sun_path - 1) +
            " characters, this one " + std::to_string(path.size()) + "; use a shorter directory");
    std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
    return out;
}

unique_fd new_socket(const std::string& path)
{
    unique_fd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!out)
        fail(path, "socket", errno);
    return out;
}

int try_connect(const unique_fd& from, const sockaddr_un& to)
{
    return ::connect(from.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0
                                                                                         : errno;
}

void remove_dead(const std::string& path, const sockaddr_un& address)
{
    struct stat info = {};
    if (::lstat(path.c_str(), &info) != 0)
        return;
    if (!S_ISSOCK(info.st_mode))
        throw std::invalid_argument(path + ": is there already and no socket; move it away");
    const int error = try_connect(new_socket(path), address);
    if (error == 0 || error == EAGAIN)
        throw std::invalid_argument(path + ": another process serves it; end that one first");
    if (error != ECONNREFUSED)
        fail(path, "cannot tell whether another process serves it", error);
    if (::unlink(path.c_str()) != 0)
        fail(path, "cannot remove the dead socket", errno);
}

}  // namespace

unique_fd listen_at(const std::string& path)
{
    const sockaddr_un address = address_of(path);
    remove_dead(path, address);
    unique_fd out = new_socket(path);
    // The mode of the new file comes from that of the socket, less the umask.
    if (::fchmod(out.get(), S_IRUSR | S_IWUSR) != 0 ||
        ::bind(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(out.get(), waiting_clients) != 0)
        fail(path, "cannot listen", errno);
    return out;
}

unique_fd connect_to(const std::string& path)
{
    const sockaddr_un address = address_of(path);
    unique_fd out = new_socket(path);
    if (const int error = try_connect(out, address); error != 0)
        fail(path, "cannot connect", error);
    return out;
}

}  // namespace spanker::sim
