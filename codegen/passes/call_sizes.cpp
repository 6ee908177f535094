// SPDX-License-Identifier: Apache-2.0
#include "call_sizes.hpp"

#include <algorithm>

namespace rankc::codegen {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(at)));
    text.remove_prefix(std::min(text.size(), words.back().size() + 1));
  }
  return words;
}

void add_once(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

bool is_first(const op_row& row, std::string_view symbol) {
  for (const port& p : row.used_ports())
    for (int d = 0; d < p.shape.ndim; ++d)
      if (!symbol.empty() && p.shape.dim[d].first == symbol) return true;
  return false;
}

std::string dim_symbol(const port_dim& d) {
  return std::string(d.count) + (d.unit.empty() ? "" : "_" + std::string(d.unit));
}

bool is_in_a_type(const op_row& row, const std::string& symbol) {
  for (const port& p : row.used_ports()) {
    if (p.shape.stride == symbol) return true;
    for (int d = 0; d < p.shape.ndim; ++d)
      if (!p.shape.dim[d].number && dim_symbol(p.shape.dim[d]) == symbol) return true;
  }
  return false;
}

std::vector<std::string> needed_sizes(const op_row& row, target t) {
  std::vector<std::string> needed;
  for (std::string_view product : split(kernel_of(row, t).sizes, ' '))
    for (std::string_view symbol : split(product, '*')) add_once(needed, std::string(symbol));
  for (const port& p : row.used_ports())
    for (int d = 0; d < p.shape.ndim; ++d)
      if (!p.shape.dim[d].unit.empty()) {
        add_once(needed, std::string(p.shape.dim[d].count));
        add_once(needed, std::string(p.shape.dim[d].unit));
      }
  return needed;
}

static bool is_given(const op_row& row, const std::string& symbol) {
  return symbol != "number" && !is_first(row, symbol) && !is_in_a_type(row, symbol);
}

std::vector<std::string> numbers_of(const op_row& row, target t) {
  std::vector<std::string> all = needed_sizes(row, t);
  const bool has_number = std::find(all.begin(), all.end(), "number") != all.end();
  std::erase_if(all, [&](const std::string& symbol) { return !is_given(row, symbol); });
  if (has_number) all.emplace_back("number");
  return all;
}

}  // namespace rankc::codegen
