// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face folder, compared with a plan of each family.
#include "hugging_face_config.hpp"

#include "accepted_or_refused.hpp"
#include "fuzzed_plan.hpp"

using namespace rankc;

namespace {

const runtime::description about = [] {
  runtime::description d = fuzz::fuzzed_plan();
  d.vocab = d.vocab_used = 16;
  return d;
}();

/// Sizes for every key that a family compares.
std::string sizes_of(const runtime::model_family& family) {
  std::string text;
  for (const runtime::config_rule& rule : family.config)
    if (!rule.ours.empty()) text += (text.empty() ? "{\"" : ",\"") + std::string(rule.ours) + "\":2";
  return text + "}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::file_with(fuzz::text_of(data, size), "config.json");
  for (const char* name : {"gpt2", "llama", "qwen3", "qwen3_moe", "mixtral"}) {
    const runtime::model_family* family = runtime::find_family(name);
    const runtime::described_model model{family, sizes_of(*family)};
    fuzz::accept_or_refuse([&] { runtime::check_config(about, model, file); });
    fuzz::accept_or_refuse([&] { runtime::notes_on_config(about, model, file); });
  }
  return 0;
}
