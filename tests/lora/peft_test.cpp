// SPDX-License-Identifier: Apache-2.0
// Adapters exported as a PEFT folder: added to the initial weights of the run, they give the merged model.
#include "peft_folder.hpp"

#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/export.hpp>

#include "../exit_with.hpp"
#include "../runtime/trainer/scratch.hpp"
#include "command.hpp"
#include "weights.hpp"

namespace peft_test {

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;
namespace fs = std::filesystem;

namespace {

const export_options as_peft{.format = export_format::hugging_face},
    merged_model{.merge = true, .format = export_format::hugging_face};

fs::path save(run& r, const std::string& folder) {
  const run_state state{
      .step = r.steps, .init = "hash:1", .data = "arith:1234", .train = r.about.train, .read = {}};
  return save_checkpoint(*r.engine, state, folder);
}

}  // namespace

TEST_CASE("base weights with PEFT's adapter are the merged weights, every element") {
  using found = std::pair<std::size_t, std::size_t>;
  struct row {
    const char *job, *layout;
    found modules;  // modules with an adapter, and modules saved whole
    std::vector<std::string> targets, saved;
    nlohmann::json ranks, alphas;
  };
  // In a GPT-2, wq and wv are adapted with rank 2 each and are parts of one module.
  const std::vector<row> rows{{"gpt2",
                               "tp2_pp2",
                               {16, 0},
                               {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"},
                               {},
                               {{"attn.c_proj", 2}, {"mlp.c_fc", 2}, {"mlp.c_proj", 2}},
                               {{"attn.c_proj", 5}, {"mlp.c_fc", 5}, {"mlp.c_proj", 5}}},
                              {"llama",
                               "sp",
                               {9, 5},
                               {"lm_head", "mlp.down_proj", "self_attn.q_proj"},
                               {"model.norm", "post_attention_layernorm"},
                               nlohmann::json::object(),
                               nlohmann::json::object()}};
  for (const row& r : rows) {
    CAPTURE(r.job);
    const scratch files;
    run dense(*find_program(std::string(r.job) + "_dense", "one"), "arith", 1e-3),
        adapted(*find_program(r.job, r.layout), "arith", 1e-2);
    export_weights(dense.about, save(dense, files.path("dense")), files.path("base"), as_peft);
    for (int n = 0; n < 4; ++n) adapted.step();
    const fs::path from = save(adapted, files.path("saved"));
    export_weights(adapted.about, from, files.path("merged"), merged_model);
    std::vector<std::string> notes;
    export_weights(adapted.about, from, files.path("adapter"), as_peft, &notes);
    CHECK(notes.back().starts_with("RC6527: "));
    CHECK_FALSE(fs::exists(files.path("adapter/model.safetensors")));
    peft_folder peft(files.path("adapter"));
    CHECK(peft.check(tensors_in(files.path("base/model.safetensors")),
                     tensors_in(files.path("merged/model.safetensors"))) == r.modules);
    CHECK(peft.config["target_modules"] == r.targets);
    CHECK(peft.config["modules_to_save"] == (r.saved.empty() ? nlohmann::json() : nlohmann::json(r.saved)));
    CHECK(peft.config["rank_pattern"] == r.ranks);
    CHECK(peft.config["alpha_pattern"] == r.alphas);
    CHECK(peft.config["peft_type"] == "LORA");
    CHECK(peft.config["task_type"] == "CAUSAL_LM");
    CHECK(peft.config["base_model_name_or_path"].is_null());
  }
}

TEST_CASE("an adapter replaces an export of a whole model in the same folder, and the other way round") {
  const scratch files;
  run r(*find_program("llama", "one"), "arith", 1e-2);
  const fs::path from = save(r, files.path("saved")), out = files.path("out");
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(out)) all.insert(entry.path().filename().string());
    return all;
  };
  const std::set<std::string> of_model{"config.json", "model.safetensors"},
      of_adapter{"adapter_config.json", "adapter_model.safetensors"};
  for (int round = 0; round < 2; ++round) {
    export_weights(r.about, from, out, as_peft);
    CHECK(names() == of_adapter);
    export_weights(r.about, from, out, merged_model);
    CHECK(names() == of_model);
  }
  export_weights(r.about, from, out, as_peft);
  files.write("out/adapter_config.json", contents(out / "adapter_config.json") + " ");
  CHECK(exit_of([&] { export_weights(r.about, from, out, as_peft); }) ==
        exit_with{2, {6525, {out.string(), "adapter_config.json"}}});
}

TEST_CASE("what PEFT has no form for is refused with the parameter's name") {
  const scratch files;
  for (const auto& [job, parameter_name, why] :
       {std::tuple("gpt2", "wte", "it is the head's weight, too"),
        {"llama", "layers.0.wq", "its module model.layers.0.self_attn.q_proj has an adapter"}}) {
    run r(*find_program(job, "one"), "arith", 1e-2);
    const fs::path from = save(r, files.path(job));
    description about = r.about;
    layout l = about.layouts[0];
    std::vector<parameter> parameters(l.parameters.begin(), l.parameters.end());
    for (parameter& p : parameters)
      if (p.name == std::string(parameter_name)) p.element = 0;  // element 0 is in the trained range
    l.parameters = parameters;
    about.layouts = std::span(&l, 1);
    CHECK(exit_of([&] { export_weights(about, from, files.path("out"), as_peft); }) ==
          exit_with{1, {6524, {about.name, parameter_name, why}}});
  }
  run gated(*find_program("gated", "one"), "arith", 1e-2);
  CHECK(exit_of([&] {
          export_weights(gated.about, save(gated, files.path("gated")), files.path("out"), as_peft);
        }).message.id == 6535);
}

}  // namespace peft_test
