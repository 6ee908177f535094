// SPDX-License-Identifier: Apache-2.0
// A model and its program for two data-parallel ranks, written by hand: a table with a row of logits for each
// token, and their cross entropy. Eight tokens, 3 words, f64.
#pragma once
#include <rankc/codegen/equivalence.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace equivalence_tests {

using namespace rankc::codegen;
using rankc::codegen::access;  // unistd.h has a function of this name

inline constexpr std::int64_t tokens = 8, words = 3;

inline specification model_by_hand() {
  specification s;
  specification::layer l;
  l.name = "net";
  //           0 ids     1 targets  2 table           3 logits           4 top        5 sums       6 loss
  l.values = {{{tokens}},    {{tokens}}, {{words, words}}, {{tokens, words}}, {{tokens, 1}},
              {{tokens, 2}}, {{}}};
  l.ops = {{"embedding", {0, 2}, {3}},
           {"row_max", {3}, {4}},
           {"exp_sums", {3, 4, 1}, {5}},
           {"cross_entropy", {5}, {6}, 0, 0, 0.125}};
  l.input = 0;
  l.inputs = {{"targets", 1}};
  l.result = 6;
  l.parameters = {{"table", 2}};
  s.layers = {l};
  s.uses = {{0, "net", {"table"}}};
  s.tokens = tokens;
  return s;
}

inline constexpr std::size_t arena_by_hand = 1 << 15;

/// A rank's program, with the address and the current value of each named buffer.
class rank_by_hand {
 public:
  explicit rank_by_hand(int rank) : next_value_(100 * rank) {}

  /// A view of a named buffer, which may be larger than the view.
  struct operand {
    const char *port, *name;
    tensor_shape shape;
    bool adds = false;
    std::int64_t stored = 0,
                 offset = 0;  // in elements: the buffer's size (0: the view's), and where the view begins
    bool keeps = false;       // written: the rest of the buffer keeps its content
  };

  op& add(op_kind kind, const char* name) {
    op& o = made.ops.emplace_back();
    o.kind = kind;
    o.name = name;
    return o;
  }
  /// An op of a row with its results, then its operands. `number`: 0 if the row takes none.
  op& kernel(const char* row, const std::vector<operand>& results, const std::vector<operand>& operands,
             double number = 0) {
    op& o = add(op_kind::compute, row);
    o.row = row;
    o.number = number;
    if (number != 0) o.given = {number};
    for (const operand& r : results) {
      if (r.adds || r.keeps) o.reads.push_back(access_of(r));
      o.views.push_back(view_of(r, true, o.writes.size()));
      o.writes.push_back(access_of(r));
    }
    for (const operand& x : operands) {
      o.views.push_back(view_of(x, false, o.reads.size()));
      o.reads.push_back(access_of(x));
    }
    replace(o);
    rename(o);
    return o;
  }
  op& all_reduce(const operand& x, int over = 0) {
    return collective(collective_kind::all_reduce, over, {x}, {x});
  }
  op& collective(collective_kind does, int over, const std::vector<operand>& from,
                 const std::vector<operand>& to) {
    op& o = add(op_kind::collective, collective_kind_names[static_cast<int>(does)]);
    o.does = does;
    o.communicator = over;
    for (const operand& x : from) o.reads.push_back(access_of(x));
    for (const operand& x : to) o.writes.push_back(access_of(x));
    for (const access& a : does == collective_kind::reduce_scatter ? o.writes : o.reads)
      o.bytes += a.end - a.begin;
    replace(o);
    rename(o);
    return o;
  }
  void begins(op& o, const operand& x, const holding& h) {
    o.writes.push_back(access_of(x));
    o.holds.push_back(h);
    rename(o);
  }
  void ends(op& o, const operand& x, const holding& h) {
    o.reads.push_back(access_of(x));
    o.holds.push_back(h);
  }

  rank_program made;

 private:
  struct place {
    std::string name;
    std::size_t begin;
    int value;
  };
  /// Places are 1024 bytes apart. The second microbatch of an input is right behind the first.
  place& find(const std::string& name, std::size_t bytes) {
    for (place& p : places_)
      if (p.name == name) return p;
    std::size_t begin = 1024 * places_.size();
    if (name == "ids1") begin = find("ids0", bytes).begin + bytes;
    if (name == "targets1") begin = find("targets0", bytes).begin + bytes;
    return places_.emplace_back(place{name, begin, next_value_++});
  }
  access access_of(const operand& x) {
    const std::string name = x.name;
    const bool ids = name.starts_with("ids") || name.starts_with("targets");
    std::size_t elements = 1;
    for (const std::int64_t size : x.shape) elements *= static_cast<std::size_t>(size);
    const std::size_t bytes = (ids ? 4 : 8) * (x.stored > 0 ? static_cast<std::size_t>(x.stored) : elements);
    const place& p = find(name, bytes);
    return {p.begin, p.begin + bytes, p.value, ids ? element_type::i32 : element_type::f64};
  }
  static view view_of(const operand& x, bool written, std::size_t access) {
    view v{.port = x.port,
           .written = written,
           .adds = x.adds,
           .accesses = {static_cast<int>(access), 1},
           .offset = 8 * static_cast<std::size_t>(x.offset),
           .shape = x.shape};
    if (x.shape.ndim == 2) v.stride = x.shape[1];
    return v;
  }
  /// A write replaces a read of the same bytes.
  static void replace(op& o) {
    for (access& w : o.writes)
      for (std::size_t i = 0; i < o.reads.size(); ++i)
        if (o.reads[i].begin == w.begin && o.reads[i].end == w.end) w.replaces = static_cast<int>(i);
  }
  /// Each write of an op begins a new value.
  void rename(op& o) {
    for (access& a : o.writes)
      for (place& p : places_)
        if (p.begin == a.begin) a.value = p.value = next_value_++;
  }
  int next_value_;
  std::vector<place> places_;
};

