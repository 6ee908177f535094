// SPDX-License-Identifier: Apache-2.0
// For each family of models, two tables: the names and layouts of its tensors in Hugging Face's files, and
// the values of its config.json.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

/// The size that settles how many rows a tensor has in Hugging Face's files. The first rows are the plan's.
enum class rows_of { plan, positions, vocabulary };

/// One tensor of the plan and its place in Hugging Face's files. In names # stands for the number of a layer,
/// and @ for the number of an expert: then each expert has a tensor there, and the plan has their rows one
/// after the other. A tensor there may be transposed. It may also join `parts` tensors of the plan, of which
/// this one is `part`, in the direction of the plan's rows.
struct tensor_rule {
  std::string_view ours, theirs;
  bool transposed = false;
  std::size_t part = 0, parts = 1;
  rows_of rows = rows_of::plan;
  constexpr bool of_experts() const { return theirs.find('@') != theirs.npos; }
};

/// A value of config.json that the plan settles. `ours` is a member of the description's model; where it is
/// empty, `value` is the only one that the program can compute with.
struct config_rule {
  std::string_view key, ours;
  std::string_view value = "";    // JSON
  std::string_view missing = "";  // JSON: the meaning of a missing or null value
  nlohmann::json (*follows)(const nlohmann::json& config) = nullptr;  // the same, computed from other values
  bool may_be_free = false;  // where the plan has 0, any value is accepted
};

/// A value that an export writes where no folder gives another one.
struct config_default {
  std::string_view key, value;  // value: JSON
};

struct model_family {
  std::string_view name;          // in descriptions, and their model_type
  std::string_view architecture;  // their class
  std::string_view prefix;        // of all tensors but the head's; files may lack it
  std::string_view positions;     // the key of the number of positions
  std::span<const tensor_rule> tensors;
  std::span<const config_rule> config;
  std::span<const std::string_view> skipped;  // endings of the names of buffers, which are not weights
  std::span<const config_default> defaults;
};

/// The family of a name; nullptr where there is no table of it.
const model_family* find_family(std::string_view name);
/// Their names, for messages.
std::string family_names();

/// The rule for a tensor of the plan, and its name in Hugging Face's files.
struct named_rule {
  tensor_rule rule;
  std::string theirs;
  /// The names of the tensors there that make up the plan's: one, or one for each expert.
  std::vector<std::string> names(std::size_t experts) const;
};
/// Errors: failure (1) that names the plan, where the family has no such tensor.
named_rule rule_of(const model_family&, std::string_view plan, const std::string& ours);

}  // namespace rankc::runtime
