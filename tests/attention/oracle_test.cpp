// SPDX-License-Identifier: Apache-2.0
// Mistral, whose attention has a window, computes what transformers computes in float64, alone and split.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "oracle.hpp"

namespace attention_oracle_test {

namespace {

using nlohmann::json;
using rankc::runtime::region;

const std::string folder = RANKC_TEST_ORACLES "/families/mistral/";

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

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("Mistral's logits, losses and gradients are those of transformers, alone and split") {
  const json expected = oracle::read_json(folder + "expected.json"),
             batches = oracle::read_json(folder + "batches.json");
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.job != "mistral") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2);
    oracle::load_weights(r, folder, name_in_file);
    oracle::set_batch(r, batches["eval"]);
    CHECK(std::abs(r.engine->evaluate() - expected["eval"]["loss"].get<double>()) <= 1e-10);
    if (r.about.world() == 1)
      for (std::size_t token = 0; token < 32; ++token) {
        std::vector<double> logits(96);
        r.engine->logits(0, token, logits.data());
        for (std::size_t i = 0; i < logits.size(); ++i)
          CHECK(std::abs(logits[i] - expected["eval"]["logits_seq0"][token][i].get<double>()) <= 1e-10);
      }
    CHECK(std::abs(oracle::step(r).grad_norm - expected["eval"]["grad_norm"].get<double>()) <= 1e-9);
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
  const json expected = oracle::read_json(folder + "expected.json"),
             batches = oracle::read_json(folder + "batches.json");
  for (const registered& program : host_registry) {
    if (program.job != "mistral") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2);
    oracle::load_weights(r, folder, name_in_file);
    for (std::size_t n = 0; n < 10; ++n) {
      oracle::set_batch(r, batches["train"][n]);
      const auto out = oracle::step(r);
      CHECK(std::abs(out.loss - expected["train"][n]["loss"].get<double>()) <= 1e-9);
      CHECK(std::abs(out.grad_norm - expected["train"][n]["grad_norm"].get<double>()) <= 1e-9);
    }
    oracle::set_batch(r, batches["eval"]);
    CHECK(std::abs(r.engine->evaluate() - expected["after"]["loss"].get<double>()) <= 1e-9);
  }
}

}  // namespace attention_oracle_test
