// SPDX-License-Identifier: Apache-2.0
// What other systems made of parallel dims (tests/oracles/dims), and the same dims and groups in rankc's
// terms.
#pragma once
#include <nlohmann/json.hpp>

#include <rankc/mesh/layout.hpp>

#include <optional>
#include <string>

#include "partition.hpp"

namespace rankc::test {

using nlohmann::json;

/// One configuration that a system accepted, or refused by a rule.
struct oracle {
  std::string system;  // torchtitan's variants are systems of their own
  std::string rule, stage;
  json record;

  int in(const char* name, int absent = 1) const {
    const json& inputs = record["in"];
    return inputs.contains(name) && inputs[name].is_number() ? inputs[name].get<int>() : absent;
  }
  /// Whether the system's rules of dims are met. Its rules of models come after.
  bool accepted() const { return rule.empty() || stage == "model"; }
};

std::vector<oracle> read_oracles();

/// The same dims for rankc; none where rankc has no words for them.
std::optional<parallel_dims> in_rankc(const oracle&);

/// The groups that a system has under some names, joined, are those of rankc's aliases, joined.
struct same_groups {
  std::string_view system;  // and all whose names begin so
  std::vector<std::string> theirs;
  std::vector<axis> ours;
};
extern const std::vector<same_groups> correspondences;

/// The groups or the group size under joined names; none where the system or the file does not say.
std::optional<partition> groups_of(const oracle&, const std::vector<std::string>& names);
std::optional<long long> size_of(const oracle&, const std::vector<std::string>& names);

}  // namespace rankc::test
