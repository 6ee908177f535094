// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/skip_batches.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>

#include <fmt/format.h>
#include <limits>

namespace rankc::runtime {

namespace {
constexpr std::int64_t last_step =
    std::numeric_limits<std::int32_t>::max();  // products with the batch size do not overflow
}

step_range parse_step_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != text.npos) {
    const auto first = parse_number<std::int64_t>(text.substr(0, colon)),
               last = parse_number<std::int64_t>(text.substr(colon + 1));
    if (first && last && *first >= 1 && *first <= *last && *last <= last_step) return {*first, *last};
  }
  throw failure(
      2,
      "RC6030: --skip-batches {} is not a range of steps; give the first and the last step, as in 37:40, "
      "from 1 to 2^31 - 1",
      text);
}

std::string skip_batches(const step_range& steps, const run_place& at, data_record& read) {
  if (steps.first <= at.step)
    throw failure(
        2,
        "RC6193: --skip-batches {} begins with step {}, but the checkpoint has taken step {}; give steps "
        "from {} on, or load an earlier checkpoint",
        fmt::format("{}:{}", steps.first, steps.last), steps.first, at.step, at.step + 1);
  const auto before = static_cast<std::uint64_t>(steps.first - at.step - 1),
             count = static_cast<std::uint64_t>(steps.last - steps.first + 1);
  read.gaps.push_back({.at = at.samples + before * at.batch, .count = count * at.batch});
  return say("RC6192: the batches of steps {} to {} are left out; step {} trains on the batch after them",
             steps.first, steps.last, steps.first);
}

}  // namespace rankc::runtime
