// SPDX-License-Identifier: Apache-2.0
// The norm of the gradients, and the optimizer's update.
#include <rankc/codegen/sorted_accesses.hpp>

#include <algorithm>
#include <map>
#include <string_view>

#include "interpret.hpp"
#include "types.hpp"

namespace rankc::codegen::algebra {

/// Checks that a tensor that accumulates over a step, or from step to step, is in f32 or f64. It may be in
/// bf16 if the recipe keeps it in bf16.
static void check_wide(const view& v, const access& a, bool may_be_bf16 = false) {
  if (!is_wide(a.type) && !(may_be_bf16 && a.type == element_type::bf16))
    throw refusal("RC7610: tensor {} is kept in {}; expected f32 or f64", v.port,
                  element_type_names[static_cast<int>(a.type)]);
}

/// Checks that all weights are in one type, and so are all gradients, all moments and all working copies. The
/// optimizer's kernel has one type for each.
static void check_one_type(const op& o) {
  std::map<std::string_view, const access*> known;
  for (const view& v : o.views) {
    std::string_view kind = v.port;
    if (kind.ends_with("weight")) kind = "weight";
    if (kind.ends_with("moment")) kind = "moment";
    const access& a = first_access(o, v);
    const auto [at, is_first] = known.try_emplace(kind, &a);
    if (at->second->type != a.type)
      throw refusal("RC7798: the optimizer is given a {} in {} and another in {}; its kernel takes one type",
                    kind, element_type_names[static_cast<int>(at->second->type)],
                    element_type_names[static_cast<int>(a.type)]);
  }
}

static refusal not_given(std::string_view port) {
  return refusal("RC7611: the optimizer does not get {} where it is expected", port);
}

/// Checks that each write belongs to one result, because an op over all parameters reads and writes in no
/// fixed order.
static void check_writes(const op& o) {
  std::vector<int> results(o.writes.size(), 0);
  for (const view& v : o.views) {
    if (!v.written) continue;
    for (const int w : v.accesses)
      if (w >= 0 && static_cast<std::size_t>(w) < results.size()) ++results[static_cast<std::size_t>(w)];
  }
  for (std::size_t w = 0; w < results.size(); ++w)
    if (results[w] != 1)
      throw refusal("RC7272: bytes {} to {} that the op writes are {} of its results; expected 1",
                    o.writes[w].begin, o.writes[w].end, results[w]);
}

/// Checks that a result replaces its operand byte for byte, or overlaps no read of the op. `replaced`: null
/// if it replaces no operand.
static void check_place(const sorted_accesses& reads, const view& v, const access& w,
                        const access* replaced) {
  const access* met = reads.find_overlap(w, [&](const access& r) {
    return replaced && r.value == replaced->value && r.begin == w.begin && r.end == w.end;
  });
  if (met)
    throw refusal(
        "RC7273: result {}, bytes {} to {}, overlaps bytes {} to {} that the op reads; expected exactly the "
        "bytes of the operand that it replaces, or no overlap",
        v.port, w.begin, w.end, met->begin, met->end);
}

/// The read that a norm adds to, which is neither a gradient nor padding. Null if there is none.
static const access* norm_before(const op& o, const access& norm) {
  if (norm.replaces < 0) return nullptr;
  for (const view& v : o.views)
    for (const int r : v.accesses)
      if (!v.written && r == norm.replaces) return nullptr;
  return &o.reads.at(static_cast<std::size_t>(norm.replaces));
}

void interpreter::sum_squares(const op& o) {
  if (o.writes.size() != 1 || o.views.empty() || !o.views.back().written || o.views.back().port != "norm")
    throw refusal("RC7612: the sum of squares writes {} tensors; expected 1, the norm", o.writes.size());
  std::vector<const content*> gradients;
  for (const view& v : o.views) {
    if (&v == &o.views.back()) break;
    if (v.written || (v.port != "gradient" && v.port != "padding"))
      throw refusal("RC7613: the sum of squares is given tensor {}; expected a gradient or padding", v.port);
    gradients.push_back(&whole(o, v));
  }
  const access& norm = whole_of(o, o.views.back());
  check_wide(o.views.back(), norm);
  if (o.views.back().adds && norm.replaces < 0) throw adds_unread(o.views.back());
  const access* replaced = norm_before(o, norm);
  check_writes(o);
  check_place(sorted_accesses(o.reads), o.views.back(), norm, replaced);
  const content* before = o.views.back().adds && replaced ? &store_.at(*replaced) : nullptr;
  content made{norm.end - norm.begin, norm.type, {}};
  made.pieces.push_back({{}, claims_.sum_squares(gradients, before)});
  put(norm, std::move(made));
}

/// The bytes of a view that covers exactly one tensor.
const access& interpreter::whole_of(const op& o, const view& v) {
  const access& a = (v.written ? o.writes : o.reads).at(static_cast<std::size_t>(v.accesses.first));
  check_elements(v, a);
  std::int64_t elements = 1;
  for (const std::int64_t size : v.shape) elements *= size;
  const bool is_dense = v.shape.size() < 2 || v.stride == v.shape[1];
  if (v.accesses.count != 1 || v.offset != 0 || !is_dense ||
      static_cast<std::size_t>(elements * size_of(a.type)) != a.end - a.begin)
    throw given_in_part(v);
  return a;
}

const content& interpreter::whole(const op& o, const view& v) { return store_.at(whole_of(o, v)); }

void interpreter::update(const op& o) {
  const specification::update& by = model_.optimizer();
  if (o.row != by.row) throw refusal("RC7614: weights are updated by {}; expected {}", o.row, by.row);
  constexpr std::string_view moments[]{"first_moment", "second_moment"};
  std::vector<std::string_view> given{"weight", "gradient"}, made{"weight"};
  for (auto* ports : {&given, &made}) ports->insert(ports->end(), moments, moments + by.moments);
  made.push_back("working_copy");
  if (o.views.empty() || o.views.back().port != "norm" || o.views.back().written) throw not_given("norm");
  check_writes(o);
  const content& norm = whole(o, o.views.back());
  const sorted_accesses reads(o.reads);
  for (std::size_t i = 0; i + 1 < o.views.size();) {
    if (o.views[i].port == "padding") {
      if (!tensor_of(whole(o, o.views[i++])).holds->is_zero())
        throw refusal("RC7615: the padding between gradients is not zeros");
      continue;
    }
    std::vector<const content*> of;
    std::vector<const access*> operands;
    const load_balance balances = o.views[i].port == "balanced_weight" ? o.views[i].balances : load_balance{};
    const bool decays = o.views[i].port != "undecayed_weight" && o.views[i].port != "balanced_weight";
    for (const std::string_view port : given) {
      const bool is_given =
          i < o.views.size() && !o.views[i].written && (o.views[i].port == port || (!decays && of.empty()));
      if (!is_given) throw not_given(port);
      const bool may_be_bf16 = of.empty() ? by.bf16_weights : of.size() > 1 && by.bf16_moments;
      check_wide(o.views[i], whole_of(o, o.views[i]), may_be_bf16);
      operands.push_back(&whole_of(o, o.views[i]));
      of.push_back(&whole(o, o.views[i++]));
    }
    const std::vector<content> results = claims_.update(of, decays, balances);
    for (std::size_t k = 0; k < made.size() && i < o.views.size() && o.views[i].written; ++k, ++i) {
      const auto operand = std::find(given.begin(), given.end(), made[k]);
      const access* replaced =
          operand == given.end() ? nullptr : operands[static_cast<std::size_t>(operand - given.begin())];
      check_place(reads, o.views[i], whole_of(o, o.views[i]), replaced);
      put_updated(o, o.views[i], made[k], results[k < results.size() ? k : 0]);
    }
  }
  check_one_type(o);
  claims_.check_norm(norm);
}

/// Stores a parameter's tensor after its update. A working copy is the weight in another type.
void interpreter::put_updated(const op& o, const view& v, std::string_view port, content c) {
  const access& a = whole_of(o, v);
  if (v.port != port || v.adds)
    throw refusal("RC7616: the optimizer writes tensor {}; expected {}, not added to its buffer", v.port,
                  port);
  check_updated_type(v, c.type, a.type);
  const std::size_t elements = c.bytes / static_cast<std::size_t>(size_of(c.type));
  c.type = a.type;
  c.bytes = a.end - a.begin;
  if (elements * static_cast<std::size_t>(size_of(a.type)) != c.bytes)
    throw refusal("RC7617: the optimizer writes {} bytes of {}; expected {} elements of {}", c.bytes, v.port,
                  elements, element_type_names[static_cast<int>(a.type)]);
  store_.put(a, std::move(c));
}

}  // namespace rankc::codegen::algebra
