// SPDX-License-Identifier: Apache-2.0
// The parts of the model's tensors that a rank holds at the beginning and at the end of a step, as boxes.
#include "compute.hpp"
#include "element_types.hpp"
#include "operand.hpp"

#include <algorithm>

namespace field {

namespace {

using rankc::codegen::access;
using rankc::codegen::holding;
using rankc::codegen::holding_kind;

const parameter_run& find(const model_run& m, const std::string& name) {
  const auto at = m.parameters.find(name);
  if (at == m.parameters.end()) throw malformed("the model has no parameter '" + name + "'");
  return at->second;
}

constexpr std::size_t past_end = ~std::size_t{0};

/// The indices of a box's elements in its tensor. A parameter's box may extend past the end of the first dim.
std::vector<std::size_t> indices(const holding& h, const extent& whole, std::size_t ndim, bool may_pass_end) {
  if (h.box.size() != ndim) throw malformed("'" + h.name + "': a box of another number of dims");
  const rankc::codegen::box_range all{0, 1};
  const auto &rows = ndim == 2 ? h.box[0] : all, &cols = ndim ? h.box[ndim - 1] : all;
  const auto fits = [](const rankc::codegen::box_range& b, std::int64_t size) {
    return b.first >= 0 && b.count >= 0 && b.first <= size && b.count <= size - b.first;
  };
  const std::int64_t past = may_pass_end ? 1 << 10 : 0;
  if (!fits(rows, whole.rows + (ndim == 2 ? past : 0)) || !fits(cols, whole.cols + (ndim == 1 ? past : 0)))
    throw malformed("'" + h.name + "': a box outside the tensor");
  std::vector<std::size_t> out;
  for (std::int64_t r = rows.first; r < rows.first + rows.count; ++r)
    for (std::int64_t c = cols.first; c < cols.first + cols.count; ++c)
      out.push_back(r < whole.rows && c < whole.cols ? static_cast<std::size_t>(r * whole.cols + c)
                                                     : past_end);
  return out;
}

std::vector<element> take(const std::vector<element>& from, const std::vector<std::size_t>& at) {
  std::vector<element> out;
  for (std::size_t i : at) out.push_back(i == past_end ? element{} : from[i]);
  return out;
}

/// The indices of parts of a dim of this size, one part after the other.
std::vector<std::size_t> parts(const holding& h, std::int64_t size) {
  std::vector<std::size_t> out;
  for (const rankc::codegen::box_range& b : h.box) {
    if (b.first < 0 || b.count < 0 || b.first > size || b.count > size - b.first)
      throw malformed("a part outside of what there is");
    for (std::int64_t i = b.first; i < b.first + b.count; ++i) out.push_back(static_cast<std::size_t>(i));
  }
  return out;
}

/// The cosines, then the sines, of all positions or of those in the box.
std::vector<element> rotary_rows(const holding& h) {
  const std::vector<element> all = tables::rotary(h.positions, h.dim, h.theta, h.scaling).of;
  if (h.box.empty()) return all;
  const auto half = static_cast<std::size_t>(h.dim / 2), sines = static_cast<std::size_t>(h.positions) * half;
  std::vector<element> out;
  for (const std::size_t of : {std::size_t{0}, sines})
    for (const std::size_t p : parts(h, h.positions))
      for (std::size_t j = 0; j < half; ++j) out.push_back(all[of + p * half + j]);
  return out;
}

std::vector<element> expected(const holding& h, const model_run& m, bool after, std::size_t count) {
  const auto of_parameter = [&](auto before_step, auto after_step) {
    const parameter_run& p = find(m, h.name);
    return take(after ? p.*after_step : p.*before_step, indices(h, p.is, p.ndim, true));
  };
  const auto of_tokens = [&](const std::vector<element>& all) {
    std::vector<element> out;
    for (const std::size_t i : parts(h, static_cast<std::int64_t>(all.size()))) out.push_back(all[i]);
    return out;
  };
  switch (h.kind) {
    case holding_kind::weight:
    case holding_kind::working_copy:
      return of_parameter(&parameter_run::weight, &parameter_run::new_weight);
    case holding_kind::first_moment:
      return of_parameter(&parameter_run::first_moment, &parameter_run::new_first_moment);
    case holding_kind::second_moment:
      return of_parameter(&parameter_run::second_moment, &parameter_run::new_second_moment);
    case holding_kind::padding:
      return std::vector<element>(count);
    case holding_kind::rotary:
      if (h.positions < 0 || h.dim < 0 || h.positions * h.dim > 1 << 20)
        throw malformed("a rotary table of no size");
      return rotary_rows(h);
    case holding_kind::ids:
      return of_tokens(m.ids);
    case holding_kind::targets:
      return of_tokens(m.targets);
    case holding_kind::starts:
      return of_tokens(m.starts);
    case holding_kind::input:
      if (h.name != "weights" || m.weights.empty()) throw malformed("an input that is not drawn");
      return of_tokens(m.weights);
    case holding_kind::loss:
      return {m.loss};
    case holding_kind::norm:
      return {m.norm};
  }
  throw malformed("a holding of no kind");
}

}  // namespace

void fill(rank_state& rank, const access& a, const holding& h, const model_run& m) {
  const operand p = operand_of(a);
  expect(keeps(h.kind, a.type, m.optimizer), "begin: a holding of another type than the recipe keeps");
  matrix to(p.is);
  const std::vector<element> from = expected(h, m, false, to.of.size());
  if (from.size() != to.of.size())
    throw malformed("begin: " + std::string(rankc::codegen::holding_names[static_cast<int>(h.kind)]) + " '" +
                    h.name + "' is of another size than its bytes");
  to.of = from;
  store(rank.arena, p, to);
}

/// The elements of an input, in the order of the step's tokens.
static const std::vector<element>& elements_of(holding_kind kind, const model_run& m) {
  if (kind == holding_kind::ids) return m.ids;
  if (kind == holding_kind::targets) return m.targets;
  return kind == holding_kind::starts ? m.starts : m.weights;
}

void load(rank_state& rank, const std::vector<execution::loaded_input>& inputs, const model_run& m) {
  const rankc::codegen::op& begin = rank.program->ops.front();
  std::size_t loaded = 0;
  for (const execution::loaded_input& i : inputs) {
    std::vector<access> places;
    for (std::size_t k = 0; k < begin.writes.size(); ++k)
      if (begin.holds[k].kind == i.kind && begin.holds[k].name == i.name) places.push_back(begin.writes[k]);
    std::sort(places.begin(), places.end(),
              [](const access& x, const access& y) { return x.begin < y.begin; });
    if (places.empty()) continue;
    expect(places.size() == i.microbatches.size(), "begin: another number of microbatches than is loaded");
    for (std::size_t k = 0; k < places.size(); ++k) {
      expect(k == 0 || places[k].begin == places[k - 1].end, "begin: microbatches that are apart");
      const operand p = operand_of(places[k]);
      matrix to(p.is);
      expect(to.of.size() == i.microbatches[k].size(), "begin: another number of rows than is loaded");
      const std::vector<element>& all = elements_of(i.kind, m);
      for (std::size_t row = 0; row < to.of.size(); ++row) {
        const auto token = static_cast<std::size_t>(i.microbatches[k][row]);
        expect(token < all.size(), "begin: a row that the step does not have");
        to.of[row] = all[token];
      }
      store(rank.arena, p, to);
      ++loaded;
    }
  }
  const auto is_input = [](const holding& h) { return rankc::codegen::is_input(h.kind); };
  const auto held = static_cast<std::size_t>(std::count_if(begin.holds.begin(), begin.holds.end(), is_input));
  expect(loaded == held, "begin: an input that is not loaded");
}

/// A sum whose terms cancel has the rounding error of its terms.
static element scale_of(const std::vector<element>& gradient, const model_run& m) {
  return std::max(largest(gradient), multiply(number(1e-3), m.largest_gradient));
}

std::string compare(const rank_state& rank, const access& a, const holding& h, const model_run& m, bool after,
                    const std::vector<element>* instead) {
  const operand p = operand_of(a);
  expect(instead || keeps(h.kind, a.type, m.optimizer),
         "end: a holding of another type than the recipe keeps");
  const matrix found = load(rank.arena, p);
  std::vector<element> wanted;
  if (instead) wanted = take(*instead, indices(h, find(m, h.name).is, find(m, h.name).ndim, true));
  else wanted = expected(h, m, after, found.of.size());
  const std::string what = "rank " + std::to_string(rank.number) + ": " +
                           (instead ? "gradient" : rankc::codegen::holding_names[static_cast<int>(h.kind)]) +
                           (h.name.empty() ? "" : " of " + h.name);
  if (wanted.size() != found.of.size()) return what + " has another number of elements";
  const bool is_number = h.kind == holding_kind::loss || h.kind == holding_kind::norm;
  if (is_number && sum_of(rank.arena, p) >= token_sum::in_bf16)
    return what + " was kept or sent in a type narrower than its sums are made in";
  const element scale = instead ? scale_of(*instead, m) : largest(wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (differ(found.of[i], wanted[i], scale)) return what + " differs at element " + std::to_string(i);
  return {};
}

}  // namespace field
