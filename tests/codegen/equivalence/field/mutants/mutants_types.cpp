// SPDX-License-Identifier: Apache-2.0
// Values that are rounded to a narrower type on the way.
#include "mutator.hpp"

namespace field {

namespace {

/// The write of an op's first result, if it is one tensor of f32 or f64 that fills it; null otherwise.
const access* wide_result(const op& o) {
  if (!computes(o) || o.views.empty()) return nullptr;
  const view& v = o.views[0];
  const bool is_whole = v.written && v.accesses.count == 1 && v.offset == 0 && !v.shape.empty() &&
                        (v.shape.size() == 1 || v.stride == v.shape[1]);
  if (!is_whole) return nullptr;
  const access& a = o.writes[static_cast<std::size_t>(v.accesses.first)];
  return a.type == element_type::f32 || a.type == element_type::f64 ? &a : nullptr;
}

/// Copy a result to bf16, into new bytes at the end of the arena, and back before any op reads it.
fault keep_in_bf16(mutator& m) {
  if (!m.turn_to([](const op& o) { return wide_result(o) != nullptr; })) return {};
  const std::string text = m.text();
  const tensor_shape shape = m.at().views[0].shape;
  access wide = *wide_result(m.at());
  wide.replaces = -1;
  const std::size_t elements = (wide.end - wide.begin) / (wide.type == element_type::f64 ? 8 : 4);
  std::size_t& arena = m.p.ranks[static_cast<std::size_t>(m.rank)].arena_bytes;
  const int fresh = m.fresh_value();
  const access narrow{arena, arena + 2 * elements, fresh, element_type::bf16};
  arena = (narrow.end + 255) / 256 * 256;
  access again = wide;
  again.value = fresh + 1;
  for (op& o : m.ops())
    for (access& a : o.reads)
      if (a.value == wide.value) a.value = again.value;
  m.insert_copy(wide, narrow, shape, text + ", in bf16");
  ++m.i;
  m.insert_copy(narrow, again, shape, text + ", back");
  return {"kept in bf16", text};
}

}  // namespace

const std::vector<fault_kind> edits_of_types{keep_in_bf16};

}  // namespace field
