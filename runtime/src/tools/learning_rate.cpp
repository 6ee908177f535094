// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/learning_rate.hpp>

#include "refusal.hpp"
#include <rankc/runtime/tools/parse.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

namespace rankc::runtime {

double learning_rate(const recipe& r, std::int64_t step) {
  if (step < r.warmup_steps) return r.lr * static_cast<double>(step) / r.warmup_steps;
  if (r.decay_steps == 0) return r.lr;
  const double progress = std::min(1.0, static_cast<double>(step - r.warmup_steps) / r.decay_steps);
  return r.min_lr + (r.lr - r.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

void set_schedule(recipe& r, std::string_view text, std::int64_t last_step) {
  const auto refuse = [&](const std::string& why) {
    return refusal(2, "--lr-schedule {}: {}; legal are constant and cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]]",
                   text, why);
  };
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts[0] == "constant" && parts.size() == 1) {
    r.warmup_steps = r.decay_steps = 0;
    return;
  }
  if (parts[0] != "cosine" || parts.size() > 4) throw refuse("is not a schedule");
  const auto steps = [&](std::string_view part, const char* what, int least) {
    const auto n = parse_number<int>(part);
    if (!n || *n < least)
      throw refuse(fmt::format("{} is '{}', but must be a whole number >= {}", what, part, least));
    return *n;
  };
  if (parts.size() > 1) r.warmup_steps = steps(parts[1], "WARMUP", 0);
  if (parts.size() > 2) {
    r.decay_steps = steps(parts[2], "DECAY_STEPS", 1);
  } else if (r.decay_steps == 0) {
    const auto rest = std::max<std::int64_t>(1, last_step - r.warmup_steps);
    r.decay_steps = static_cast<int>(std::min<std::int64_t>(rest, std::numeric_limits<int>::max()));
  }
  if (parts.size() > 3) {
    const auto floor = parse_number<double>(parts[3]);
    if (!floor || !(*floor >= 0) || *floor > r.lr)
      throw refuse(
          fmt::format("MIN_LR is '{}', but must lie between 0 and the learning rate {}", parts[3], r.lr));
    r.min_lr = *floor;
  }
}

}  // namespace rankc::runtime
