// SPDX-License-Identifier: Apache-2.0
// Models from Hugging Face's files compute the same as transformers in float64.
#include <rankc/trainer/router_metrics.hpp>

#include <numeric>

#include "../../runtime/trainer/mean_loss.hpp"
#include "models.hpp"

namespace oracle_test {

using namespace hugging_face;
using rankc::runtime::region;

namespace {

std::vector<const registered*> with_oracle() {
  std::vector<const registered*> some;
  for (const registered& p : host_registry)
    if (fs::exists(folder_of(p.job)) && p.about->lora_scale == 0) some.push_back(&p);
  return some;
}

/// Whether the gradients include a balance loss over all layers.
bool is_balanced(const json& expected) { return expected["eval"].contains("aux_loss"); }

/// The evaluation's expected loss and gradient norm. `whole`: of the whole batch at once; the balance losses
/// of four microbatches differ from that.
struct wanted_of_batch {
  double loss, grad_norm;
  bool whole;
};
wanted_of_batch wanted(const registered& program, const json& expected) {
  const json& eval = expected["eval"];
  if (!is_balanced(expected)) return {eval["loss"], eval["grad_norm"], true};
  const bool whole = program.about->microbatches == 1;
  const json& of = whole ? eval : eval["microbatches_of_1"];
  return {of["total_loss"], of["grad_norm"], whole};
}

/// Our gradient for one of the oracle's tensors.
std::vector<double> gradient_of(const tensors& all, const std::string& theirs) {
  const auto layer = [&](const char* before) {
    const auto at = theirs.find(before) + std::string(before).size();
    return "layers." + theirs.substr(at, theirs.find('.', at) - at) + ".";
  };
  if (theirs.ends_with("c_attn.bias")) {
    std::vector<double> joined;
    for (const char* name : {"wq.bias", "wk.bias", "wv.bias"}) {
      const std::vector<double>& part = all.at(layer("h.") + name);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    return joined;
  }
  if (theirs.ends_with("ln_2.bias")) return all.at(layer("h.") + "norm2.bias");
  if (theirs.ends_with("input_layernorm.weight")) return all.at(layer("layers.") + "norm1");
  if (theirs.ends_with("post_attention_layernorm.weight")) return all.at(layer("layers.") + "norm2");
  for (const char* of_heads : {"q_norm", "k_norm"})
    if (theirs.ends_with(std::string("self_attn.") + of_heads + ".weight"))
      return all.at(layer("layers.") + of_heads);
  if (theirs.ends_with("gate.weight")) return all.at(layer("layers.") + "router");
  REQUIRE((theirs.ends_with("ln_f.weight") || theirs == "model.norm.weight"));
  return all.at("norm");
}

/// Check how often each expert was chosen in the whole batch, whatever the number of microbatches.
void check_load(rankc::runtime::engine& e, const json& eval) {
  const auto routers = rankc::runtime::read_routers(e);
  if (!eval.contains("expert_counts")) {
    CHECK(!routers.has_value());
    return;
  }
  REQUIRE(routers.has_value());
  REQUIRE(routers->load.size() == eval["expert_counts"].size());
  for (std::size_t layer = 0; layer < routers->load.size(); ++layer) {
    const std::vector<double> counts = eval["expert_counts"][layer];
    const double mean =
        std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
    CHECK(std::abs(routers->load[layer] - *std::max_element(counts.begin(), counts.end()) / mean) <= 1e-12);
  }
}

}  // namespace

TEST_CASE("logits are those of transformers") {
  double worst = 0;
  int programs = 0;
  for (const registered* program : with_oracle()) {
    if (program->about->world() > 1) continue;
    CAPTURE(program->job);
    const json expected = read_json(folder_of(program->job) / "expected.json");
    run r = start(*program, folder_of(program->job), "rand:" + std::to_string(expected["seed"].get<int>()));
    r.load();
    r.engine->evaluate();
    CHECK(expected["eval"]["logits"].size() == 3);
    for (const auto& [token, values] : expected["eval"]["logits"].items()) {
      const std::vector<double> wanted = values;
      REQUIRE(wanted.size() == static_cast<std::size_t>(r.about.vocab_used));
      std::vector<double> found(wanted.size());
      r.engine->logits(0, std::stoul(token), found.data());
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(std::abs(found[i] - wanted[i]) <= 1e-10);
        worst = std::max(worst, std::abs(found[i] - wanted[i]));
      }
    }
    ++programs;
  }
  CHECK(programs == RANKC_HUGGING_FACE_MODELS);
  MESSAGE("largest difference of a logit " << worst);
}

TEST_CASE("losses and gradients are those of transformers") {
  double worst = 0, worst_loss = 0;
  int programs = 0;
  for (const registered* program : with_oracle()) {
    CAPTURE(program->job);
    CAPTURE(program->layout);
    if (program->about->global_batch() != 4) continue;
    const json expected = read_json(folder_of(program->job) / "expected.json");
    run r = start(*program, folder_of(program->job), "rand:" + std::to_string(expected["seed"].get<int>()));
    r.load();
    const double loss = r.engine->evaluate();
    const wanted_of_batch of = wanted(*program, expected);
    CHECK(std::abs(loss - of.loss) <= 1e-10);
    worst_loss = std::max(worst_loss, std::abs(loss - of.loss));
    ++programs;
    check_load(*r.engine, expected["eval"]);
    const auto out = r.step();
    CHECK(std::abs(out.grad_norm - of.grad_norm) <= 1e-9);
    if (!of.whole) continue;
    const tensors gradients = r.tensors(region::gradients);
    CHECK(expected["eval"]["grads"].size() == 3);
    for (const auto& [name, values] : expected["eval"]["grads"].items()) {
      CAPTURE(name);
      const std::vector<double> found = gradient_of(gradients, name), given = flat(values);
      REQUIRE(found.size() == given.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(std::abs(found[i] - given[i]) <= 1e-12);
        worst = std::max(worst, std::abs(found[i] - given[i]));
      }
    }
  }
  // Four models have one layout each, and two have a fourth.
  CHECK(programs == (RANKC_HUGGING_FACE_MODELS - 4) * 3 + 4 + 2);
  MESSAGE(programs << " programs, largest difference of a loss " << worst_loss << ", of a gradient's element "
                   << worst);
}

TEST_CASE("ten steps of training are those of transformers") {
  double worst = 0;
  for (const registered* program : with_oracle()) {
    CAPTURE(program->job);
    CAPTURE(program->layout);
    const json expected = read_json(folder_of(program->job) / "expected.json");
    if (program->about->global_batch() != 4 || !wanted(*program, expected).whole) continue;
    const bool balanced = is_balanced(expected);
    const std::string seed = std::to_string(expected["seed"].get<int>());
    run r = start(*program, folder_of(program->job), "arith:" + seed);
    REQUIRE(expected["train"].size() == 10);
    for (const json& step : expected["train"]) {
      const auto out = r.step();
      const double loss = step[balanced ? "total_loss" : "loss"];
      const auto routers = rankc::runtime::read_routers(*r.engine);
      REQUIRE(routers.has_value() == balanced);
      if (balanced) CHECK(std::abs(routers->balance - step["aux_loss"].get<double>()) <= 1e-9);
      for (const auto& [found, wanted] :
           {std::pair(out.loss, loss), {out.grad_norm, step["grad_norm"].get<double>()}}) {
        CHECK(std::abs(found - wanted) <= 1e-9);
        worst = std::max(worst, std::abs(found - wanted));
      }
    }
    r.data = rankc::runtime::dataset(rankc::runtime::parse_data_spec("rand:" + seed), r.about.vocab_used,
                                     r.about.seq);
    r.steps = 0;
    r.load();
    const auto found = rankc::runtime::evaluate_apart(*r.engine);
    const double wanted = expected["after"]["eval_loss"];
    CHECK(std::abs(found.labels - wanted) <= 1e-9);
    if (balanced)
      CHECK(std::abs(found.routers - (expected["after"]["eval_total_loss"].get<double>() - wanted)) <= 1e-9);
  }
  MESSAGE("largest difference of a loss or norm " << worst);
}

}  // namespace oracle_test
