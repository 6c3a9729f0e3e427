// SPDX-License-Identifier: Apache-2.0
//
// spankerd over fake cards, for tests of what no simulated card does. $SPANKER_FAKE says which cards.
#include <fmt/format.h>

#include <cstdlib>

#include "daemon/run.hpp"
#include "tests/daemon/fake_backend.hpp"

using namespace spanker::daemon;

int main(int argc, char** argv)
{
    auto parsed = parse_options(argc, argv);
    if (!parsed) {
        fmt::print(stderr, "{}\n", parsed.error().message);
        return 2;
    }
    parsed->values.hardware = false;
    const char* wanted = std::getenv("SPANKER_FAKE");
    return run_daemon(parsed->values, [wanted]() -> result<std::unique_ptr<backend>> {
        return std::make_unique<fake::fake_backend>(fake::parse_fake(wanted ? wanted : ""));
    });
}
