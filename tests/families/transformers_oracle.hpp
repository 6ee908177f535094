// SPDX-License-Identifier: Apache-2.0
// A model computed by transformers or PyTorch in float64: weights, batches, losses and gradients from the
// files of an oracle. Rows of a batch have one token more than a sequence.
#pragma once
#include <doctest/doctest.h>

#include <rankc/trainer/safetensors.hpp>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "run.hpp"

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in);
  return nlohmann::json::parse(in);
}

/// Loads the weights of a folder. `name_in_file` maps our parameter names to the file's names.
inline void load_weights_of(const std::string& folder, run& r, auto name_in_file) {
  const rankc::runtime::safetensors_reader file(folder + "model.safetensors");
  for (const auto& p : rankc::runtime::global_parameters(r.about))
    rankc::runtime::write(*r.engine, p, rankc::runtime::region::weights,
                          [&](std::size_t first, std::span<double> out) {
                            file.read(name_in_file(p.name), first, out.size(), out.data());
                          });
}

class transformers_oracle {
 public:
  explicit transformers_oracle(const std::string& name)
      : folder_(RANKC_TEST_ORACLES "/families/" + name + "/") {}

  nlohmann::json expected() const { return read_json(folder_ + "expected.json"); }
  nlohmann::json batches() const { return read_json(folder_ + "batches.json"); }

  /// The oracle's name of one of our parameters.
  static std::string name_in_file(const std::string& ours) {
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

  void load_weights(run& r) const { load_weights_of(folder_, r, name_in_file); }

  /// The targets are the next tokens.
  static void set_batch(run& r, const nlohmann::json& rows) {
    nlohmann::json labels = rows;
    for (nlohmann::json& row : labels) row.erase(row.begin());
    set_batch(r, rows, labels);
  }
  static void set_batch(run& r, const nlohmann::json& rows, const nlohmann::json& labels) {
    rankc::runtime::batch b;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::vector<std::int32_t> tokens = rows[row], targets = labels.at(row);
      b.tokens.insert(b.tokens.end(), tokens.begin(), tokens.end() - 1);
      b.targets.insert(b.targets.end(), targets.begin(), targets.end());
    }
    rankc::runtime::set_batch(*r.engine, b);
  }

  static double norm_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double x : values) sum += x * x;
    return std::sqrt(sum);
  }

 private:
  std::string folder_;
};
