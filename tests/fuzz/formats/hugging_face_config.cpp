// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face folder, compared with a plan of each family.
#include "hugging_face_config.hpp"

#include "accepted_or_refused.hpp"
#include "fuzzed_plan.hpp"

#include <emit/describe_files.hpp>
#include <rankc/rankc.hpp>

using namespace rankc;

namespace {

runtime::description plan_of_family() {
  runtime::description d = fuzz::fuzzed_plan();
  d.vocab = d.vocab_used = 16;
  return d;
}

/// A model as the runtime reads it from a program's description.
runtime::hugging_face_model read_back(const hugging_face_format& files) {
  const std::string text = nlohmann::json{{"hugging_face", codegen::describe_files(files)}}.dump();
  runtime::description d = plan_of_family();
  d.json = text.c_str();
  return runtime::hugging_face_model_of(d);
}

const runtime::hugging_face_model families[]{
    read_back(models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 128, .vocab = 16}.hugging_face()),
    read_back(models::llama{.layers = 3,
                            .hidden = 32,
                            .heads = 4,
                            .kv_heads = 2,
                            .ffn = 80,
                            .vocab = 16,
                            .rope_scaling = {.by = rope_scaling::llama3}}
                  .hugging_face()),
    read_back(models::qwen2{.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 48, .vocab = 16}
                  .hugging_face()),
    read_back(models::qwen3{
        .layers = 2, .hidden = 40, .heads = 4, .kv_heads = 2, .head_dim = 16, .ffn = 72, .vocab = 16}
                  .hugging_face()),
    read_back(models::qwen3_moe{.layers = 3,
                                .hidden = 32,
                                .heads = 4,
                                .kv_heads = 1,
                                .head_dim = 8,
                                .experts = 8,
                                .top_k = 2,
                                .expert_ffn = 12,
                                .vocab = 16,
                                .ffn = 48,
                                .mlp_only_layers = {0}}
                  .hugging_face()),
    read_back(models::mixtral{.layers = 2,
                              .hidden = 32,
                              .heads = 4,
                              .kv_heads = 2,
                              .experts = 8,
                              .top_k = 2,
                              .expert_ffn = 16,
                              .vocab = 16}
                  .hugging_face())};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const runtime::description about = plan_of_family();
  const auto file = fuzz::file_with(fuzz::text_of(data, size), "config.json");
  for (const runtime::hugging_face_model& family : families) {
    fuzz::accept_or_refuse([&] { runtime::check_config(about, family, file); });
    fuzz::accept_or_refuse([&] { runtime::notes_on_config(about, family, file); });
  }
  return 0;
}
