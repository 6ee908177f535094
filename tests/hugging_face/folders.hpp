// SPDX-License-Identifier: Apache-2.0
// Saves, changes and reads model folders in tests.
#pragma once
#include <rankc/trainer/safetensors.hpp>

#include "../runtime/trainer/scratch.hpp"
#include "models.hpp"

namespace hugging_face {

using rankc::runtime::contents, rankc::runtime::dtype, rankc::runtime::region, rankc::runtime::run_state;
using rankc::runtime::safetensors_reader, rankc::runtime::safetensors_writer, rankc::runtime::scratch;

/// Save a run whose weights came from `init`.
inline fs::path save(run& r, const scratch& files, const std::string& init = "") {
  const run_state state{.step = 1,
                        .samples = 0,
                        .init = init,
                        .data = "",
                        .train = r.about.train,
                        .plan_hash = r.about.plan_hash};
  return rankc::runtime::save_checkpoint(*r.engine, state, files.path("saved"));
}

/// All tensors in a folder's files.
inline tensors tensors_of(const fs::path& folder) {
  tensors all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const safetensors_reader in(entry.path());
    in.check();
    for (const auto& [name, t] : in.tensors()) {
      REQUIRE(all[name].empty());
      all[name].resize(t.count);
      in.read(name, 0, t.count, all[name].data());
    }
  }
  return all;
}

/// A model's folder with changes to its config.
inline fs::path changed(const scratch& files, const std::string& model, const json& changes,
                        const std::string& config = "config.json") {
  fs::remove_all(files.path("changed"));
  fs::create_directories(files.path("changed"));
  for (const auto& entry : fs::directory_iterator(folder_of(model)))
    fs::copy(entry.path(), fs::path(files.path("changed")) / entry.path().filename());
  json root = read_json(folder_of(model) / config);
  if (changes.is_object()) root.update(changes);
  files.write("changed/config.json", root.dump());
  return files.path("changed");
}

inline std::vector<double> joined(std::vector<double> one, const std::vector<double>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

/// Rewrite a folder's model.safetensors with additional tensors, whose values are consecutive numbers.
inline void add_tensors(const fs::path& folder, std::vector<safetensors_writer::tensor> all,
                        const std::vector<double>& values) {
  const fs::path file = folder / "model.safetensors", next = folder / "next";
  const safetensors_reader in(file);
  const tensors given = tensors_of(folder);
  for (const auto& [name, t] : in.tensors()) all.push_back({name, t.shape, dtype::f32});
  safetensors_writer out(next, all, {});
  out.append(values.data(), values.size());
  for (const auto& [name, t] : in.tensors()) out.append(given.at(name).data(), t.count);
  out.close();
  fs::rename(next, file);
}

}  // namespace hugging_face
