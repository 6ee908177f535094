// SPDX-License-Identifier: Apache-2.0
// The folders of oracles/hf, the programs of their models, and an independent list of tensor names.
#pragma once
#include <doctest/doctest.h>
#include <rankc/trainer/checkpoint.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run.hpp"

namespace hugging_face {

namespace fs = std::filesystem;
using nlohmann::json;

inline fs::path folder_of(const std::string& model) { return fs::path(RANKC_TEST_ORACLES "/hf") / model; }

inline json read_json(const fs::path& file) {
  std::ifstream in(file);
  return json::parse(in);
}

inline const registered& program_of(const std::string& model, const std::string& layout) {
  const auto at = std::find_if(host_registry.begin(), host_registry.end(),
                               [&](const registered& p) { return p.job == model && p.layout == layout; });
  REQUIRE(at != host_registry.end());
  return *at;
}

/// A run of a model with a folder's weights, on a source of samples.
inline run start(const registered& program, const fs::path& folder, const std::string& source) {
  run r(program, "arith", 1e-2);
  r.data = rankc::runtime::dataset(rankc::runtime::parse_data_spec(source), r.about.vocab_used, r.about.seq);
  CHECK(rankc::runtime::load_weights(*r.engine, folder).empty());
  return r;
}

/// The numbers of a list, or of a list of lists, in order.
inline std::vector<double> flat(const json& values) {
  if (!values[0].is_array()) return values;
  std::vector<double> all;
  for (const json& row : values)
    for (const double x : row) all.push_back(x);
  return all;
}

}  // namespace hugging_face
