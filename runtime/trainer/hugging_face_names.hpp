// SPDX-License-Identifier: Apache-2.0
// A plan's model in Hugging Face files, as the model declares it: names and layouts of its tensors, and the
// values of config.json. The generator wrote both into the program's description.
#pragma once
#include "head_order.hpp"
#include <rankc/trainer/parameters.hpp>

#include <nlohmann/json.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The size that determines how many rows a tensor has in the files. The plan's rows come first.
enum class rows_of { plan, positions, vocabulary };

/// A tensor of the plan and its tensor in the files. In names, # stands for the number of a layer and @ for
/// the number of an expert. A name with @ means one tensor per expert in the files, and one tensor with the
/// rows of all experts in the plan. Tensors of the plan with the same name in the files are parts of one
/// tensor, in order.
struct tensor_rule {
  std::string ours, theirs;
  bool transposed = false;
  rows_of rows = rows_of::plan;
  std::string tied_to;  // the plan's tensor that files with `theirs` repeat where the plan has no `ours`
  head_order heads;
  double added = 0;  // the plan's values are those of the files plus this
  bool of_experts() const { return theirs.find('@') != theirs.npos; }
};

/// A value of config.json that the plan determines.
struct config_rule {
  std::string key;
  nlohmann::json value, missing;  // missing: what a missing key means; null: nothing
  std::string of, over;           // keys: a null value means factor * of / over; empty: null has no meaning
  std::int64_t factor = 1;
  std::string also;       // another key for the same value
  bool rotary = false;    // the value may be in an object of rotary positions
  std::string layers;     // a kind of layers whose rotary positions have an object of their own
  bool nullable = false;  // a null value is a value, and not a missing key
};

/// The keys of the router balance loss in config.json, and the plan's coefficient.
struct balance_keys {
  std::string coefficient, enabled;  // empty where config.json has no such keys
  double value = 0;
};

struct hugging_face_model {
  std::string type, architecture;
  std::string prefix;  // begins the base model's tensor names; files of the base model alone omit it
  std::string positions, vocabulary;  // keys of config.json
  std::vector<tensor_rule> tensors;
  std::vector<config_rule> config;
  std::vector<config_rule> exported;  // exported if no origin folder gives other values
  std::vector<std::string> buffers;   // endings of the names of tensors that are not weights
  std::size_t experts = 0;            // per layer with experts
  balance_keys balance;
};

/// The model of a program's description.
/// Errors: failure (1) if the model declares no names.
hugging_face_model hugging_face_model_of(const description&);

/// A parameter of the plan in the files: in one tensor, or in one for each expert.
struct named_tensor {
  tensor_rule rule;
  std::vector<std::string> theirs;
  std::vector<const global_parameter*> parts;  // the parameters that each of `theirs` joins
  std::size_t part;                            // the place of this parameter among them
  std::size_t rows_of_part(std::size_t n) const { return parts[n]->rows / theirs.size(); }
  /// The first row of part `n` in the files' tensor; for n = parts.size(), the number of all rows.
  std::size_t first_row(std::size_t n) const;
};

/// Finds the tensor of a parameter. `all`: the parameters among which the others of a joined tensor are.
/// Errors: failure (1) that names the plan, where the model has no such tensor, or no other part of it.
named_tensor find_tensor(const hugging_face_model&, const description&,
                         const std::vector<global_parameter>& all, const global_parameter&);

/// Checks that a program's model has names for these parameters, and for the other parts of their tensors.
/// Errors: failure (1), as above.
void check_hugging_face_names(const description&, const std::vector<global_parameter>&);

}  // namespace rankc::runtime
