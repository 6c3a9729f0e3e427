// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel/telemetry_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include "daemon/refusals.hpp"
#include "daemon/unique_fd.hpp"

namespace spanker::daemon::kernel {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t microwatts = 1000;  // in a milliwatt

tl::unexpected<error> cannot(std::uint32_t card, const std::string& path, int err)
{
    switch (err) {
    case ENODEV:
    case EIO:
    case EAGAIN:
        return tl::unexpected(refusals::gate(card, -err));
    case ENOENT:
        return fail(SPANKER_ERR_NOT_SUPPORTED,
                    path + ": this version of the module does not report it");
    default:
        return fail_errno(err, path + ": " + std::strerror(err));
    }
}

// Numbers of a file, separated by white space; as many as are asked for.
result<void> read_numbers(std::uint32_t card, const std::string& path, std::span<std::int64_t> out)
{
    char text[512];
    const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = fd ? ::read(fd.get(), text, sizeof(text)) : -1;
    if (got < 0)
        return cannot(card, path, errno);
    const char* at = text;
    const char* const end = text + got;
    for (std::int64_t& number : out) {
        while (at != end && (*at == ' ' || *at == '\n'))
            at++;
        const auto [stop, problem] = std::from_chars(at, end, number);
        if (problem != std::errc())
            return fail(SPANKER_ERR_NOT_SUPPORTED, path + ": is not " + std::to_string(out.size()) +
                                                       " numbers; is the module another version?");
        at = stop;
    }
    return {};
}

result<std::int64_t> read_number(std::uint32_t card, const std::string& path)
{
    std::int64_t out = 0;
    return read_numbers(card, path, {&out, 1}).map([&] { return out; });
}

// The card's own device may stand between the function on the bus and its sensors.
std::string hwmon_of(const std::string& folder)
{
    std::error_code none;
    for (const char* place : {"/device/hwmon", "/hwmon"})
        for (const auto& entry : fs::directory_iterator(folder + place, none))
            return entry.path().string();
    return folder + "/device/hwmon/hwmon0";
}

}  // namespace

result<telemetry> read_telemetry_files(std::uint32_t card, const std::string& classes)
{
    const std::string folder = classes + "/spanker" + std::to_string(card);
    std::error_code none;
    if (!fs::exists(folder, none))
        return fail(SPANKER_ERR_NO_OBJECT, folder + ": there is no such card");
    const std::string sensors = hwmon_of(folder);
    telemetry out;
    auto number = read_number(card, sensors + "/temp1_input");
    if (!number)
        return tl::unexpected(number.error());
    out.temperature_mc = static_cast<std::int32_t>(*number);
    number = read_number(card, sensors + "/power1_input");
    if (!number)
        return tl::unexpected(number.error());
    out.power_mw = static_cast<std::uint32_t>(*number / microwatts);
    for (std::uint32_t n = 0; n < SPK_VOLTAGES; n++) {
        number = read_number(card, sensors + "/in" + std::to_string(n) + "_input");
        if (!number)
            return tl::unexpected(number.error());
        out.voltage_mv[n] = static_cast<std::uint32_t>(*number);
    }
    std::int64_t busy[SPK_ENGINE_CLASSES];
    if (auto read = read_numbers(card, folder + "/busy_ns", busy); !read)
        return tl::unexpected(read.error());
    for (std::uint32_t n = 0; n < SPK_ENGINE_CLASSES; n++)
        out.busy_ns[n] = static_cast<std::uint64_t>(busy[n]);
    return out;
}

}  // namespace spanker::daemon::kernel
