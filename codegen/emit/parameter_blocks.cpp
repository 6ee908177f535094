// SPDX-License-Identifier: Apache-2.0
#include "parameter_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <rankc/codegen/text_template.hpp>

#include "distinct.hpp"

namespace rankc::codegen {

namespace {

constexpr std::string_view fill_names[]{"fill::zeros", "fill::ones", "fill::uniform"};

/// The dim of a parameter that ranks shard; -1: none.
/// Errors: std::logic_error if they shard both dims, which the runtime's tables cannot express.
int sharded_dim(const placed_parameter& p) {
  const auto& [rows, cols] = p.as.shards_of_dim;
  if (rows.ranks > 1 && cols.ranks > 1)
    throw std::logic_error("parameter '" + p.name +
                           "' is sharded along both of its dims; a program shards one");
  if (rows.ranks > 1) return 0;
  return cols.ranks > 1 ? 1 : -1;
}

/// A parameter's name with '#' in place of the layer's number.
struct numbered_name {
  std::string text;
  int layer = -1;  // -1: the name has no number
};

/// "layers.12.wq" is "layers.#.wq" of layer 12. A number that is not written as a layer's, such as 00, stays.
numbered_name number_in(const std::string& name) {
  for (std::size_t at = 0; at < name.size(); at = std::min(name.find('.', at), name.size() - 1) + 1) {
    const char* const end = name.data() + std::min(name.find('.', at), name.size());
    int layer = 0;
    const auto read = std::from_chars(name.data() + at, end, layer);
    const std::string_view word(name.data() + at, end);
    if (read.ec == std::errc() && layer >= 0 && word == std::to_string(layer))
      return {name.substr(0, at) + "#" + std::string(end, name.data() + name.size()), layer};
  }
  return {name};
}

/// A row of a block; its element counts from `first`.
std::string row_text(const placed_parameter& p, std::size_t first) {
  return fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, {}, {}, {}{}}},\n", number_in(p.name).text, p.as.rows,
                     p.as.cols, sharded_dim(p), p.element - first, fill_names[static_cast<int>(p.as.start)],
                     p.as.std, p.as.ndim > 1, p.copy, p.as.experts ? ", true" : "");
}

struct block {
  std::string rows;  // the text of the first layer's rows
  std::size_t first = 0;
  int first_layer = -1, layers = 1;
  std::size_t stride = 0;
};

using parameters = std::span<const placed_parameter>;

std::size_t first_element(parameters p) {
  return std::ranges::min_element(p, {}, &placed_parameter::element)->element;
}

std::string rows_text(parameters p) {
  std::string text;
  for (const placed_parameter& each : p) text += row_text(each, first_element(p));
  return text;
}

/// How many of the first parameters belong to one layer, or to none.
std::size_t count_of_layer(parameters p) {
  const int layer = number_in(p.front().name).layer;
  return static_cast<std::size_t>(
      std::ranges::find_if(p, [=](const placed_parameter& x) { return number_in(x.name).layer != layer; }) -
      p.begin());
}

/// Whether a layer continues a block: its number is the next one, its rows are equal, and its distance from
/// the layer before is that of all others.
bool continues(const block& b, const std::string& rows, std::size_t first, int layer) {
  if (b.first_layer < 0 || layer != b.first_layer + b.layers || rows != b.rows || first <= b.first)
    return false;
  return b.layers == 1 || first == b.first + static_cast<std::size_t>(b.layers) * b.stride;
}

/// The blocks of a pipeline coordinate's parameters, in their order.
std::vector<block> blocks_of(parameters p) {
  std::vector<block> all;
  for (; !p.empty(); p = p.subspan(count_of_layer(p))) {
    const parameters own = p.first(count_of_layer(p));
    const int layer = number_in(own.front().name).layer;
    const std::size_t first = first_element(own);
    const std::string rows = rows_text(own);
    if (!all.empty() && continues(all.back(), rows, first, layer)) {
      all.back().stride = (first - all.back().first) / static_cast<std::size_t>(all.back().layers);
      ++all.back().layers;
      continue;
    }
    all.push_back({rows, first, layer});
  }
  return all;
}

std::string text_of(const block& b, std::size_t rows) {
  const std::string begin = fmt::format("{{rows_{}, {}", rows, b.first);
  if (b.layers > 1) return fmt::format("{}, {}, {}, {}}}", begin, b.first_layer, b.layers, b.stride);
  return b.first_layer >= 0 ? fmt::format("{}, {}}}", begin, b.first_layer) : begin + "}";
}

}  // namespace

std::string parameter_blocks_text(const lowered& l) {
  std::vector<std::string> rows;  // without repetition
  std::string tables;
  bool has_experts = false;
  for (const pipeline_rank& r : l.ranks) {
    if (r.parameters.empty()) continue;
    std::vector<std::string> words;
    for (const block& b : blocks_of(r.parameters)) {
      words.push_back(text_of(b, index_in(rows, b.rows)));
    }
    for (const placed_parameter& p : r.parameters) has_experts |= p.as.experts;
    tables += fmt::format("const parameter_table parameters_{}{{{}}};\n", r.index, wrap(words, ",", "    "));
  }
  if (rows.empty()) return "";
  std::string out = fmt::format(
      "// Rows of layers that lie alike: name, rows, cols, dim sharded over tp, first element, start, std, "
      "matrix,\n// copy{}. # is the layer's number.\n",
      has_experts ? ", experts" : "");
  for (std::size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("constexpr parameter rows_{}[]{{\n{}}};\n", i, rows[i]);
  return out +
         "// The parameters of each pipeline coordinate: rows, first element, first layer, layers, elements "
         "from\n// one to the next.\n" +
         tables;
}

}  // namespace rankc::codegen
