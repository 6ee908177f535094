// SPDX-License-Identifier: Apache-2.0
// The tensors that a step is given by name, and the values that a layer gets with its activation.
#pragma once
#include <rankc/trace/type.hpp>

#include <span>

namespace rankc {

/// The rows of an input: one for each token, one for each sequence, or one for the step.
enum class input_extent : unsigned char { token, sequence, step };

/// A tensor that every microbatch is given.
///   holds            `index` (int32), `wide` (f32, or f64 in a program of f64), or `real` (the precision of
///                    the plan)
///   features         numbers of a row; size 0: one number, and the tensor has only the dim of rows
///   extent           token: sharded as the tokens are. sequence: sharded over the data-parallel axes and cp,
///                    and each rank has an equal number of rows. step: all ranks have the row
///   whole_sequences  true: a cp rank has the rows of all tokens of its sequences; false: of its tokens only
///   computed         true: one number that the step computes from its other inputs before the first forward
///   below            indices are at least 0 and below this; 0: any int32
struct named_input {
  std::string_view name;
  element holds = element::index;
  dim features{"", 0};
  input_extent extent = input_extent::token;
  bool whole_sequences = false;
  bool computed = false;
  int below = 0;
  constexpr bool operator==(const named_input&) const = default;
  constexpr int width() const { return features.size > 0 ? features.size : 1; }
};

/// The inputs that the language declares for a model that reads tokens.
namespace inputs {
/// Token ids, the input of the first layer.
inline constexpr named_input tokens{"tokens"};
/// The next token of each token.
inline constexpr named_input targets{"targets"};
/// The position at which each token's document begins. Only plans with documents have it.
inline constexpr named_input starts{.name = "starts", .whole_sequences = true};
/// The weight of each token's label in the loss. Only plans with token weights have it.
inline constexpr named_input weights{.name = "weights", .holds = element::wide};
/// The number of labels in the step that are not ignored, or with token weights the sum of their weights.
/// Only plans with an ignored label or token weights have it.
inline constexpr named_input label_count{
    .name = "label_count", .holds = element::wide, .extent = input_extent::step, .computed = true};
}  // namespace inputs

/// The index of an input; -1 without an input of this name.
constexpr int find_input(std::span<const named_input> all, std::string_view name) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return static_cast<int>(i);
  return -1;
}

/// A step's input as a value of a layer.
struct input_value {
  named_input is;
  int id = -1;  // the value; -1: the layer does not get it
};

/// A value that each layer gets from the layer before, and passes to the next layer with more added.
struct carried_value {
  std::string_view name;
  int in = -1;        // -1: this layer begins it
  int result = -1;    // the value that the next layer gets
  int gradient = -1;  // the gradient of the result; -1: the layer ends the model
};

}  // namespace rankc
