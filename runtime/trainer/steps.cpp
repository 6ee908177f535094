// SPDX-License-Identifier: Apache-2.0
#include "steps.hpp"

#include <rankc/launch/error_file.hpp>
#include <rankc/launch/say_error.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/main.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <string>

namespace rankc::runtime {

step_input next_input(const run_state& state) {
  const recipe& r = state.train;
  return {.lr = learning_rate(r, state.step + 1),
          .weight_decay = r.weight_decay,
          .clip = r.clip,
          .beta1 = r.beta1,
          .beta2 = r.beta2,
          .eps = r.eps,
          .step = state.step + 1,
          .momentum = r.momentum,
          .nesterov = r.nesterov,
          .rounding_seed = r.rounding_seed,
          .skipped = state.skipped};
}

std::optional<watchdog> watch_steps(engine& e, const options& o) {
  if (o.where.others != nullptr) return std::nullopt;
  const environment variables = [](const char* name) -> const char* { return std::getenv(name); };
  return std::optional<watchdog>(std::in_place, e, read_limits(variables),
                                 [&e, variables](const std::string& text) {
                                   say_error("{}: {}\n", e.about().name, text);
                                   write_error_file(variables, text, false);
                                   end_process(70);
                                 });
}

}  // namespace rankc::runtime
