// SPDX-License-Identifier: Apache-2.0
// What the tensors of a family of models are called in Hugging Face's files and how they lie there, and what
// config.json says of it: a table of each per family.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

/// One tensor of ours; # stands for a layer's number. Theirs may be transposed, and hold `parts` of ours, one
/// after the other in the direction of our rows, of which this is one; or, with an @ for an expert's number,
/// be one for each expert, whose rows ours has one after the other.
struct tensor_rule {
  std::string_view ours, theirs;
  bool transposed = false;
  std::size_t part = 0, parts = 1;
  bool of_positions =
      false;  // theirs has a row for each position of config.json, of which ours are the first
  constexpr bool of_experts() const { return theirs.find('@') != theirs.npos; }
};

/// A value of config.json that the plan settles: a member of the description's model, or, without one, the
/// same for all.
struct config_rule {
  std::string_view key, ours;
  std::string_view value = "";    // JSON
  std::string_view missing = "";  // JSON: what a missing or null one means
  nlohmann::json (*follows)(const nlohmann::json& config) = nullptr;  // the same, from other values
  bool may_be_free = false;  // where the plan has 0 it says nothing of it
};

struct model_family {
  std::string_view name;          // in descriptions, and their model_type
  std::string_view architecture;  // their class
  std::string_view prefix;        // of all tensors but the head's; files may be without it
  std::string_view positions;     // the key of the number of positions
  std::span<const tensor_rule> tensors;
  std::span<const config_rule> config;
  std::span<const std::string_view> skipped;  // endings of names of what is computed, not learned
};

/// The family of a name; nullptr where there is no table of it.
const model_family* find_family(std::string_view name);
/// Their names, for messages.
std::string family_names();

/// The rule for a tensor of ours, and its name there.
struct named_rule {
  tensor_rule rule;
  std::string theirs;
  /// The names there of all that ours is made of: one, or one for each of so many experts.
  std::vector<std::string> names(std::size_t experts) const;
};
/// Errors: failure (1) that names the plan, where the family has none.
named_rule rule_of(const model_family&, std::string_view plan, const std::string& ours);

}  // namespace rankc::runtime
