// SPDX-License-Identifier: Apache-2.0
// run.json of a checkpoint: a file that is read can be written, and is read again as the same.
#include <rankc/trainer/run_state.hpp>

#include "accepted_or_refused.hpp"
#include "checked_json.hpp"
#include "fuzzed_plan.hpp"

using namespace rankc;

namespace {

const runtime::description about = fuzz::fuzzed_plan();

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::file_with(fuzz::with_checksum(fuzz::text_of(data, size)), "run.json");
  fuzz::accept_or_refuse([&] {
    const std::string text = runtime::run_state_text(runtime::read_run_state(about, file), about);
    const auto again = fuzz::file_with(text, "again.json");
    if (runtime::run_state_text(runtime::read_run_state(about, again), about) != text) __builtin_trap();
  });
  return 0;
}
