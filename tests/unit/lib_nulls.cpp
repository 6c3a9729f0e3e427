// SPDX-License-Identifier: Apache-2.0
//
// NULL: ignored where a handle is given back, -EINVAL naming the argument everywhere else.
#include <gtest/gtest.h>

#include "libspankerctl/src/session.hpp"

extern "C" int lib_header_in_c(void);

namespace {

TEST(lib_nulls, the_header_works_in_c) { EXPECT_EQ(lib_header_in_c(), 0); }

TEST(lib_nulls, are_ignored_where_a_handle_is_given_back)
{
    spanker_disconnect(nullptr);
    spanker_session_close(nullptr);
    spanker_buffer_free(nullptr);
    spanker_tensor_free(nullptr);
    spanker_weights_free(nullptr);
    spanker_request_free(nullptr);
    spanker_mock_stop(nullptr);
}

TEST(lib_nulls, are_invalid_everywhere_else)
{
    spanker_connection connection;
    spanker_session session{&connection};
    spanker_fabric_info fabric;
    std::size_t count = 0;
    spanker_weights* weights = nullptr;
    spanker_request* request = nullptr;
    const spanker_operand_ref none = {};
    const std::pair<const char*, int> rows[] = {
        {"connect", spanker_connect(nullptr, nullptr)},
        {"with_mock", spanker_with_mock(1, nullptr, nullptr)},
        {"mock_daemon_pid", spanker_mock_daemon_pid(nullptr)},
        {"daemon", spanker_daemon(nullptr, nullptr)},
        {"daemon out", spanker_daemon(&connection, nullptr)},
        {"enumerate", spanker_enumerate(nullptr, nullptr, 0, &count)},
        {"enumerate count", spanker_enumerate(&connection, nullptr, 0, nullptr)},
        {"enumerate cards", spanker_enumerate(&connection, nullptr, 1, &count)},
        {"topology", spanker_topology(nullptr, &fabric, nullptr, 0, &count)},
        {"topology fabric", spanker_topology(&connection, nullptr, nullptr, 0, &count)},
        {"topology links", spanker_topology(&connection, &fabric, nullptr, 1, &count)},
        {"card_telemetry", spanker_card_telemetry(&connection, 0, nullptr)},
        {"card_counters", spanker_card_counters(&connection, 0, nullptr, 1, &count)},
        {"card_trace", spanker_card_trace(&connection, 0, nullptr, 0, nullptr)},
        {"link_counters", spanker_link_counters(nullptr, "0.0-1.0", nullptr, 0, &count)},
        {"link_counters name", spanker_link_counters(&connection, nullptr, nullptr, 0, &count)},
        {"link_lanes name", spanker_link_lanes(&connection, nullptr, nullptr, 0, &count)},
        {"inject_fault", spanker_inject_fault(&connection, 0, nullptr)},
        {"session_open", spanker_session_open(nullptr, nullptr, nullptr)},
        {"session_open out", spanker_session_open(&connection, nullptr, nullptr)},
        {"session_cards", spanker_session_cards(nullptr, nullptr, 0)},
        {"session_cards cards", spanker_session_cards(&session, nullptr, 1)},
        {"buffer_create", spanker_buffer_create(nullptr, 1, SPANKER_ACCESS_READ, nullptr)},
        {"buffer_create out", spanker_buffer_create(&session, 1, SPANKER_ACCESS_READ, nullptr)},
        {"buffer_import", spanker_buffer_import(nullptr, 0, 0, 1, SPANKER_ACCESS_READ, nullptr)},
        {"buffer_seal", spanker_buffer_seal(nullptr)},
        {"tensor_alloc",
         spanker_tensor_alloc(nullptr, SPANKER_PARTIAL, SPANKER_F32, 1, 1, nullptr)},
        {"tensor_write", spanker_tensor_write(nullptr, 0, nullptr, 0, 0, 0, nullptr)},
        {"tensor_read", spanker_tensor_read(nullptr, 0, nullptr, 0, 0, 0, nullptr)},
        {"tensor_read_async",
         spanker_tensor_read_async(nullptr, 0, nullptr, 0, 0, 0, nullptr, nullptr)},
        {"weights_load", spanker_weights_load(&session, nullptr, 0, 1, 256, nullptr, nullptr)},
        {"weights_load_fd", spanker_weights_load_fd(nullptr, 0, 0, 1, 256, nullptr, nullptr)},
        {"weights_reload_fd", spanker_weights_reload_fd(nullptr, 0, 0)},
        {"weights_load_async",
         spanker_weights_load_async(&session, "", 0, 1, 256, nullptr, &weights, nullptr)},
        {"weights_load_async weights",
         spanker_weights_load_async(&session, "", 0, 1, 256, nullptr, nullptr, &request)},
        {"weights_load_fd_async",
         spanker_weights_load_fd_async(nullptr, 0, 0, 1, 256, nullptr, &weights, &request)},
        {"weights_reload_fd_async", spanker_weights_reload_fd_async(nullptr, 0, 0, &request)},
        {"matmul",
         spanker_matmul(nullptr, nullptr, none, SPANKER_X_F32, none, 1, nullptr, nullptr)},
        {"matmul_async",
         spanker_matmul_async(&session, nullptr, none, SPANKER_X_F32, none, 1, nullptr, nullptr)},
        {"all_reduce",
         spanker_all_reduce(nullptr, none, none, 1, SPANKER_F32, SPANKER_SUM, nullptr, nullptr)},
        {"broadcast", spanker_broadcast(nullptr, none, none, 1, SPANKER_F32, 0, nullptr, nullptr)},
        {"all_gather", spanker_all_gather(nullptr, none, none, 1, SPANKER_F32, nullptr, nullptr)},
        {"request_poll", spanker_request_poll(nullptr)},
        {"request_wait", spanker_request_wait(nullptr, 0, nullptr)},
        {"request_cancel", spanker_request_cancel(nullptr)},
        {"request_eventfd", spanker_request_eventfd(nullptr)},
        {"matmul_q4_k",
         spanker_matmul_q4_k(nullptr, nullptr, 0, nullptr, 0, nullptr, 0, 0, 256, 0)},
        {"all_reduce_f32", spanker_all_reduce_f32(nullptr, nullptr, 0, 0, SPANKER_SUM)},
        {"all_gather_f32", spanker_all_gather_f32(nullptr, nullptr, nullptr, 0, 0)},
    };
    for (const auto& [name, result] : rows)
        EXPECT_EQ(result, -EINVAL) << name;
}

TEST(lib_nulls, are_named)
{
    spanker_connect(nullptr, nullptr);
    EXPECT_STREQ(spanker_last_error(nullptr)->message, "out is NULL");
}

TEST(lib_nulls, questions_about_nothing_have_empty_answers)
{
    EXPECT_EQ(spanker_buffer_data(nullptr), nullptr);
    EXPECT_EQ(spanker_buffer_bytes(nullptr), 0u);
    EXPECT_EQ(spanker_mock_bus(nullptr), nullptr);
}

}  // namespace
