// SPDX-License-Identifier: Apache-2.0
// The answers of other systems for parallel dims (tests/oracles/dims), and the same dims and groups in
// rankc's terms.
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
  std::string system;  // each of torchtitan's variants is a system
  std::string rule, stage;
  json record;

  int in(const char* name, int absent = 1) const {
    const json& inputs = record["in"];
    return inputs.contains(name) && inputs[name].is_number() ? inputs[name].get<int>() : absent;
  }
  /// Whether the configuration meets the system's rules for dims. Its rules for models come later.
  bool accepted() const { return rule.empty() || stage == "model"; }
};

std::vector<oracle> read_oracles();

/// The same dims for rankc; empty if rankc cannot express them.
std::optional<parallel_dims> in_rankc(const oracle&);

/// A system's groups under some names, joined, equal rankc's groups under some aliases, joined.
struct same_groups {
  std::string_view system;  // a prefix of the systems' names
  std::vector<std::string> theirs;
  std::vector<axis> ours;
};
extern const std::vector<same_groups> correspondences;

/// The groups or the group size under joined names; empty if the system or the file does not specify them.
std::optional<partition> groups_of(const oracle&, const std::vector<std::string>& names);
std::optional<long long> size_of(const oracle&, const std::vector<std::string>& names);

}  // namespace rankc::test
