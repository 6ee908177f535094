// SPDX-License-Identifier: Apache-2.0
// The parameters of a pipeline coordinate as blocks of layers that lie alike, and the table that follows.
#pragma once
#include <rankc/runtime/program.hpp>

#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The parameters of consecutive layers, or of no numbered layer. The first '#' in a row's name stands for
/// the layer's number. A row's `element` counts from the block's first element in the first layer.
/// Units: `first` and `stride` are elements of a region; `stride` is from one layer to the next.
struct parameter_block {
  std::span<const parameter> rows;
  std::size_t first;
  int first_layer = -1, layers = 1;  // -1: no number
  std::size_t stride = 0;
};

/// The rows that blocks stand for, layer by layer.
class parameter_table {
 public:
  parameter_table(std::initializer_list<parameter_block> blocks) {
    for (const parameter_block& b : blocks)
      for (int layer = 0; layer < b.layers; ++layer)
        for (parameter p : b.rows) {
          names_.push_back(b.first_layer < 0 ? p.name : name_in(p.name, b.first_layer + layer));
          p.name = names_.back().c_str();
          p.element += b.first + static_cast<std::size_t>(layer) * b.stride;
          rows_.push_back(p);
        }
  }
  parameter_table(const parameter_table&) = delete;
  parameter_table& operator=(const parameter_table&) = delete;

  operator std::span<const parameter>() const { return rows_; }

 private:
  static std::string name_in(std::string name, int layer) {
    return name.replace(name.find('#'), 1, std::to_string(layer));
  }

  std::deque<std::string> names_;
  std::vector<parameter> rows_;
};

}  // namespace rankc::runtime
