// SPDX-License-Identifier: Apache-2.0
#include "blame.hpp"

#include <algorithm>
#include <utility>

namespace rankc::codegen::algebra {

void contributions::note(int rank, int op, int value, const operand& made) {
  for (int i = 0; i < made.tiles.size(); ++i) {
    const holding& h = *made.tiles[i].holds;
    for (int k = 0; k < h.sum.size(); ++k)
      for (int a = 0; a < h.sum[k].over.size(); ++a)
        if (h.sum[k].over[a].letter == 't')
          all_.push_back({rank, op, value, h.sum[k].of, h.box, h.sum[k].over[a].done});
  }
}

namespace {

using contribution = contributions::contribution;

runs common(const runs& x, const runs& y) {
  runs both;
  for (int i = 0; i < x.count(); ++i)
    for (int k = 0; k < y.count(); ++k)
      if (const interval in{std::max(x[i].begin, y[k].begin), std::min(x[i].end, y[k].end)};
          in.begin < in.end)
        both.append(in);
  return both;
}

bool meet(const few<part, 2>& x, const few<part, 2>& y) {
  bool all = x.size() == y.size();
  for (int d = 0; all && d < x.size(); ++d) all = common(x[d].at, y[d].at).count() > 0;
  return all;
}

class search {
 public:
  search(const program& p, const contributions& made, const missing_tokens& missing, int rank)
      : p_(p), made_(made), missing_(missing), rank_(rank) {}

  refusal run() const {
    const contribution* made = nullptr;
    for (const contribution& c : made_.all())
      if (is_part(c) && has_missing(c) && (!made || c.rank == rank_)) made = &c;
    return made ? follow(*made) : expect();
  }

 private:
  bool is_part(const contribution& c) const { return c.of == missing_.of && meet(c.box, missing_.box); }
  bool makes_parts(int rank) const {
    return std::any_of(made_.all().begin(), made_.all().end(),
                       [&](const contribution& c) { return c.rank == rank && is_part(c); });
  }
  bool has_missing(const contribution& c) const { return common(c.tokens, missing_.tokens).count() > 0; }
  const op& at(int rank, int index) const {
    return p_.ranks[static_cast<std::size_t>(rank)].ops[static_cast<std::size_t>(index)];
  }
  int number(int rank) const {
    const int n = p_.ranks[static_cast<std::size_t>(rank)].number;
    return n < 0 ? rank : n;
  }
  std::string tokens(const runs& of) const { return text_of('t', common(of, missing_.tokens)); }

  static const access* find(const std::vector<access>& in, int value) {
    for (const access& a : in)
      if (a.value == value) return &a;
    return nullptr;
  }

  /// Follows tokens that some op made: finds the op that overwrites them, or the value in which they remain.
  refusal follow(const contribution& c) const {
    const access* now = find(at(c.rank, c.op).writes, c.value);
    const op* has = &at(c.rank, c.op);
    for (int i = c.op + 1; i < static_cast<int>(p_.ranks[static_cast<std::size_t>(c.rank)].ops.size()); ++i) {
      const op& o = at(c.rank, i);
      const access* read = find(o.reads, now->value);
      const access* over = overlapping(o.writes, *now);
      if (!over && !(read && passes_on(o))) continue;
      if (over && !(read && (passes_on(o) || leaves(o, *over))))
        return refusal("RC7400: {} lacks {}: \"{}\" of rank {} writes over {} of \"{}\"", missing_.sum(),
                       missing_.elements(), o.name, number(c.rank), tokens(c.tokens), has->name);
      if (over) now = over;
      else now = &o.writes[o.row == "add" ? 0 : static_cast<std::size_t>(read - o.reads.data())];
      has = &o;
    }
    if (c.rank == rank_)
      return refusal("RC7401: {} lacks {}: rank {} does not read the result of \"{}\", which has {}",
                     missing_.sum(), missing_.elements(), number(c.rank), has->name, tokens(c.tokens));
    return refusal("RC7402: {} lacks {}: \"{}\" makes {} on rank {}, and no op adds them to those of rank {}",
                   missing_.sum(), missing_.elements(), at(c.rank, c.op).name, tokens(c.tokens),
                   number(c.rank), number(rank_));
  }
  static const access* overlapping(const std::vector<access>& in, const access& with) {
    for (const access& a : in)
      if (a.begin < with.end && with.begin < a.end) return &a;
    return nullptr;
  }
  /// Whether an op writes all tokens that it reads.
  static bool passes_on(const op& o) {
    return o.kind == op_kind::collective || o.row == "add" || o.row == "copy";
  }
  /// Whether an op adds to the buffer, or writes another part of it.
  static bool leaves(const op& o, const access& written) {
    const auto index = static_cast<int>(&written - o.writes.data());
    return std::any_of(o.views.begin(), o.views.end(), [&](const view& v) {
      return v.written && (v.adds || v.offset > 0) && v.accesses.first <= index &&
             index < v.accesses.first + v.accesses.count;
    });
  }

  /// Names the op that is expected to make tokens that no op made: the one that makes other tokens of this
  /// sum, in the action whose ops made these tokens for other sums.
  refusal expect() const {
    const contribution* like = nullptr;
    for (const contribution& c : made_.all())
      if (is_part(c) && (!like || c.rank == rank_)) like = &c;
    if (!like) return missing_;
    const std::string& name = at(like->rank, like->op).name;
    const std::string layer = layer_of(name);
    // Finds the contribution of the same layer that has the most of these tokens, on a rank that makes parts
    // of this sum. This rank wins a tie.
    const contribution* beside = nullptr;
    const auto rated = [&](const contribution& c) {
      return std::pair(common(c.tokens, missing_.tokens).size(), c.rank == rank_);
    };
    for (const contribution& c : made_.all())
      if (!layer.empty() && has_missing(c) && layer_of(at(c.rank, c.op).name) == layer &&
          makes_parts(c.rank) && (!beside || rated(c) > rated(*beside)))
        beside = &c;
    if (!beside)
      return refusal(
          "RC7403: {} lacks {}: \"{}\" of rank {} computes it for other tokens, and no op computes it for "
          "these",
          missing_.sum(), missing_.elements(), name, number(like->rank));
    const std::string expected =
        action_of(at(beside->rank, beside->op).name) + name.substr(action_of(name).size());
    return refusal("RC7404: {} lacks {}: \"{}\" of rank {} is expected to make {}", missing_.sum(),
                   missing_.elements(), expected, number(beside->rank), tokens(beside->tokens));
  }
  /// "1B5" of "1B5: layers.3: linear_dw", and "layers.3".
  static std::string action_of(const std::string& name) { return name.substr(0, name.find(": ")); }
  static std::string layer_of(const std::string& name) {
    const std::size_t begin = name.find(": "), end = name.find(": ", begin + 2);
    return begin == std::string::npos || end == std::string::npos ? ""
                                                                  : name.substr(begin + 2, end - begin - 2);
  }

  const program& p_;
  const contributions& made_;
  const missing_tokens& missing_;
  int rank_;
};

}  // namespace

refusal blame(const program& p, const contributions& made, const missing_tokens& missing, int rank) {
  return search(p, made, missing, rank).run();
}

}  // namespace rankc::codegen::algebra
