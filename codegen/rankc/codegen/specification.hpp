// SPDX-License-Identifier: Apache-2.0
// The model of a plan on one device, for the whole batch of a step at once. The rank programs are compared
// with it. It has the forward ops only.
#pragma once
#include <rankc/contract/attention_setting.hpp>
#include <rankc/contract/load_balance.hpp>
#include <rankc/contract/rope_scaling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

struct specification {
  /// Linear layers may multiply fp8 numbers, with one scale for a tensor or one for each row.
  enum class rounding { none, fp8, fp8_rows };
  /// A tensor. A dim is in units (heads) of several elements if an op reads it so.
  struct tensor {
    std::vector<std::int64_t> shape;  // the first dim of a value that is computed from ids is the tokens
    std::int64_t unit = 1;            // elements of a unit of the last dim
    std::int64_t unit_of_rows = 1;    // the same of the first dim, if there are two
    std::int64_t unit_of(std::size_t dim) const { return dim + 1 == shape.size() ? unit : unit_of_rows; }
  };
  /// An op of the table, by its row's name. `in` and `out` are values, in the order of the row's ports.
  /// Conversions are kept: on one device each is a copy.
  struct op {
    std::string row;
    std::vector<int> in, out;
    std::int64_t rows = 0, seq = 0;
    double number = 0;
    rope_scaling scaling{};
    attention_setting attention{};
    rounding operands = rounding::none;  // how the operands of the op and of its gradients are rounded
  };
  struct parameter {
    std::string name;  // unique within the layer
    int value;
    bool trainable = true;    // false for all parameters of a plan for inference
    load_balance balances{};  // for a router's bias: how it is updated
  };
  /// A step's input as a value of a layer.
  struct layer_input {
    std::string name;
    int value = -1;
  };
  /// A value that each layer passes to the next in addition to its result: as the layer receives it, and as
  /// the layer passes it on. -1: the first layer makes it, or the last layer consumes it.
  struct carried_value {
    std::string name;
    int before = -1, after = -1;
  };
  /// A layer as it was traced.
  struct layer {
    std::string name;
    std::vector<tensor> values;
    std::vector<op> ops;
    int input = -1, result = -1;
    std::vector<layer_input> inputs;  // the step's inputs, without `input` of the first layer
    std::vector<carried_value> carried;
    std::vector<int> side_losses;
    std::vector<parameter> parameters;

    /// The value of a step's input; -1 if the layer does not get it.
    int find_input(std::string_view name) const {
      const auto at =
          std::find_if(inputs.begin(), inputs.end(), [&](const layer_input& i) { return i.name == name; });
      return at == inputs.end() ? -1 : at->value;
    }
    /// A carried value; without values if the layer does not receive it.
    carried_value find_carried(std::string_view name) const {
      const auto at = std::find_if(carried.begin(), carried.end(),
                                   [&](const carried_value& c) { return c.name == name; });
      return at == carried.end() ? carried_value{std::string(name)} : *at;
    }
  };
  /// An input that the model declares. `rows`: rows in a step; -1: one for each token. `width`: numbers of a
  /// row; 0: one number, and the input has one dim.
  struct input {
    std::string name;
    std::int64_t width = 0, rows = -1;
  };
  /// A layer at its position in the model. The result of a layer is the input of the next; that of the last
  /// layer is the loss.
  struct use {
    int layer = 0;
    std::string name;  // "layers.2"
    // Names in the whole model, in the order of the layer's parameters. Equal names mean one tensor.
    std::vector<std::string> parameters;
  };
  /// The optimizer's update: the row of its op, its moments of each weight, and how ranks sum gradients.
  struct update {
    std::string row = "adamw";
    int moments = 2;
    bool bf16_weights = false, bf16_moments = false;  // true if these may be kept in bf16 alone
    bool bf16_reductions = false;                     // true if gradients may be sent in bf16 to be summed
  };
  /// The facts of a user's row, in the grammar of `struct line` of equivalence/facts.hpp.
  struct row_facts {
    std::string row, ports = "", rule = "", needs = "", attributes = "", gradients = "";
    std::string unknown = "";  // why no facts follow from the op_row; empty if they do
  };
  std::vector<layer> layers;
  std::vector<use> uses;
  std::int64_t tokens = 0;  // in a step
  update optimizer = {};
  std::vector<row_facts> rows = {};  // for the user's ops
  std::vector<input> inputs = {};    // besides the built-in inputs
  std::string first_input = "";      // the declared input that the first layer reads; empty: the tokens

  /// True if a layer of the model trains a parameter.
  bool trains() const {
    const auto is_trained = [](const parameter& p) { return p.trainable; };
    return std::any_of(uses.begin(), uses.end(), [&](const use& u) {
      if (u.layer < 0 || static_cast<std::size_t>(u.layer) >= layers.size()) return false;
      const std::vector<parameter>& of = layers[static_cast<std::size_t>(u.layer)].parameters;
      return std::any_of(of.begin(), of.end(), is_trained);
    });
  }
};

}  // namespace rankc::codegen
