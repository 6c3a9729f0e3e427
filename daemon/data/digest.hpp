// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 of weights as they stream by (libcrypto, which uses the processor's
// SHA instructions).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "daemon/data/weights_store.hpp"

struct evp_md_ctx_st;

namespace spanker::daemon::data {

class digest final {
public:
    digest();

    void update(std::span<const std::byte> bytes);
    digest_bytes finish();

private:
    struct free_context {
        void operator()(evp_md_ctx_st* context) const;
    };
    std::unique_ptr<evp_md_ctx_st, free_context> context_;
};

std::string to_hex(const digest_bytes& hash);

}  // namespace spanker::daemon::data
