// SPDX-License-Identifier: Apache-2.0
// The texts of options and of launchers' variables with a grammar.
#include <rankc/launch/nodelist.hpp>
#include <rankc/trainer/data_spec.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/skip_batches.hpp>

#include "accepted_or_refused.hpp"

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  fuzz::accept_or_refuse([&] { runtime::parse_data_spec(text); });
  fuzz::accept_or_refuse([&] { runtime::parse_shuffle(text); });
  fuzz::accept_or_refuse([&] { runtime::parse_step_range(text); });
  fuzz::accept_or_refuse([&] {
    runtime::recipe train{};
    runtime::set_schedule(train, text, 100);
    runtime::learning_rate(train, 50);
  });
  fuzz::accept_or_refuse([&] { runtime::expand_hosts(text); });
  fuzz::accept_or_refuse([&] { runtime::expand_counts(text); });
  return 0;
}
