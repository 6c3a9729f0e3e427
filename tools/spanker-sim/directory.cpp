// SPDX-License-Identifier: Apache-2.0
#include "tools/spanker-sim/directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "sim/unix_socket.hpp"

namespace spanker::sim_tool {
namespace {

// Arguments in qemu.args are split at white space by the shell and at commas by QEMU, and stand in JSON.
constexpr const char* harmless =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-@%:=";

[[noreturn]] void fail(const std::string& path, const std::string& what)
{
    throw std::system_error(errno, std::generic_category(), path + ": " + what);
}

}  // namespace

directory::directory(const std::string& path) : path_(std::filesystem::absolute(path))
{
    while (path_.size() > 1 && path_.back() == '/')
        path_.pop_back();
    const auto odd = path_.find_first_not_of(harmless);
    if (odd != std::string::npos)
        throw std::invalid_argument("--dir: '" + path_.substr(odd, 1) + "' in " + path_ +
                                    " cannot stand in QEMU's arguments; use letters, digits and"
                                    " /._+-@%:=");
    if (::mkdir(path_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
        fail(path_, "cannot make the directory");
    held_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!held_)
        fail(path_, "cannot open the directory");
    if (::flock(held_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            fail(path_, "cannot lock the directory");
        throw std::invalid_argument("--dir: another spanker-sim serves " + path_ +
                                    "; end that one, or name another directory");
    }
    // One that was killed may have left it, and who waits for it must not find that.
    ::unlink(arguments_file().c_str());
}

directory::~directory()
{
    for (const std::string& one : made_)
        ::unlink(one.c_str());
}

std::string directory::card_socket(unsigned card) const
{
    return path_ + "/card" + std::to_string(card) + ".sock";
}

sim::unique_fd directory::listen(const std::string& socket)
{
    sim::unique_fd out = sim::listen_at(socket);
    made_.push_back(socket);
    return out;
}

void directory::publish(const std::string& arguments)
{
    const std::string whole = arguments_file(), part = whole + ".new";
    {
        std::ofstream file(part, std::ios::trunc);
        file << arguments << std::flush;
        if (!file)
            fail(part, "cannot write");
    }
    if (std::rename(part.c_str(), whole.c_str()) != 0)
        fail(whole, "cannot put it in place");
    made_.push_back(whole);
}

}  // namespace spanker::sim_tool
