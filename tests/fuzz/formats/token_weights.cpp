// SPDX-License-Identifier: Apache-2.0
// The weights next to a token file of eight tokens.
#include <rankc/runtime/label_weights.hpp>
#include <rankc/trainer/sample_source.hpp>

#include "accepted_or_refused.hpp"

#include <array>
#include <cstring>

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int seq = 3;
  std::string tokens(1024 + 16, '\0');
  constexpr std::array<std::int32_t, 3> header{20240520, 1, 8};
  std::memcpy(tokens.data(), header.data(), sizeof header);
  const auto file = fuzz::file_with(tokens, "f.bin");
  fuzz::file_with(fuzz::text_of(data, size), "f.weights");
  fuzz::accept_or_refuse([&] {
    auto opened = runtime::open_sources(runtime::parse_data_spec(file.string()), 256);
    const runtime::sample_source source(std::move(opened.front()), 256, seq, {});
    if (size != 8 * sizeof(float)) __builtin_trap();
    std::array<std::int32_t, seq> read{}, labels{};
    std::array<double, seq> weights{};
    std::array<double*, 1> inputs{weights.data()};
    for (std::uint64_t s = 0; s < 4; ++s) {
      source.sample(runtime::data_part::trained, s, {read.data(), labels.data(), inputs});
      for (const double weight : weights)
        if (!runtime::is_weight(weight)) __builtin_trap();
    }
  });
  return 0;
}
