/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header as strict C11, and twice; each options struct takes a C initialiser.
 */
#include <spankerctl.h>
#include <spankerctl.h>

int lib_header_in_c(void);

int lib_header_in_c(void)
{
    const spanker_connect_options connect = {.size = sizeof(connect), .bus = "session"};
    const spanker_session_options session = {.size = sizeof(session), .sq_entries = 8};
    const spanker_weights_options weights = {.size = sizeof(weights), .sharding = SPANKER_SHARD_K};
    const spanker_work_options work = {.size = sizeof(work), .flags = SPANKER_LINKED};
    const spanker_operand_ref operand = {.buffer = NULL};
    spanker_tile_shape tile = {.m = 1, .n = 1, .k = 1, .bytes_per_element = 1};

    return connect.size == 0 || session.size == 0 || weights.size == 0 || work.size == 0 ||
           operand.offset != 0 || spanker_pick_strategy(&tile, 1, 1, 1) != SPANKER_TENSOR_PARALLEL;
}
