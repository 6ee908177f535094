// SPDX-License-Identifier: Apache-2.0
// An optimizer in run.json and in `describe --json`: {"name": "adagrad", "hyperparameters": {"lr_decay": 1}}.
#pragma once
#include <rankc/trainer/plan_optimizer.hpp>

#include "json/json_file.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace rankc::runtime {

inline nlohmann::ordered_json json_of_optimizer(const plan_optimizer& o) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!o.name.empty()) root["name"] = o.name;
  for (const auto& [name, number] : o.hyperparameters) root["hyperparameters"][name] = number;
  return root;
}

/// Errors: std::invalid_argument that names key and value.
inline plan_optimizer optimizer_of_json(const nlohmann::ordered_json& root) {
  plan_optimizer o{field<std::string>(root, "name")};
  if (!root.contains("hyperparameters")) return o;
  const auto& numbers = root["hyperparameters"];
  if (!numbers.is_object())
    throw std::invalid_argument("hyperparameters is " + shown(numbers) + ", expected an object");
  for (const auto& item : numbers.items())
    o.hyperparameters.emplace_back(item.key(), field<double>(numbers, item.key().c_str()));
  return o;
}

}  // namespace rankc::runtime
