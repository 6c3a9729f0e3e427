// SPDX-License-Identifier: Apache-2.0
#include "sim/vfio_user/message.hpp"

#include <nlohmann/json.hpp>

namespace spanker::sim::vfio_user {

std::optional<std::string> why_not(const header& head)
{
    const std::uint32_t type = head.flags & flag_type;
    if (head.size < sizeof head || head.size > max_message_bytes)
        return "a message of " + std::to_string(head.size) + " bytes; there are " +
               std::to_string(sizeof head) + " to " + std::to_string(max_message_bytes);
    if (type == type_reply)
        return "a reply, though this server asks nothing";
    if (type != type_command)
        return "a message of type " + std::to_string(type) + ", which there is not";
    return std::nullopt;
}

header reply_header(const header& to, std::size_t payload_bytes)
{
    return {.id = to.id,
            .command = to.command,
            .size = static_cast<std::uint32_t>(sizeof(header) + payload_bytes),
            .flags = type_reply,
            .error = 0};
}

header error_header(const header& to, int error)
{
    header out = reply_header(to, 0);
    out.flags |= flag_error;
    out.error = static_cast<std::uint32_t>(error);
    return out;
}

std::string offered_capabilities()
{
    const nlohmann::json offered = {{"capabilities",
                                     {{"max_msg_fds", max_message_fds},
                                      {"max_data_xfer_size", max_data_bytes},
                                      {"max_dma_maps", max_dma_maps},
                                      {"pgsizes", page_bytes}}}};
    std::string out = offered.dump();
    out.push_back('\0');
    return out;
}

bool is_capabilities(std::span<const std::byte> text)
{
    if (text.empty())
        return true;
    if (text.back() != std::byte{0})
        return false;
    const auto* first = reinterpret_cast<const char*>(text.data());
    const auto parsed =
        nlohmann::json::parse(first, first + text.size() - 1, nullptr, /*allow_exceptions=*/false);
    return parsed.is_object();
}

}  // namespace spanker::sim::vfio_user
