// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/token_weights.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/label_weights.hpp>

#include <bit>
#include <cstring>

namespace rankc::runtime {

static_assert(std::endian::native == std::endian::little);

token_weights::token_weights(const std::filesystem::path& path, const std::string& tokens_file,
                             std::uint64_t tokens)
    : file_(path) {
  const std::size_t bytes = file_.bytes().size();
  if (bytes != tokens * sizeof(float))
    throw failure(1,
                  "RC6264: {} has {} bytes, but {} has {} tokens; write a little-endian float32 for each "
                  "token, {} bytes",
                  name(), bytes, tokens_file, tokens, tokens * sizeof(float));
  for (std::uint64_t i = 0; bytes < checked_whole && i < tokens; ++i) weight(i);
}

float token_weights::weight(std::uint64_t i) const {
  float weight;
  std::memcpy(&weight, file_.bytes().data() + i * sizeof weight, sizeof weight);
  if (is_weight(weight)) return weight;
  throw failure(1, "RC6265: {} has {} at token {}; a weight is 0, or from {} to {}", name(), weight, i,
                least_weight, largest_weight);
}

void refuse_weights(const std::string& file) {
  throw failure(1,
                "RC6268: {} has weights of labels, but this plan has none; give it "
                "training{.token_weights = true}, or remove the file",
                file);
}

}  // namespace rankc::runtime
