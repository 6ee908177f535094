// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/token_weights.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/label_weights.hpp>

#include <cstring>

namespace rankc::runtime {

token_weights::token_weights(const std::filesystem::path& path, const std::string& tokens_file,
                             std::uint64_t tokens)
    : file_(path) {
  if (file_.bytes().size() != tokens * sizeof(float))
    throw failure(1,
                  "RC6264: {} has {} bytes, but {} has {} tokens; write a little-endian float32 for each "
                  "token, {} bytes",
                  name(), file_.bytes().size(), tokens_file, tokens, tokens * sizeof(float));
  for (std::uint64_t i = 0; i < tokens; ++i)
    if (!is_weight(weight(i)))
      throw failure(1, "RC6265: {} has {} at token {}; a weight is 0, or from {} to {}", name(), weight(i), i,
                    least_weight, largest_weight);
}

float token_weights::weight(std::uint64_t i) const {
  float weight;
  std::memcpy(&weight, file_.bytes().data() + i * sizeof weight, sizeof weight);
  return weight;
}

}  // namespace rankc::runtime
