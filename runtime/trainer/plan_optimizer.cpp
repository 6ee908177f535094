// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/plan_optimizer.hpp>

#include "optimizer_json.hpp"

namespace rankc::runtime {

plan_optimizer optimizer_of(const description& about) {
  using nlohmann::ordered_json;
  const ordered_json root = about.json ? ordered_json::parse(about.json, nullptr, false) : ordered_json();
  if (root.is_object() && root.contains("optimizer")) return optimizer_of_json(root["optimizer"]);
  return {};
}

}  // namespace rankc::runtime
