// SPDX-License-Identifier: Apache-2.0
// Families are exported with the tensors and values that they were imported with, and a folder that differs
// in one value is refused by the name of the value.
#include <rankc/trainer/export.hpp>

#include "../exit_with.hpp"
#include "families.hpp"

namespace family_files_test {

using namespace hugging_face;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

json exported_config(run& r, const scratch& files, const std::string& init) {
  const fs::path out = files.path("exported");
  fs::remove_all(out);
  rankc::runtime::export_weights(r.about, save(r, files, init), out,
                                 {.format = rankc::runtime::export_format::hugging_face});
  return read_json(out / "config.json");
}

/// A value of config.json that the plan does not have, and what the refusal says.
struct wrong_value {
  json change;
  std::string_view said;
};

/// A change of the values of rotary positions.
json rope(const json& values) { return {{"rope_parameters", values}}; }

/// Checks that a folder with each of the changes is refused, and without one accepted.
void check_refused(const std::string& family, const std::vector<wrong_value>& wrong) {
  const fs::path folder = folder_of_family(family);
  const scratch files;
  fs::create_directories(files.path("changed"));
  fs::copy(folder / "model.safetensors", files.path("changed/model.safetensors"));
  run r(program_of(family, "one"));
  const auto load = [&](const json& change) {
    json config = read_json(folder / "config.json");
    config.merge_patch(change);
    files.write("changed/config.json", config.dump());
    return exit_of([&] { rankc::runtime::load_weights(*r.engine, files.path("changed")); });
  };
  CHECK(load(json::object()) == exit_with{});
  for (const wrong_value& w : wrong) {
    const exit_with found = load(w.change);
    CHECK(found.code == 1);
    REQUIRE(found.message.id == 6538);
    CHECK(found.message.arguments.at(2) == w.said);
  }
}

}  // namespace

TEST_CASE("an export has the tensors and values of the folder that the run began with") {
  for (const auto& [family, layout] : {std::pair{"mistral", "dp2_tp2"},
                                       {"qwen2", "tp2_pp2"},
                                       {"olmo2", "dp2_cp2"},
                                       {"smollm3", "tp2_pp2"},
                                       {"phi3", "shards2"},
                                       {"glm4", "dp2_tp2"},
                                       {"gemma3", "dp2_cp2"},
                                       {"llama_yarn", "one"}}) {
    CAPTURE(family);
    const scratch files;
    const fs::path folder = folder_of_family(family);
    run r(program_of(family, layout));
    rankc::runtime::load_weights(*r.engine, folder);
    json before = read_json(folder / "config.json"), after = exported_config(r, files, folder);
    CHECK((tensors_of(files.path("exported")) == tensors_of(folder)));
    for (json* config : {&before, &after})
      for (const char* key : {"dtype", "torch_dtype", "rankc_checksum"}) config->erase(key);
    CHECK(after == before);
    // An export without a folder has the plan's values, and its own plan reads it.
    CHECK(exported_config(r, files, "hash:1")["model_type"] == before["model_type"]);
    CHECK(exit_of([&] { rankc::runtime::load_weights(*r.engine, files.path("exported")); }) == exit_with{});
  }
}

TEST_CASE("a folder that differs in one value is refused by its name") {
  check_refused("mistral", {{{{"sliding_window", 9}}, "sliding_window is 9, expected 8"},
                            {{{"sliding_window", nullptr}}, "sliding_window is 4096, expected 8"},
                            {{{"head_dim", 16}}, "head_dim is 16, expected 8"},
                            {{{"rms_norm_eps", 1e-5}}, "rms_norm_eps is 1e-05, expected 1e-06"},
                            {{{"hidden_act", "gelu"}}, "hidden_act is \"gelu\", expected \"silu\""}});
  check_refused("smollm3",
                {{{{"no_rope_layers", {1, 0, 1, 0}}}, "no_rope_layers is [1,0,1,0], expected [1,1,1,0]"},
                 {{{"no_rope_layers", nullptr}}, "no_rope_layers is null, expected [1,1,1,0]"},
                 {{{"use_sliding_window", true}}, "use_sliding_window is true, expected false"},
                 {{{"mlp_bias", true}}, "mlp_bias is true, expected false"}});
  check_refused("phi3",
                {{{{"sliding_window", 2047}}, "sliding_window is 2047, expected null"},
                 {rope({{"partial_rotary_factor", 0.75}}), "partial_rotary_factor is 0.75, expected 1.0"},
                 {rope({{"rope_type", "longrope"}}), "rope_type is \"longrope\", expected \"default\""}});
  check_refused("glm4", {{{{"attention_bias", false}}, "attention_bias is false, expected true"},
                         {{{"head_dim", 16}}, "head_dim is 16, expected 8"},
                         {{{"partial_rotary_factor", 1.0}}, "partial_rotary_factor is 1.0, expected 0.5"}});
  const auto sliding = [](const json& values) { return rope({{"sliding_attention", values}}); };
  const auto full = [](const json& values) { return rope({{"full_attention", values}}); };
  check_refused(
      "gemma3",
      {{{{"query_pre_attn_scalar", 12}}, "query_pre_attn_scalar is 12, expected 16"},
       {{{"final_logit_softcapping", 30.0}}, "final_logit_softcapping is 30.0, expected null"},
       {{{"hidden_activation", "silu"}}, "hidden_activation is \"silu\", expected \"gelu_pytorch_tanh\""},
       {sliding({{"rope_theta", 20000.0}}), "sliding_attention.rope_theta is 20000.0, expected 10000.0"},
       {sliding({{"rope_type", "linear"}}),
        "sliding_attention.rope_type is \"linear\", expected \"default\""},
       {full({{"rope_theta", 10000.0}}), "full_attention.rope_theta is 10000.0, expected 1000000.0"},
       {{{"layer_types", {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}}},
        "layer_types is [\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"], "
        "expected [\"sliding_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]"}});
  check_refused("llama_yarn", {{rope({{"factor", 8.0}}), "factor is 8.0, expected 4.0"},
                               {rope({{"beta_fast", 16.0}}), "beta_fast is 16.0, expected 32.0"},
                               {rope({{"beta_slow", 2.0}}), "beta_slow is 2.0, expected 1.0"},
                               {rope({{"attention_factor", 1.2}}), "attention_factor is 1.2, expected null"},
                               {rope({{"truncate", false}}), "truncate is false, expected true"},
                               {rope({{"mscale", 1.0}}), "mscale is 1.0, expected null"},
                               {rope({{"original_max_position_embeddings", 32}}),
                                "original_max_position_embeddings is 32, expected 16"}});
}

TEST_CASE("null for a window is none, and a missing window is that of the family") {
  const scratch files;
  run r(program_of("mistral", "one"));
  json config = read_json(folder_of_family("mistral") / "config.json");
  config["sliding_window"] = nullptr;
  files.write("config.json", config.dump());
  const exit_with found = exit_of([&] { rankc::runtime::load_weights(*r.engine, files.path("")); });
  REQUIRE(found.message.id == 6538);
  CHECK(found.message.arguments.at(2) == "sliding_window is null, expected 8");
}

}  // namespace family_files_test
