// SPDX-License-Identifier: Apache-2.0
//
// spanker-sim: Sail cards in software behind a virtual PCIe bus. docs/simulator.md shows how to use it.
#include <cstdio>
#include <exception>
#include <iostream>

#include "tools/spanker-sim/ask.hpp"
#include "tools/spanker-sim/options.hpp"
#include "tools/spanker-sim/serve.hpp"

int main(int argc, char** argv)
{
    using namespace spanker::sim_tool;
    try {
        const parsed line = parse(argc, argv);
        if (!line.go_on)
            return line.exit_code;
        if (!line.what.control.empty())
            return ask(line.what.control, line.what.request, std::cin);
        serve(line.what);
        return 0;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "spanker-sim: %s\n", problem.what());
        return 1;
    }
}
