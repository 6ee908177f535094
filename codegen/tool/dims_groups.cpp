// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "dims.hpp"

namespace rankc::tool {

namespace {

/// Writes all groups of one shape. Each is the group of rank 0, moved.
void write_shape(std::string& out, const group_shape& shape, int ranks) {
  const std::vector<int> offsets = shape.members(0);
  out += '[';
  for (int r = 0; r < ranks; ++r) {
    if (shape.first(r) != r) continue;
    out += '[';
    const std::size_t n = shape.has(r) ? offsets.size() : 1;
    for (std::size_t i = 0; i < n; ++i) {
      const fmt::format_int number(r + offsets[i]);
      out.append(number.data(), number.size()) += ',';
    }
    out.back() = ']';
    out += ',';
  }
  out.back() = ']';
}

/// The position of earlier text: many names mean the same groups.
struct written {
  group_shape shape;
  std::size_t at, size;
};

}  // namespace

void write_groups(std::string& out, const layout& l) {
  std::vector<written> earlier;
  out += '{';
  for (axis a : shown_groups(l)) {
    const group_shape shape = l.groups(a);
    out.append("\"").append(name(a)).append("\":");
    const auto same =
        std::find_if(earlier.begin(), earlier.end(), [&](const written& w) { return w.shape == shape; });
    if (same == earlier.end()) {
      const std::size_t at = out.size();
      write_shape(out, shape, l.ranks());
      earlier.push_back({shape, at, out.size() - at});
    } else {
      out.append(out, same->at, same->size);
    }
    out += ',';
  }
  out.back() = '}';
}

}  // namespace rankc::tool
