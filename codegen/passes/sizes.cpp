// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "node.hpp"

namespace rankc::codegen {

extent node::size(std::string_view symbol) const {
  if (symbol == "rows") return rows;
  if (symbol == "seq") return seq;
  if (symbol == "number") return number;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const port_shape& s = row->ports[p].shape;
    if (s.stride == symbol && !symbol.empty()) return ports[p].shape.stride;
    for (int d = 0; d < s.ndim; ++d) {
      const local_dim& local = ports[p].shape.dims[static_cast<std::size_t>(d)];
      if (s.dim[d].unit == symbol) return local.unit;
      if (s.dim[d].first == symbol) return local.first;
      if (s.dim[d].count == symbol) return s.dim[d].unit.empty() ? width(local) : local.count;
    }
  }
  throw std::logic_error("op '" + std::string(row->name) + "' has no size '" + std::string(symbol) + "'");
}

std::vector<extent> sizes_of(const node& n, target t) {
  std::vector<extent> sizes;
  std::string_view rest = kernel_of(*n.row, t).sizes;
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    std::optional<extent> all;
    while (!word.empty()) {
      const std::string_view symbol = word.substr(0, word.find('*'));
      word.remove_prefix(std::min(word.size(), symbol.size() + 1));
      all = all ? times(*all, n.size(symbol)) : n.size(symbol);
    }
    sizes.push_back(*all);
  }
  return sizes;
}

}  // namespace rankc::codegen
