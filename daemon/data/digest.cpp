// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/digest.hpp"

#include <openssl/evp.h>

#include <new>
#include <stdexcept>

namespace spanker::daemon::data {

void digest::free_context::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

digest::digest() : context_(EVP_MD_CTX_new())
{
    if (!context_)
        throw std::bad_alloc();
    if (EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
        throw std::runtime_error("libcrypto offers no SHA-256");
}

void digest::update(std::span<const std::byte> bytes)
{
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

digest_bytes digest::finish()
{
    digest_bytes hash{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), hash.data(), &size);
    return hash;
}

std::string to_hex(const digest_bytes& hash)
{
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : hash) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

}  // namespace spanker::daemon::data
