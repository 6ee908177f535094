// SPDX-License-Identifier: Apache-2.0
// Models from the folders of oracles/families compute the same as transformers in float64.
#include <rankc/trainer/export.hpp>

#include "folders.hpp"

namespace families_test {

using namespace hugging_face;
using rankc::runtime::region;

namespace {

fs::path folder_of_family(const std::string& model) {
  return fs::path(RANKC_TEST_ORACLES "/families") / model;
}

/// Rows of tokens as a batch; each row has one token more than a sequence.
rankc::runtime::batch batch_of(const json& rows) {
  rankc::runtime::batch b;
  for (const std::vector<std::int32_t> row : rows) {
    b.tokens.insert(b.tokens.end(), row.begin(), row.end() - 1);
    b.targets.insert(b.targets.end(), row.begin() + 1, row.end());
  }
  return b;
}

/// The plan's name for a tensor of a family.
std::string name_here(const std::string& family, const std::string& theirs) {
  if (theirs == "model.norm.weight") return "norm";
  const std::string layer = "layers." + theirs.substr(std::string("model.layers.").size(), 1) + ".";
  const char* const second_norm = family == "olmo2" ? "post_norm1" : "norm2";
  for (const auto& [end, ours] : {std::pair("self_attn.q_proj.bias", "wq.bias"),
                                  {"self_attn.k_proj.bias", "wk.bias"},
                                  {"self_attn.v_proj.bias", "wv.bias"},
                                  {"self_attn.k_proj.weight", "wk"},
                                  {"self_attn.v_proj.weight", "wv"},
                                  {"self_attn.q_norm.weight", "q_norm"},
                                  {"self_attn.k_norm.weight", "k_norm"},
                                  {"input_layernorm.weight", "norm1"},
                                  {"post_attention_layernorm.weight", second_norm},
                                  {"post_feedforward_layernorm.weight", "post_norm2"}})
    if (theirs.ends_with(end)) return layer + ours;
  FAIL(theirs << " has no name here");
  return "";
}

double furthest(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) most = std::max(most, std::abs(found[i] - expected[i]));
  return most;
}

rankc::runtime::step_output step_on(run& r, const json& rows) {
  rankc::runtime::set_batch(*r.engine, batch_of(rows));
  const auto& t = r.about.train;
  return r.engine->step({1e-2, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++r.steps, t.momentum,
                         t.nesterov, t.rounding_seed});
}

/// Compares logits, losses, gradients and ten steps of a family's programs with those of transformers.
void check_family(const std::string& family, std::initializer_list<const char*> layouts) {
  const fs::path folder = folder_of_family(family);
  const json expected = read_json(folder / "expected.json"), batches = read_json(folder / "batches.json");
  double logit = 0, loss = 0, gradient = 0, trained = 0;
  for (const char* layout : layouts) {
    CAPTURE(layout);
    run r(program_of(family, layout));
    rankc::runtime::load_weights(*r.engine, folder);
    rankc::runtime::set_batch(*r.engine, batch_of(batches["eval"]));
    loss = std::max(loss, std::abs(r.engine->evaluate() - expected["eval"]["loss"].get<double>()));
    for (std::size_t token = 0; token < 32 && r.about.world() == 1; ++token) {
      std::vector<double> found(static_cast<std::size_t>(r.about.vocab_used));
      r.engine->logits(0, token, found.data());
      logit = std::max(logit, furthest(found, expected["eval"]["logits_seq0"][token]));
    }
    const auto out = step_on(r, batches["eval"]);
    gradient = std::max(gradient, std::abs(out.grad_norm - expected["eval"]["grad_norm"].get<double>()));
    const tensors gradients = r.tensors(region::gradients);
    for (const auto& [name, values] : expected["eval"]["grads"].items()) {
      CAPTURE(name);
      gradient = std::max(gradient, furthest(gradients.at(name_here(family, name)), flat(values)));
    }
    run again(program_of(family, layout));
    rankc::runtime::load_weights(*again.engine, folder);
    for (std::size_t n = 0; n < 10; ++n) {
      const auto step = step_on(again, batches["train"][n]);
      trained = std::max({trained, std::abs(step.loss - expected["train"][n]["loss"].get<double>()),
                          std::abs(step.grad_norm - expected["train"][n]["grad_norm"].get<double>())});
    }
    rankc::runtime::set_batch(*again.engine, batch_of(batches["eval"]));
    trained = std::max(trained, std::abs(again.engine->evaluate() - expected["after"]["loss"].get<double>()));
  }
  CHECK(logit <= 1e-10);
  CHECK(loss <= 1e-10);
  CHECK(gradient <= 1e-9);
  CHECK(trained <= 1e-9);
  MESSAGE("largest difference of a logit " << logit << ", of a loss " << loss << ", of a gradient "
                                           << gradient << ", in training " << trained);
}

}  // namespace

TEST_CASE("a Qwen2 has the logits, losses and gradients of transformers, and trains as it does") {
  check_family("qwen2", {"one", "tp2_pp2", "dp2_tp2"});
}

TEST_CASE("an OLMo 2 has the logits, losses and gradients of transformers, and trains as it does") {
  check_family("olmo2", {"one", "pp2", "dp2_cp2", "shards2"});
}

TEST_CASE("an OLMo 2 is exported with the tensors and values that it was imported with") {
  const scratch files;
  const fs::path folder = folder_of_family("olmo2"), out = files.path("exported");
  run r(program_of("olmo2", "dp2_cp2"));
  rankc::runtime::load_weights(*r.engine, folder);
  rankc::runtime::export_weights(r.about, save(r, files, folder), out,
                                 {.format = rankc::runtime::export_format::hugging_face});
  const tensors given = tensors_of(folder);
  CHECK(given.at("model.layers.0.self_attn.q_norm.weight").size() == 32);
  CHECK(given.at("model.layers.0.self_attn.k_norm.weight").size() == 16);
  CHECK(tensors_of(out) == given);
  json before = read_json(folder / "config.json"), after = read_json(out / "config.json");
  for (const char* key : {"model_type", "architectures", "rms_norm_eps", "rope_parameters", "vocab_size"})
    CHECK(after[key] == before[key]);
}

}  // namespace families_test
