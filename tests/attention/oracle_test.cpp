// SPDX-License-Identifier: Apache-2.0
// Mistral, whose attention has a window, computes what transformers computes in float64, alone and split.
#include <doctest/doctest.h>

#include <rankc/trainer/safetensors.hpp>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "run.hpp"

namespace attention_oracle_test {

namespace {

using nlohmann::json;
using rankc::runtime::region;

const std::string folder = RANKC_TEST_ORACLES "/families/mistral/";

json read_json(const std::string& file) {
  std::ifstream in(folder + file);
  REQUIRE(in);
  return json::parse(in);
}

/// Their name of one of our parameters.
std::string name_in_file(const std::string& ours) {
  const std::vector<std::pair<std::string, std::string>> whole{
      {"wte", "model.embed_tokens"}, {"norm", "model.norm"}, {"lm_head", "lm_head"}};
  const std::vector<std::pair<std::string, std::string>> of_layer{
      {"norm1", "input_layernorm"}, {"norm2", "post_attention_layernorm"},
      {"wq", "self_attn.q_proj"},   {"wk", "self_attn.k_proj"},
      {"wv", "self_attn.v_proj"},   {"wo", "self_attn.o_proj"},
      {"w1", "mlp.gate_proj"},      {"w3", "mlp.up_proj"},
      {"w2", "mlp.down_proj"}};
  for (const auto& [name, theirs] : whole)
    if (ours == name) return theirs + ".weight";
  const std::size_t dot = ours.rfind('.');
  for (const auto& [name, theirs] : of_layer)
    if (ours.substr(dot + 1) == name) return "model." + ours.substr(0, dot + 1) + theirs + ".weight";
  FAIL("no name in the file for " << ours);
  return "";
}

void load_weights(run& r) {
  const rankc::runtime::safetensors_reader file(folder + "model.safetensors");
  for (const auto& p : rankc::runtime::global_parameters(r.about))
    rankc::runtime::write(*r.engine, p, region::weights, [&](std::size_t first, std::span<double> out) {
      file.read(name_in_file(p.name), first, out.size(), out.data());
    });
}

/// Rows of 33 tokens: the first 32 are the input, and the last 32 the targets.
void set_batch(run& r, const json& rows) {
  const auto count = static_cast<std::size_t>(r.about.rows);
  std::size_t next = 0;
  for (int microbatch = 0; microbatch < r.about.microbatches; ++microbatch)
    for (int dp = 0; dp < r.about.dp; ++dp) {
      std::vector<std::int32_t> tokens, targets;
      for (std::size_t row = 0; row < count; ++row, ++next) {
        const std::vector<std::int32_t> all = rows.at(next);
        tokens.insert(tokens.end(), all.begin(), all.end() - 1);
        targets.insert(targets.end(), all.begin() + 1, all.end());
      }
      r.engine->set_batch(dp, microbatch, tokens.data(), targets.data());
    }
}

rankc::runtime::step_output step(run& r) {
  const auto& t = r.about.train;
  return r.engine->step({r.lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, ++r.steps, t.momentum,
                         t.nesterov, t.rounding_seed});
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("Mistral's logits, losses and gradients are those of transformers, alone and split") {
  const json expected = read_json("expected.json"), batches = read_json("batches.json");
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.job != "mistral") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2);
    load_weights(r);
    set_batch(r, batches["eval"]);
    CHECK(std::abs(r.engine->evaluate() - expected["eval"]["loss"].get<double>()) <= 1e-10);
    if (r.about.world() == 1)
      for (std::size_t token = 0; token < 32; ++token) {
        std::vector<double> logits(96);
        r.engine->logits(0, token, logits.data());
        for (std::size_t i = 0; i < logits.size(); ++i)
          CHECK(std::abs(logits[i] - expected["eval"]["logits_seq0"][token][i].get<double>()) <= 1e-10);
      }
    CHECK(std::abs(step(r).grad_norm - expected["eval"]["grad_norm"].get<double>()) <= 1e-9);
    for (const auto& [name, gradient] : r.tensors(region::gradients)) {
      CAPTURE(name);
      CHECK(std::abs(norm_of(gradient) - expected["eval"]["grad_norms"][name_in_file(name)].get<double>()) <=
            1e-10);
    }
    ++programs;
  }
  CHECK(programs >= 1);
}

TEST_CASE("ten steps of Mistral are those of transformers, alone and split") {
  const json expected = read_json("expected.json"), batches = read_json("batches.json");
  for (const registered& program : host_registry) {
    if (program.job != "mistral") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2);
    load_weights(r);
    for (std::size_t n = 0; n < 10; ++n) {
      set_batch(r, batches["train"][n]);
      const auto out = step(r);
      CHECK(std::abs(out.loss - expected["train"][n]["loss"].get<double>()) <= 1e-9);
      CHECK(std::abs(out.grad_norm - expected["train"][n]["grad_norm"].get<double>()) <= 1e-9);
    }
    set_batch(r, batches["eval"]);
    CHECK(std::abs(r.engine->evaluate() - expected["after"]["loss"].get<double>()) <= 1e-9);
  }
}

}  // namespace attention_oracle_test
