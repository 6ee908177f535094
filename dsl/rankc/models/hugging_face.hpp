// SPDX-License-Identifier: Apache-2.0
// The names and layouts that a model's tensors have in Hugging Face's files, and the values of config.json.
// A model with a member `constexpr hugging_face_format hugging_face() const` is imported from such files and
// exported to them.
#pragma once
#include <string_view>
#include <variant>
#include <vector>

namespace rankc {

/// The size that determines how many rows a tensor has in the files. The first rows are the plan's.
enum class rows_in_files : unsigned char { plan, positions, vocabulary };

/// The order of the elements of each query and key head in the files, if it is not rankc's. Rotary positions
/// turn elements i and i + n/2 of a head of n. In the files, the first `turned` elements turn: the halves of
/// them, or pairs of neighbours.
struct head_order {
  int elements = 0;  // elements in a head; 0: the order is rankc's
  int turned = 0;
  bool neighbours = false;
  constexpr bool operator==(const head_order&) const = default;
};

/// A tensor of the model and the tensor of the files that holds it. In names, # stands for the number of a
/// layer and @ for the number of an expert. With @, the files have one tensor for each expert, and the model
/// has the rows of all experts in one. Tensors of the model with the same name in the files are parts of one
/// tensor, in the order of the list.
/// Shapes: (out, in) in the model; (in, out) in the files if `transposed`.
struct hugging_face_tensor {
  std::string_view ours, theirs;
  bool transposed = false;
  rows_in_files rows = rows_in_files::plan;
  std::string_view tied_to = {};  // the tensor that files with `theirs` repeat, if the model has no `ours`
  head_order heads = {};          // for tensors whose rows are elements of query or key heads
  double added = 0;               // the model's values are those of the files plus this
};

/// A value of config.json; nullptr is null.
using hugging_face_value = std::variant<std::nullptr_t, bool, int, double, std::string_view, std::vector<int>,
                                        std::vector<std::string_view>>;

/// A value computed from other values of config.json: factor * of / over.
struct hugging_face_product {
  std::string_view of;  // a key; empty: there is no such value
  int factor = 1;
  std::string_view over = {};  // a key; empty: 1
};

/// A value of config.json that the model determines. A folder with another value is refused.
struct hugging_face_field {
  std::string_view key;
  hugging_face_value value;
  hugging_face_value missing = nullptr;  // the value that a missing key stands for
  hugging_face_product follows = {};  // the value that null stands for, and a missing key without `missing`
  std::string_view also = {};         // another key for the same value
  bool rotary = false;                // in the object rope_parameters or rope_scaling, or outside
  std::string_view layers = {};       // the kind of layers whose object in rope_parameters has the key
  bool nullable = false;              // null is a value, and does not stand for `missing`
};

/// The balance loss of routers: the key of its coefficient, the key that enables it, and the plan's
/// coefficient.
struct hugging_face_balance {
  std::string_view coefficient, enabled;  // empty: the model has no such keys
  double value = 0;
};

/// The files of a model.
struct hugging_face_format {
  std::string_view model_type, architecture;
  // The prefix of the base model's tensor names. Files with only the base model lack it.
  std::string_view prefix = "model.";
  std::string_view positions = "max_position_embeddings";  // the key of the longest sequence
  std::string_view vocabulary = "vocab_size";              // the key of the number of tokens
  std::vector<hugging_face_tensor> tensors = {};
  std::vector<hugging_face_field> fields = {};
  std::vector<hugging_face_field> exported = {};  // values that an export writes if no folder gives others
  std::vector<std::string_view> buffers = {};     // endings of the names of tensors that are not weights
  int experts = 0;                                // number of experts in each layer that has experts
  hugging_face_balance balance = {};
};

/// Two lists as one.
template <class Row>
constexpr std::vector<Row> join(std::vector<Row> first, const std::vector<Row>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace rankc
