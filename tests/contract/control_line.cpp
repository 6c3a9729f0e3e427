// SPDX-License-Identifier: Apache-2.0
#include "control_line.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace contract {

namespace {

using namespace spanker::daemon;
namespace fs = std::filesystem;

constexpr int answer_ms = 10'000;
constexpr const char* ports_folder = "/sys/class/virtio-ports";
constexpr const char* port_name = "spanker.control";

std::string find_path()
{
    if (const char* named = std::getenv("SPANKER_SIM_CONTROL"))
        return named;
    std::error_code none;
    for (const auto& port : fs::directory_iterator(ports_folder, none)) {
        std::string name;
        std::ifstream(port.path() / "name") >> name;
        if (name == port_name)
            return "/dev/" + port.path().filename().string();
    }
    return {};
}

unique_fd connect_to(const std::string& path)
{
    sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
    if (path.size() >= sizeof(at.sun_path)) {
        errno = ENAMETOOLONG;
        return {};
    }
    std::memcpy(at.sun_path, path.data(), path.size());
    unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd && ::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0)
        fd.reset();
    return fd;
}

unique_fd open_path(const std::string& path)
{
    struct stat what = {};
    if (::stat(path.c_str(), &what) == 0 && S_ISSOCK(what.st_mode))
        return connect_to(path);
    return unique_fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
}

}  // namespace

result<std::unique_ptr<control_line>> control_line::find()
{
    const std::string path = find_path();
    if (path.empty())
        return nullptr;
    unique_fd fd = open_path(path);
    if (!fd)
        return fail_errno(errno, path + ": " + std::strerror(errno));
    std::unique_ptr<control_line> made(new control_line(std::move(fd)));
    if (auto ready = made->synchronise(); !ready)
        return fail(ready.error().kind, path + ": " + ready.error().message);
    return made;
}

bool control_line::send(std::string line)
{
    line += '\n';
    for (std::string_view left = line; !left.empty();) {
        const ssize_t sent = ::write(fd_.get(), left.data(), left.size());
        if (sent < 0 && errno != EINTR)
            return false;
        left.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : 0);
    }
    return true;
}

bool control_line::read_line(std::string& line)
{
    for (;;) {
        if (const auto end = unread_.find('\n'); end != std::string::npos) {
            line = unread_.substr(0, end);
            unread_.erase(0, end + 1);
            return true;
        }
        pollfd at{.fd = fd_.get(), .events = POLLIN, .revents = 0};
        char fresh[4096];
        if (::poll(&at, 1, answer_ms) != 1)
            return false;
        const ssize_t got = ::read(fd_.get(), fresh, sizeof(fresh));
        if (got <= 0)
            return false;
        unread_.append(fresh, static_cast<std::size_t>(got));
    }
}

result<void> control_line::synchronise()
{
    const std::string token = "hello-" + std::to_string(::getpid());
    std::string line;
    if (!send(token))
        return fail_errno(errno, std::strerror(errno));
    while (read_line(line))
        if (line.find(token) != std::string::npos)
            return {};  // it says that it does not know the word
    return fail(SPANKER_ERR_TIMEOUT, "nobody answers");
}

result<nlohmann::json> control_line::ask(const std::string& request)
{
    std::string line;
    if (!send(request) || !read_line(line))
        return fail(SPANKER_ERR_TIMEOUT, "the card model does not answer '" + request + "'");
    auto answer = nlohmann::json::parse(line, nullptr, false);
    if (answer.is_discarded() || !answer.is_object())
        return fail(SPANKER_ERR_MISMATCH, "the card model answers '" + line + "'");
    if (!answer.value("ok", false))
        return fail(SPANKER_ERR_INVALID, answer.value("error", line));
    return answer;
}

}  // namespace contract
