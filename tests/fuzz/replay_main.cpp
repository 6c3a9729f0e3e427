// SPDX-License-Identifier: Apache-2.0
//
// Drives a fuzzer without libFuzzer: first every file of the folders named on the command line, then inputs of a fixed
// pseudo-random sequence, half of them corpus files with a few bytes changed. The same program run twice does the same.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using bytes = std::vector<std::uint8_t>;

constexpr int random_inputs = 2000;
constexpr std::size_t random_input_bytes_max = 512;

std::vector<bytes> read_corpus(int argc, char** argv)
{
    std::vector<std::filesystem::path> paths;
    for (int i = 1; i < argc; i++)
        for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
            if (entry.is_regular_file())
                paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());

    std::vector<bytes> corpus;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return corpus;
}

bytes next_input(std::mt19937& random, const std::vector<bytes>& corpus)
{
    bytes input;
    if (!corpus.empty() && random() % 2 == 0) {
        input = corpus[random() % corpus.size()];
        for (unsigned changes = random() % 8; changes > 0 && !input.empty(); changes--)
            input[random() % input.size()] = static_cast<std::uint8_t>(random());
        return input;
    }
    input.resize(random() % random_input_bytes_max);
    std::generate(input.begin(), input.end(), [&] { return static_cast<std::uint8_t>(random()); });
    return input;
}

}  // namespace

int main(int argc, char** argv)
{
    const std::vector<bytes> corpus = read_corpus(argc, argv);
    for (const bytes& input : corpus)
        LLVMFuzzerTestOneInput(input.data(), input.size());

    std::mt19937 random(20);  // NOLINT: the sequence is fixed on purpose
    for (int i = 0; i < random_inputs; i++) {
        const bytes input = next_input(random, corpus);
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    std::printf("%zu corpus files and %d random inputs replayed\n", corpus.size(), random_inputs);
    return 0;
}
