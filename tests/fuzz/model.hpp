// SPDX-License-Identifier: Apache-2.0
// Models as run-time values, from which plans are drawn, printed and reduced. A model is a list of layers,
// some of them repeated. A layer is a list of typed steps, which its `forward` runs in order.
#pragma once
#include <rankc/models/experts.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

using namespace rankc;

/// A copy of a text that lives as long as the program: dims and parameters of a trace keep views of their
/// names.
std::string_view lasting(const std::string& text);

enum class step_kind : unsigned char {
  rms_norm,
  layer_norm,
  linear,
  bias,
  gelu,
  swiglu,
  add,
  mul,
  scale,
  sigmoid,
  softmax,
  head_norm,
  swap,  // moves the first elements of each head, or row, behind the others
  rope,
  attention,
  position,
  embedding,
  enter_tp,
  leave_tp,
  cross_entropy,
  experts,   // the second half of a model's block, with its residual sum
  bare_gelu  // a user's op without a dual
};
inline constexpr std::string_view step_names[]{
    "rms_norm",  "layer_norm", "linear",   "bias",          "gelu",    "swiglu",   "add",       "mul",
    "scale",     "sigmoid",    "softmax",  "head_norm",     "swap",    "rope",     "attention", "position",
    "embedding", "enter_tp",   "leave_tp", "cross_entropy", "experts", "bare_gelu"};

/// A parameter, whole or sharded over tp along a named dim.
struct parameter {
  std::string_view name;
  std::vector<dim> shape;  // one dim or two
  std::string_view sharded_by{};
  initial start = initial::normal;
  double std = 0.3;
  int handle = 0;  // equal for tied parameters; 0: not tied
};

/// One op. Value 0 is the layer's input, step n makes value n + 1.
struct step {
  step_kind kind;
  std::vector<int> in{};       // values
  std::vector<int> weights{};  // indices into the layer's parameters
  double number = 1;           // rope: theta; norms, experts: eps; scale, cross_entropy: the factor
  rope_scaling scaling{};      // rope
  int seq = 0;                 // rope, attention, position; 0: the plan's
  int pieces = 1;  // attention: pieces of each sequence; swap: elements that move behind the others
  models::experts_of_layer with{};  // experts
};

struct layer {
  std::string_view name;
  std::vector<parameter> parameters{};
  std::vector<step> steps{};
  int result = 0;  // the index of the returned value

  value forward(trace&, value, const layer_context&) const;
};

struct entry {
  fuzz::layer layer;
  int count = 1;
  bool repeated = false;
};

struct model {
  std::vector<entry> entries;
  int vocab = 0, vocab_used = 0;
  bool offers_sizes = false;
  model_sizes sizes{};
  int blocks() const;
};

}  // namespace fuzz
