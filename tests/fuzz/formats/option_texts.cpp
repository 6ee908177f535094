// SPDX-License-Identifier: Apache-2.0
// The texts of options and of launchers' variables that have a grammar of their own.
#include <rankc/launch/nodelist.hpp>
#include <rankc/trainer/data_spec.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/skip_batches.hpp>

#include "accepted_or_refused.hpp"

#include <cctype>

using namespace rankc;

namespace {

/// Lists of a million nodes are in order, and take seconds under sanitizers.
bool has_long_number(const std::string& text) {
  int digits = 0;
  for (const unsigned char c : text) {
    digits = std::isdigit(c) ? digits + 1 : 0;
    if (digits > 4) return true;
  }
  return false;
}

}  // namespace

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
  if (has_long_number(text)) return 0;
  fuzz::accept_or_refuse([&] { runtime::expand_hosts(text); });
  fuzz::accept_or_refuse([&] { runtime::expand_counts(text); });
  return 0;
}
