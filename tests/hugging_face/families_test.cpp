// SPDX-License-Identifier: Apache-2.0
// Models from the folders of oracles/families compute the same as transformers in float64.
#include "families.hpp"

namespace families_test {

using namespace hugging_face;

namespace {

/// Rows of tokens as a batch; each row has one token more than a sequence.
rankc::runtime::batch batch_of(const json& rows) {
  rankc::runtime::batch b;
  for (const std::vector<std::int32_t> row : rows) {
    b.tokens.insert(b.tokens.end(), row.begin(), row.end() - 1);
    b.targets.insert(b.targets.end(), row.begin() + 1, row.end());
  }
  return b;
}

double furthest(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) most = std::max(most, std::abs(found[i] - expected[i]));
  return most;
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

/// The rows of q and k in the order of a GLM-4's files: of a head of 8 elements here, 0 and 4 turn together,
/// then 1 and 5; there 0 and 1, then 2 and 3. The others do not turn.
std::vector<double> glm4_rows(const std::string& name, const std::vector<double>& here) {
  const bool is_bias = name.ends_with("_proj.bias"), is_weight = name.ends_with("_proj.weight");
  if (!(is_bias || is_weight) || (name.find(".q_proj") == name.npos && name.find(".k_proj") == name.npos))
    return here;
  constexpr std::size_t order[]{0, 4, 1, 5, 2, 3, 6, 7};
  const std::size_t columns = is_bias ? 1 : 32;
  std::vector<double> there;
  for (std::size_t row = 0; row * columns < here.size(); ++row) {
    const auto begin = static_cast<std::ptrdiff_t>((row / 8 * 8 + order[row % 8]) * columns);
    there.insert(there.end(), here.begin() + begin,
                 here.begin() + begin + static_cast<std::ptrdiff_t>(columns));
  }
  return there;
}

rankc::runtime::step_output step_on(run& r, const json& rows) {
  rankc::runtime::set_batch(*r.engine, batch_of(rows));
  const auto& t = r.about.train;
  return r.engine->step({1e-2, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++r.steps, t.momentum,
                         t.nesterov, t.rounding_seed});
}

/// The largest differences from transformers.
struct differences {
  double logit = 0, loss = 0, gradient = 0, trained = 0;
};
void note(double& most, double found, const json& expected) {
  most = std::max(most, std::abs(found - expected.get<double>()));
}

/// Compares the loss of the evaluation batch and, on one rank, the logits of its first row.
void compare_loss(run& r, const json& rows, const json& expected, differences& d) {
  rankc::runtime::set_batch(*r.engine, batch_of(rows));
  note(d.loss, r.engine->evaluate(), expected["loss"]);
  for (std::size_t token = 0; token < 32 && r.about.world() == 1; ++token) {
    std::vector<double> found(static_cast<std::size_t>(r.about.vocab_used));
    r.engine->logits(0, token, found.data());
    d.logit = std::max(d.logit, furthest(found, expected["logits_seq0"][token]));
  }
}

/// Compares the norm of every gradient, and all elements of the gradients that the oracle has whole.
void compare_gradients(run& r, const std::string& family, const json& expected, differences& d) {
  const tensors all = r.tensors(region::gradients);
  std::size_t compared = 0;
  for (const auto& [name, norm] : expected["grad_norms"].items()) {
    CAPTURE(name);
    std::vector<double> found;
    for (const std::string& ours : names_here(family, name)) {
      found = joined(found, all.at(ours));
      ++compared;
    }
    if (family == "glm4") found = glm4_rows(name, found);
    note(d.gradient, norm_of(found), norm);
    if (expected["grads"].contains(name))
      d.gradient = std::max(d.gradient, furthest(found, flat(expected["grads"][name])));
  }
  CHECK(compared == all.size());
}

/// Compares the loss and the norm of ten steps, and the loss after them.
void compare_training(run& r, const json& batches, const json& expected, differences& d) {
  for (std::size_t n = 0; n < 10; ++n) {
    const auto step = step_on(r, batches["train"][n]);
    note(d.trained, step.loss, expected["train"][n]["loss"]);
    note(d.trained, step.grad_norm, expected["train"][n]["grad_norm"]);
  }
  rankc::runtime::set_batch(*r.engine, batch_of(batches["eval"]));
  note(d.trained, r.engine->evaluate(), expected["after"]["loss"]);
}

/// Compares a family's programs with transformers. Every layout of the family is one of `layouts`.
void check_family(const std::string& family, const std::vector<std::string>& layouts) {
  const fs::path folder = folder_of_family(family);
  const json expected = read_json(folder / "expected.json"), batches = read_json(folder / "batches.json");
  differences d;
  for (const std::string& layout : layouts) {
    CAPTURE(layout);
    run r(program_of(family, layout)), again(program_of(family, layout));
    for (run* each : {&r, &again}) rankc::runtime::load_weights(*each->engine, folder);
    compare_loss(r, batches["eval"], expected["eval"], d);
    note(d.gradient, step_on(r, batches["eval"]).grad_norm, expected["eval"]["grad_norm"]);
    compare_gradients(r, family, expected["eval"], d);
    compare_training(again, batches, expected, d);
  }
  CHECK(d.logit <= 1e-10);
  CHECK(d.loss <= 1e-10);
  CHECK(d.gradient <= 1e-9);
  CHECK(d.trained <= 1e-9);
  MESSAGE(family << ": largest difference of a logit " << d.logit << ", of a loss " << d.loss
                 << ", of a gradient " << d.gradient << ", in training " << d.trained);
}

}  // namespace

TEST_CASE("families have the logits, losses and gradients of transformers, and train as there") {
  const std::vector<std::string> layouts{"one", "dp2_cp2", "shards2", "tp2_pp2", "dp2_tp2"};
  for (const char* family : {"mistral", "qwen2", "smollm3", "phi3", "glm4", "gemma3", "llama_yarn"})
    check_family(family, layouts);
  check_family("olmo2", {"one", "dp2_cp2", "shards2", "pp2", "cp2_pp2"});
}

}  // namespace families_test
