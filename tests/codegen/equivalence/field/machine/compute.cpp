// SPDX-License-Identifier: Apache-2.0
#include "compute.hpp"

#include "element_types.hpp"
#include "operand.hpp"

#include <algorithm>

namespace field {

namespace {

using rankc::codegen::op;
using rankc::codegen::view;

std::uint64_t key_of_op(const rank_state& rank, const op& o) {
  return mix(field::key_of(o.name), static_cast<std::uint64_t>(rank.number));
}

/// The memory that a kernel writes without a view.
std::vector<rankc::codegen::access> scratch_of(const op& o) {
  std::vector<rankc::codegen::access> out;
  for (std::size_t a = 0; a < o.writes.size(); ++a) {
    const auto is_part = [a = static_cast<int>(a)](const view& v) {
      return v.written && v.accesses.first <= a && a < v.accesses.first + v.accesses.count;
    };
    if (std::none_of(o.views.begin(), o.views.end(), is_part)) out.push_back(o.writes[a]);
  }
  return out;
}

/// Whether a result or scratch overlaps another operand, except where the row allows that.
bool destroys_operands(const op& o, const row& r, const std::vector<operand>& at) {
  for (const rankc::codegen::access& s : scratch_of(o))
    for (const operand& p : at)
      if (p.meets(s.begin, s.end)) return true;
  for (std::size_t w = 0; w < at.size(); ++w)
    for (std::size_t v = 0; o.views[w].written && v < at.size(); ++v) {
      const bool is_judged = v == w || (o.views[v].written && v < w);
      if (is_judged || !at[w].meets(at[v])) continue;
      if (o.views[v].written || !at[w].same_place(at[v]) ||
          !may_lie_over(r, o.views[w].port, o.views[v].port))
        return true;
    }
  return false;
}

void compute_row(rank_state& rank, const op& o, const model_run& m) {
  const row& r = find_row(o.row);
  const signature& ports = ports_of(r);
  expect(o.views.size() == ports.in.size() + ports.out.size(),
         "an op of another number of operands than its row");
  std::vector<operand> at;
  for (const view& v : o.views) {
    at.push_back(operand_of(o, v));
    expect(takes(o.row, v.port, v.written, at.back().type), "a kernel of elements of another type");
  }
  for (std::size_t i = 0; i < at.size(); ++i)
    if (!takes_stride(r, o.views[i].port)) at[i].stride = at[i].is.cols;
  std::vector<read_number> reads;
  call c;
  c.rows = o.rows;
  c.seq = o.seq;
  c.number = o.number;
  c.attention = o.attention;
  c.rounds = rounding_of(o.row);
  c.held_to = &m.attributes;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const view& v = o.views[i];
    if (v.written) c.want(v.port, at[i].is, v.first);
    else {
      c.give(v.port, load(rank.arena, at[i]), v.first);
      reads.push_back({at[i].type, sum_of(rank.arena, at[i])});
    }
  }
  run(r, c);
  const bool reads_rounded = std::any_of(reads.begin(), reads.end(),
                                         [](const read_number& n) { return n.sum == token_sum::in_bf16; });
  const bool destroyed =
      !c.agrees || destroys_operands(o, r, at) || (reads_rounded && !may_read_rounded_sums(o.row));
  std::vector<matrix> results;
  std::vector<token_sum> sums;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (!o.views[i].written) continue;
    matrix made = c.result(o.views[i].port);
    if (destroyed)
      for (std::size_t k = 0; k < made.of.size(); ++k)
        made.of[k] = draw(mix(mix(key_of_op(rank, o), k), made.of[k]));
    if (o.views[i].adds) {
      const matrix before = load(rank.arena, at[i]);
      for (std::size_t k = 0; k < made.of.size(); ++k) made.of[k] = add(made.of[k], before.of[k]);
    }
    sums.push_back(sum_in_result(o.row, o.views[i].port, at[i].type, reads));
    if (o.views[i].adds) sums.back() = std::max(sums.back(), sum_of(rank.arena, at[i]));
    results.push_back(std::move(made));
  }
  for (const rankc::codegen::access& s : scratch_of(o)) rank.arena.spoil(s.begin, s.end, key_of_op(rank, o));
  for (std::size_t i = 0, next = 0; i < at.size(); ++i)
    if (o.views[i].written) {
      store(rank.arena, at[i], results[next], sums[next]);
      ++next;
    }
}

void sum_squares(rank_state& rank, const op& o) {
  element sum = 0;
  const view* norm = nullptr;
  for (const view& v : o.views) {
    if (v.written) {
      expect(!norm && v.port == "norm", "sum_squares writes one number");
      norm = &v;
    } else {
      for (element e : load(rank.arena, operand_of(o, v)).of) sum = add(sum, multiply(e, e));
    }
  }
  expect(norm, "sum_squares writes nothing");
  const operand to = operand_of(o, *norm);
  expect(to.is.size() == 1, "sum_squares writes one number");
  if (norm->adds) sum = add(sum, rank.arena.load(to.begin, to.type));
  rank.arena.store(to.begin, to.type, sum, norm->adds ? rank.arena.sum_at(to.begin) : token_sum::none);
}

