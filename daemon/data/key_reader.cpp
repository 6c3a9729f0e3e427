// SPDX-License-Identifier: Apache-2.0
#include "daemon/data/key_reader.hpp"

namespace spanker::daemon::data {

void key_reader::refuse(std::string why)
{
    if (refusal_.empty())
        refusal_ = std::move(why);
}

void key_reader::refuse_twice()
{
    for (std::size_t i = 0; i < from_.size(); i++)
        for (std::size_t j = 0; j < i; j++)
            if (from_[i].key == from_[j].key) {
                taken_[i] = true;  // known, so that this is what is said of it
                refuse("key '" + from_[i].key + "' is given twice");
            }
}

const option_value* key_reader::take(std::string_view key)
{
    for (std::size_t i = 0; i < from_.size(); i++)
        if (from_[i].key == key) {
            taken_[i] = true;
            return &from_[i].value;
        }
    return nullptr;
}

template <typename T>
const T* key_reader::typed(std::string_view key, const char* type)
{
    const option_value* value = take(key);
    if (!value)
        return nullptr;
    const T* right = std::get_if<T>(value);
    if (!right)
        refuse("key '" + std::string(key) + "' must be " + type);
    return right;
}

std::uint64_t key_reader::integer(std::string_view key, std::uint64_t fallback, std::uint64_t most,
                                  bool needed)
{
    const bool wrong = !refusal_.empty();
    const auto* value = typed<std::uint64_t>(key, "an unsigned integer");
    if (!value) {
        if (needed && !wrong)
            refuse("key '" + std::string(key) + "' is missing");
        return fallback;
    }
    if (*value > most) {
        refuse("key '" + std::string(key) + "' is " + std::to_string(*value) + ", the most is " +
               std::to_string(most));
        return fallback;
    }
    return *value;
}

bool key_reader::boolean(std::string_view key)
{
    const auto* value = typed<bool>(key, "a boolean");
    return value && *value;
}

std::string_view key_reader::text(std::string_view key)
{
    const auto* value = typed<std::string>(key, "a string");
    if (value && value->empty())
        refuse("key '" + std::string(key) + "' is empty");
    return value ? *value : std::string_view();
}

const std::vector<std::uint64_t>* key_reader::numbers(std::string_view key)
{
    return typed<std::vector<std::uint64_t>>(key, "an array of unsigned integers");
}

// An unknown key comes first: misspelt, it is why another one is missing.
result<void> key_reader::finish() const
{
    for (std::size_t i = 0; i < from_.size(); i++)
        if (!taken_[i])
            return fail(SPANKER_ERR_INVALID, "unknown key '" + from_[i].key + "'");
    if (!refusal_.empty())
        return fail(SPANKER_ERR_INVALID, refusal_);
    return {};
}

}  // namespace spanker::daemon::data
