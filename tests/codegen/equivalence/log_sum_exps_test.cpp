// SPDX-License-Identifier: Apache-2.0
// Log-sum-exps of ring attention: those of another attention over the same queries and keys, and parts of
// those that lie head by head.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include "refused.hpp"

namespace log_sum_exps_test {

using namespace equivalence_tests;

namespace {

using rankc::codegen::access;

subject ring_of_two(bool evaluates) {
  using namespace rankc;
  const plan_data plan =
      make_plan("ring_of_two", models::gpt2{.layers = 1, .hidden = 16, .heads = 2, .ffn = 24, .vocab = 32},
                parallel_dims{.world = 2, .cp = 2, .cp_attention = cp_attention::ring}, schedules::gpipe{1},
                training{.seq = 16, .global_batch = 2, .precision = f32}, clusters::h200<256>);
  return {plan, target::host, dtype::f32, evaluates};
}
const subject& trained() {
  static const subject made = ring_of_two(false);
  return made;
}
const subject& evaluated() {
  static const subject made = ring_of_two(true);
  return made;
}

/// Results of an op, the first `count`, get values of their own in new bytes.
void put_apart(subject& s, rank_program& r, op& o, std::size_t count) {
  const int first_value = s.new_value();
  for (std::size_t w = 0; w < count; ++w) {
    access& a = o.writes.at(w);
    const std::size_t bytes = a.end - a.begin, before = a.begin;
    a = {(r.arena_bytes + 255) / 256 * 256, 0, first_value + static_cast<int>(w), a.type};
    a.end = a.begin + bytes;
    r.arena_bytes = a.end;
    *std::find(o.operands.begin(), o.operands.end(), before) = a.begin;
  }
}

/// The model has a second attention of the same queries, keys and values.
void attend_again(subject& s, const rankc::attention_setting& by) {
  for (specification::layer& l : s.model.layers)
    for (std::size_t i = 0; i < l.ops.size(); ++i) {
      if (l.ops[i].row != "attention") continue;
      specification::op more = l.ops[i];
      for (int& out : more.out) {
        l.values.push_back(l.values[static_cast<std::size_t>(out)]);
        out = static_cast<int>(l.values.size()) - 1;
      }
      more.attention = by;
      l.ops.insert(l.ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, more);
      return;
    }
}

/// Rank 0 computes the parts of another attention too, and merges the model's parts by their log-sum-exps.
void merge_by_another(subject& s, const rankc::attention_setting& by) {
  attend_again(s, by);
  rank_program& r = s.p.ranks[0];
  std::array<access, 2> log_sum_exps;
  for (const std::size_t part : {1u, 0u}) {
    const op* const own = s.find(0, "0F0", "ring_attention").at(part);
    op other = *own;
    other.attention = by;
    for (const double number : by.numbers()) other.given.push_back(number);
    put_apart(s, r, other, other.writes.size());
    log_sum_exps[part] = other.writes[1];
    s.insert_after(0, own, other);
  }
  // The merge by its own log-sum-exps goes before, because backward reads those that it leaves.
  op right = *s.find(0, "0F0", "merge_attention").at(0);
  put_apart(s, r, right, 1);
  s.insert_after(0, s.find(0, "0F0", "merge_attention").at(0) - 1, right);
  op& wrong = *s.find(0, "0F0", "merge_attention").at(1);
  wrong.writes[1].value = s.new_value();
  for (const std::size_t part : {0u, 1u}) {
    access& used = subject::read_of(wrong, part == 0 ? "lse_before" : "lse_more");
    *std::find(wrong.operands.begin(), wrong.operands.end(), used.begin) = log_sum_exps[part].begin;
    used = log_sum_exps[part];
  }
}

/// The rows [begin, end) of an op over `rows` sequences. Its results begin in bytes of their own.
op part_of(const op& whole, std::int64_t begin, std::int64_t end, std::int64_t rows) {
  op part = whole;
  part.rows = rows;
  part.given.at(0) = static_cast<double>(rows);
  part.operands.clear();
  for (view& v : part.views) {
    access& a = (v.written ? part.writes : part.reads)[static_cast<std::size_t>(v.accesses.first)];
    const std::size_t row = static_cast<std::size_t>(v.shape[1]) * element_size(a.type),
                      first = row * static_cast<std::size_t>(begin);
    v.shape.dim[0] = end - begin;
    if (v.written) {
      a.end = a.begin + row * static_cast<std::size_t>(end);
      a.begin += first;
    } else {
      v.offset = first;
    }
    part.operands.push_back(v.written ? a.begin : a.begin + first);
  }
  return part;
}

/// The parts of rank 0 are merged by three ops: of each half of its tokens of the first sequence, and of the
/// second sequence.
void merge_in_three(subject& s) {
  rank_program& r = s.p.ranks[0];
  op whole = *s.find(0, "0F0", "merge_attention").at(0);
  const access before = whole.writes[0];
  put_apart(s, r, whole, 2);
  const std::int64_t share = subject::port(whole, "o").shape[0] / whole.rows;
  std::vector<access> made;
  for (const std::int64_t n : {2, 1, 0}) {
    const std::int64_t begin = n * share / 2, end = n == 2 ? 2 * share : begin + share / 2;
    op part = part_of(whole, begin, end, 1);
    for (std::size_t w = 0; w < 2; ++w) part.writes[w].value = s.new_value() + static_cast<int>(w);
    made.insert(made.begin(), part.writes[0]);
    if (n > 0) s.insert_after(0, s.find(0, "0F0", "merge_attention").at(0), part);
    else *s.find(0, "0F0", "merge_attention").at(0) = part;
  }
  for (op& o : r.ops)
    for (std::size_t i = 0; i < o.reads.size(); ++i) {
      if (o.reads[i].value != before.value) continue;
      o.reads[i] = made[0];
      o.reads.insert(o.reads.begin() + static_cast<std::ptrdiff_t>(i) + 1, made.begin() + 1, made.end());
      for (view& v : o.views) {
        if (v.written) continue;
        if (v.accesses.first == static_cast<int>(i)) v.accesses.count = 3;
        else if (v.accesses.first > static_cast<int>(i)) v.accesses.first += 2;
      }
      for (access& w : o.writes)
        if (w.replaces > static_cast<int>(i)) w.replaces += 2;
      break;
    }
}

}  // namespace

TEST_CASE("rings to change are accepted as they are, with a second attention in the model too") {
  CHECK(trained().reason() == "");
  CHECK(evaluated().reason() == "");
  CHECK(fault(trained(), [](subject& s) { attend_again(s, {.window = 3}); }) == "");
}

TEST_CASE("parts of a softmax are merged by the log-sum-exps of other scores of the same queries and keys") {
  for (const rankc::attention_setting& by :
       {rankc::attention_setting{.window = 3}, {.softcap = 0.5}, {.scale = 0.7}, {.causal = false}})
    check_refused(trained(), said{7788, {}}, [&](subject& s) { merge_by_another(s, by); });
}

TEST_CASE(
    "log-sum-exps lie head by head in a rank's share of a sequence, so a half of them is of no tokens") {
  check_refused(evaluated(), 7784, merge_in_three);
}

}  // namespace log_sum_exps_test