/// The holding of the weight that begin put at this address.
const rankc::codegen::holding* weight_at(const rank_state& rank, std::size_t begin) {
  const op& first = rank.program->ops.front();
  for (std::size_t k = 0; k < first.holds.size() && k < first.writes.size(); ++k)
    if (first.holds[k].kind == rankc::codegen::holding_kind::weight && first.writes[k].begin == begin)
      return &first.holds[k];
  return nullptr;
}

/// Update parameters. Each reads its weight, gradient and moments, and writes its weight, moments and perhaps
/// a working copy.
void update(rank_state& rank, const op& o, const model_run& m, std::string& difference) {
  struct parameter {
    const view *weight = nullptr, *gradient = nullptr, *first_moment = nullptr, *second_moment = nullptr;
    std::vector<const view*> written;
  };
  std::vector<parameter> all;
  const view* norm = nullptr;
  for (const view& v : o.views) {
    if (v.written) {
      expect(!all.empty(), "an update writes before it reads");
      all.back().written.push_back(&v);
    } else if (v.port == "norm") norm = &v;
    else if (v.port == "weight" || v.port == "undecayed_weight" || v.port == "balanced_weight")
      all.emplace_back().weight = &v;
    else if (v.port != "padding") {
      expect(!all.empty(), "an update reads no weight");
      parameter& p = all.back();
      if (v.port == "gradient") p.gradient = &v;
      else if (v.port == "first_moment") p.first_moment = &v;
      else p.second_moment = &v;
    }
  }
  expect(norm, "an update reads no norm");
  const operand at_norm = operand_of(o, *norm);
  const element norm_squared = rank.arena.load(at_norm.begin, at_norm.type);
  if (difference.empty() && sum_of(rank.arena, at_norm) == token_sum::in_bf16)
    difference = "a norm whose parts were sent in bf16: \"" + o.name + "\"";
  for (const parameter& p : all) {
    const int moments = (p.first_moment != nullptr) + (p.second_moment != nullptr);
    expect(p.weight && p.gradient && moments == (o.row == "adamw" ? 2 : m.optimizer.moments),
           "an update reads not all of a parameter");
    const auto read = [&](const view* v) { return load(rank.arena, operand_of(o, *v)); };
    const matrix weight = read(p.weight), gradient = read(p.gradient), none(weight.is);
    const matrix first = p.first_moment ? read(p.first_moment) : none,
                 second = p.second_moment ? read(p.second_moment) : none;
    expect(weight.of.size() == gradient.of.size() && weight.of.size() == first.of.size() &&
               weight.of.size() == second.of.size(),
           "an update's sizes differ");
    if (const rankc::codegen::holding* h = weight_at(rank, operand_of(o, *p.weight).begin);
        h && difference.empty())
      if (const auto known = m.parameters.find(h->name); known != m.parameters.end()) {
        difference = compare(rank, access_of(o, *p.gradient), *h, m, false, &known->second.gradient);
        const bool is_rounded = sum_of(rank.arena, operand_of(o, *p.gradient)) == token_sum::in_bf16;
        if (difference.empty() && is_rounded && !may_be_sent_in_bf16(known->second.balances, m.optimizer))
          difference = "the gradient of " + h->name + " was sent in bf16: \"" + o.name + "\"";
      }
    if (difference.empty() && sum_of(rank.arena, operand_of(o, *p.gradient)) == token_sum::narrowed)
      difference = "a gradient was kept in a type narrower than its sums are made in: \"" + o.name + "\"";
    matrix new_weight(weight.is), new_first(weight.is), new_second(weight.is);
    for (std::size_t i = 0; i < weight.of.size(); ++i) {
      const updated u = field::update(o.row, weight.of[i], gradient.of[i], first.of[i], second.of[i],
                                      norm_squared, p.weight->port == "weight", p.weight->balances);
      new_weight.of[i] = u.weight;
      new_first.of[i] = u.first_moment;
      new_second.of[i] = u.second_moment;
    }
    for (const view* v : p.written) {
      const operand to = operand_of(o, *v);
      expect(to.is.size() == weight.is.size(), "an update's sizes differ");
      if (v->port == "first_moment") store(rank.arena, to, new_first);
      else if (v->port == "second_moment") store(rank.arena, to, new_second);
      else store(rank.arena, to, new_weight);
    }
  }
}

}  // namespace

void compute(rank_state& rank, const op& o, const model_run& m, std::string& difference) {
  if (o.row.empty()) {
    expect(o.writes.empty() && o.views.empty(), "an op that writes and calls nothing");
    return;
  }
  if (o.row == "sum_squares") sum_squares(rank, o);
  else if (o.row == "adamw" || o.row == "sgd") update(rank, o, m, difference);
  else compute_row(rank, o, m);
}

}  // namespace field
