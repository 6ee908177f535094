// SPDX-License-Identifier: Apache-2.0
// The memory of a layer's form: exact for the number of sequences for which it was lowered, a lower bound for
// more.
#pragma once
#include <rankc/lowering/node.hpp>

#include <algorithm>
#include <vector>

namespace rankc::plan_search {

/// The bytes of a form, with the names of layer_program.
/// Units: bytes.
struct form_bytes {
  std::vector<lowering::rope_use> ropes{};
  std::size_t x_bytes = 0, y_bytes = 0, saved_bytes = 0, halfway_bytes = 0, forward_temp = 0,
              backward_temp = 0, routers_bytes = 0;
  unsigned long long used = 0;  // a bit for each phase and space
  std::vector<int> inputs{};    // the inputs of the step that forward reads

  static constexpr unsigned long long bit(lowering::phase does, lowering::space where) {
    return 1ull << (16 * (does == lowering::phase::backward_weight) + static_cast<int>(where));
  }
  /// True for a use in forward or in the second half of backward. Other phases are not stored.
  constexpr bool uses(lowering::phase does, lowering::space where) const { return used & bit(does, where); }
  /// True if forward reads an input. Other phases are not asked for.
  constexpr bool reads_input(lowering::phase, int input) const {
    return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
  }
};

namespace detail {

constexpr bool has_tokens(const lowering::layer_program& l, const lowering::value& v) {
  if (v.shape < 0) return false;
  const lowering::local_shape& s = l.shape(v);
  for (int d = 0; d < s.ndim; ++d)
    if (s.dims[d].name == "tokens") return true;
  return false;
}

/// The bytes of a value that grow with its elements. An fp8 tensor is followed by its scales.
constexpr std::size_t bytes_of_elements(const lowering::layer_program& l, const lowering::value& v) {
  return is_fp8(v.holds) ? 2 * static_cast<std::size_t>(l.shape(v).elements()) : v.bytes;
}

/// The largest number of bytes that a list of nodes has in its workspace at once, without gaps between
/// values.
/// Shapes: bytes (values).
constexpr std::size_t most_at_once(const lowering::layer_program& l,
                                   lowering::node_range lowering::value::* lives, std::size_t nodes,
                                   const std::vector<std::size_t>& bytes) {
  std::vector<long long> change(nodes + 1, 0);
  for (std::size_t v = 0; v < l.values.size(); ++v) {
    const lowering::node_range& of = l.values[v].*lives;
    if (l.values[v].where != lowering::space::temp || !of.any()) continue;
    change[static_cast<std::size_t>(of.first)] += static_cast<long long>(bytes[v]);
    change[static_cast<std::size_t>(of.last) + 1] -= static_cast<long long>(bytes[v]);
  }
  long long live = 0, most = 0;
  for (const long long more : change) most = std::max(most, live += more);
  return static_cast<std::size_t>(most);
}

}  // namespace detail

/// A lower bound of a form's bytes for `times` the sequences for which it was lowered. It omits padding
/// between values and the scales of fp8 tensors, which do not grow with the sequences.
constexpr form_bytes bytes_of(const lowering::layer_program& l, int times) {
  using lowering::space;
  form_bytes b{.ropes = l.ropes,
               .x_bytes = l.x_bytes,
               .y_bytes = l.y_bytes,
               .saved_bytes = l.saved_bytes,
               .halfway_bytes = l.halfway_bytes,
               .forward_temp = l.forward_temp,
               .backward_temp = l.backward_temp,
               .routers_bytes = l.routers_bytes};
  for (const lowering::value& v : l.values)
    for (const lowering::phase does : {lowering::phase::forward, lowering::phase::backward_weight})
      if (!b.uses(does, v.where) && l.touches(does, v)) b.used |= form_bytes::bit(does, v.where);
  for (const lowering::value& v : l.values)
    if (v.where == space::input && l.touches(lowering::phase::forward, v)) b.inputs.push_back(v.of);
  if (times == 1) return b;
  b.saved_bytes = b.halfway_bytes = 0;
  b.x_bytes *= static_cast<std::size_t>(times);
  b.y_bytes *= static_cast<std::size_t>(times);
  std::vector<std::size_t> bytes;
  for (const lowering::value& v : l.values) {
    bytes.push_back(detail::has_tokens(l, v)
                        ? detail::bytes_of_elements(l, v) * static_cast<std::size_t>(times)
                        : v.bytes);
    if (v.where == space::saved) b.saved_bytes += bytes.back();
    if (v.where == space::halfway) b.halfway_bytes += bytes.back();
  }
  b.forward_temp = detail::most_at_once(l, &lowering::value::forward, l.forward.size(), bytes);
  b.backward_temp = detail::most_at_once(l, &lowering::value::backward, l.backward.size(), bytes);
  return b;
}

}  // namespace rankc::plan_search