/// The program of two ranks with two microbatches each, and the proof of its order.
struct program_by_hand {
  program p;
  verdict order;
};

inline program_by_hand two_ranks_by_hand() {
  program_by_hand all;
  all.p.communicators = {{"dp", {0, 1}}};
  all.p.step = "train";
  constexpr std::int64_t t = tokens / 4;  // tokens of a microbatch on one rank
  using operand = rank_by_hand::operand;
  const tensor_shape vector{{t}, 1}, logits{{t, words}, 2}, top{{t, 1}, 2}, pair{{t, 2}, 2},
      table{{words, words}, 2}, number{};
  const operand w{"weight", "w", table}, m{"first_moment", "m", table}, v{"second_moment", "v", table},
      g{"gradient", "g", table};
  for (int r = 0; r < 2; ++r) {
    rank_by_hand rank(r);
    op& begin = rank.add(op_kind::begin, "begin");
    const std::vector<box_range> whole{{0, words}, {0, words}};
    rank.begins(begin, w, {.kind = holding_kind::weight, .name = "table", .box = whole});
    rank.begins(begin, m, {.kind = holding_kind::first_moment, .name = "table", .box = whole});
    rank.begins(begin, v, {.kind = holding_kind::second_moment, .name = "table", .box = whole});
    const char *ids[]{"ids0", "ids1"}, *targets[]{"targets0", "targets1"};
    for (int k = 0; k < 2; ++k) {
      const std::vector<box_range> own{{(2 * k + r) * t, t}};
      rank.begins(begin, {"", ids[k], vector}, {.kind = holding_kind::ids, .box = own});
      rank.begins(begin, {"", targets[k], vector}, {.kind = holding_kind::targets, .box = own});
    }
    for (int k = 0; k < 2; ++k) {
      const bool adds = k > 0;
      rank.kernel("embedding", {{"y", "x", logits}}, {{"ids", ids[k], vector}, {"table", "w", table}});
      rank.kernel("row_max", {{"top", "top", top}}, {{"logits", "x", logits}});
      rank.kernel("exp_sums", {{"sums", "sums", pair}},
                  {{"logits", "x", logits}, {"top", "top", top}, {"targets", targets[k], vector}});
      rank.kernel("cross_entropy", {{"loss", "loss", number, adds}}, {{"sums", "sums", pair}}, 0.125);
      rank.kernel("cross_entropy_grad", {{"dsums", "dsums", pair}}, {{"sums", "sums", pair}}, 0.125);
      rank.kernel("exp_sums_grad", {{"dlogits", "dx", logits}},
                  {{"dsums", "dsums", pair},
                   {"logits", "x", logits},
                   {"top", "top", top},
                   {"targets", targets[k], vector}});
      rank.kernel("embedding_grad", {{"dtable", "g", table, adds}},
                  {{"dy", "dx", logits}, {"ids", ids[k], vector}});
    }
    rank.all_reduce(g);
    rank.all_reduce({"", "loss", number});
    op& squares = rank.kernel("sum_squares", {{"norm", "norm", number}}, {g});
    std::swap(squares.views[0], squares.views[1]);
    op& last = rank.kernel("adamw", {w, m, v}, {w, g, m, v, {"norm", "norm", number}});
    std::rotate(last.views.begin(), last.views.begin() + 3, last.views.begin() + 7);
    op& end = rank.add(op_kind::end, "end");
    rank.ends(end, w, {.kind = holding_kind::weight, .name = "table", .box = whole});
    rank.ends(end, m, {.kind = holding_kind::first_moment, .name = "table", .box = whole});
    rank.ends(end, v, {.kind = holding_kind::second_moment, .name = "table", .box = whole});
    rank.ends(end, {"", "norm", number}, {.kind = holding_kind::norm});
    rank.ends(end, {"", "loss", number}, {.kind = holding_kind::loss});
    std::vector<int>& places = all.order.position.emplace_back();
    for (std::size_t i = 0; i < rank.made.ops.size(); ++i) places.push_back(static_cast<int>(i));
    all.p.ranks.push_back(std::move(rank.made));
    all.p.ranks.back().arena_bytes = arena_by_hand;
  }
  all.p.streams = 1;
  all.p.calls.on_host = true;
  all.order.ok = true;
  return all;
}

/// The reason why a program is refused; empty if it is accepted.
inline std::string reason(const program_by_hand& x, const specification& model) {
  const equivalence e = check_equivalence(x.p, x.order, model);
  return e.holds ? "" : e.reasons.at(0);
}
/// The n-th op with this name on a rank.
inline op& find(program_by_hand& x, int rank, std::string_view name, int n = 0) {
  for (op& o : x.p.ranks.at(static_cast<std::size_t>(rank)).ops)
    if (o.name == name && n-- == 0) return o;
  throw std::logic_error("no such op");
}

}  // namespace equivalence_tests
