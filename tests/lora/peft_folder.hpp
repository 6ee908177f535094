// SPDX-License-Identifier: Apache-2.0
// Reads a PEFT folder as PEFT's LoraConfig and layers do, and compares it with merged weights.
#pragma once
#include <doctest/doctest.h>
#include <rankc/trainer/safetensors.hpp>

#include <nlohmann/json.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

struct file_tensor {
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

inline std::map<std::string, file_tensor> tensors_in(const std::filesystem::path& file) {
  const rankc::runtime::safetensors_reader in(file);
  std::map<std::string, file_tensor> all;
  for (const auto& [name, about] : in.tensors()) {
    file_tensor& t = all[name];
    t.shape = about.shape;
    t.values.resize(about.count);
    in.read(name, 0, about.count, t.values.data());
  }
  return all;
}

class peft_folder {
 public:
  explicit peft_folder(const std::filesystem::path& folder)
      : tensors_(tensors_in(folder / "adapter_model.safetensors")),
        config(nlohmann::json::parse(std::ifstream(folder / "adapter_config.json"))) {}

  /// Check that `base` with the adapter equals `merged`, element by element, and that each tensor of the
  /// adapter is used. Returns: the numbers of modules with an adapter, and of modules that are saved whole.
  std::pair<std::size_t, std::size_t> check(const std::map<std::string, file_tensor>& base,
                                            const std::map<std::string, file_tensor>& merged) {
    std::set<std::string> adapted, saved, used;
    for (const auto& [name, want] : merged) {
      CAPTURE(name);
      const std::string module = name.substr(0, name.rfind('.')), key = "base_model.model." + module;
      const auto whole = tensors_.find("base_model.model." + name), a = tensors_.find(key + ".lora_A.weight"),
                 b = tensors_.find(key + ".lora_B.weight");
      std::vector<double> found = base_values(base, name);
      CHECK((a != tensors_.end() && name.ends_with(".weight")) ==
            (is_listed("target_modules", module) && name.ends_with(".weight")));
      CHECK((whole != tensors_.end()) == is_listed("modules_to_save", module));
      if (whole != tensors_.end()) {
        found = whole->second.values;
        saved.insert(module);
        used.insert(whole->first);
      } else if (a != tensors_.end() && name.ends_with(".weight")) {
        add_product(module, want.shape, a->second, b->second, found);
        adapted.insert(module);
        used.insert({a->first, b->first});
      }
      REQUIRE(found.size() == want.values.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        if (std::abs(found[i] - want.values[i]) > 1e-14) FAIL_CHECK(i, ": ", found[i], " ", want.values[i]);
    }
    CHECK(used.size() == tensors_.size());
    return {adapted.size(), saved.size()};
  }

 private:
  std::map<std::string, file_tensor> tensors_;

 public:
  nlohmann::json config;

 private:
  /// The base values of a name; a folder of transformers may lack the model's prefix.
  static std::vector<double> base_values(const std::map<std::string, file_tensor>& base,
                                         const std::string& name) {
    const auto at = base.find(name), without = base.find(name.substr(name.find('.') + 1));
    REQUIRE((at != base.end() || without != base.end()));
    return at != base.end() ? at->second.values : without->second.values;
  }
  static bool is_named(const std::string& module, const std::string& name) {
    return module == name || module.ends_with("." + name);
  }
  bool is_listed(const char* key, const std::string& module) const {
    return config[key].is_array() &&
           std::any_of(config[key].begin(), config[key].end(),
                       [&](const auto& name) { return is_named(module, name.template get<std::string>()); });
  }
  double value_for(const char* key, const char* patterns, const std::string& module) const {
    for (const auto& [name, value] : config[patterns].items())
      if (is_named(module, name)) return value;
    return config[key];
  }
  /// to += alpha / r (B A), transposed for a Conv1D.
  void add_product(const std::string& module, const std::vector<std::size_t>& shape, const file_tensor& a,
                   const file_tensor& b, std::vector<double>& to) const {
    const double rank = value_for("r", "rank_pattern", module);
    REQUIRE(static_cast<double>(a.shape[0]) == rank);
    REQUIRE(b.shape[1] == a.shape[0]);
    const std::size_t rows = b.shape[0], columns = a.shape[1];
    const bool is_conv1d = config["fan_in_fan_out"].get<bool>() && module.find("lm_head") == module.npos;
    CHECK(shape == (is_conv1d ? std::vector{columns, rows} : std::vector{rows, columns}));
    const double scaling = value_for("lora_alpha", "alpha_pattern", module) / rank;
    for (std::size_t o = 0; o < rows; ++o)
      for (std::size_t i = 0; i < columns; ++i)
        for (std::size_t k = 0; k < a.shape[0]; ++k)
          to[is_conv1d ? i * rows + o : o * columns + i] +=
              scaling * b.values[o * a.shape[0] + k] * a.values[k * columns + i];
  }
};
