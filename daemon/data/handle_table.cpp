// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/handle_table.hpp"

namespace spanker::daemon::data {

const char* kind_name(std::uint32_t kind)
{
    switch (kind) {
    case SPANKER_KIND_BUFFER:
        return "buffer";
    case SPANKER_KIND_TENSOR:
        return "tensor";
    case SPANKER_KIND_WEIGHTS:
        return "weights";
    default:
        return "object";
    }
}

tl::unexpected<error> no_such_handle(std::uint64_t handle, spanker_operand_kind wanted)
{
    const std::uint32_t kind = handle > 0xffffffff ? 0 : handle_parts::of(handle).kind;
    std::string text = "handle " + std::to_string(handle) + " is no " + kind_name(wanted);
    if (kind != wanted && kind >= SPANKER_KIND_BUFFER && kind <= SPANKER_KIND_WEIGHTS)
        text += std::string(" but names ") + (kind == SPANKER_KIND_WEIGHTS ? "" : "a ") +
                kind_name(kind);
    else
        text += " of this session (never made, or already freed)";
    return fail(SPANKER_ERR_NO_OBJECT, std::move(text));
}

}  // namespace spanker::daemon::data
