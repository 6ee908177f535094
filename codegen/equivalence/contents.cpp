// SPDX-License-Identifier: Apache-2.0
#include "contents.hpp"

#include <fmt/format.h>

#include <utility>

#include "sight.hpp"

namespace rankc::codegen::algebra {

std::string_view holding::unfinished() const {
  for (int i = 0; i < sum.size(); ++i)
    for (int a = 0; a < sum[i].over.size(); ++a)
      if (sum[i].over[a].how != joining::sum)
        return sum[i].over[a].how == joining::maximum ? "a maximum" : "a softmax";
  return "";
}

term holding::closed() const {
  term all = zero;
  for (int i = 0; i < sum.size(); ++i) all = all + sum[i].of;
  return all;
}

namespace {

/// The only axis in which two parts of a term differ. -1: none. -2: several, or the parts have different
/// axes.
int differing_axis(const summand& x, const summand& y) {
  if (x.over.size() != y.over.size()) return -2;
  int found = -1;
  for (int a = 0; a < x.over.size(); ++a) {
    if (x.over[a].id != y.over[a].id) return -2;
    if (x.over[a].done == y.over[a].done) continue;
    if (found >= 0) return -2;
    found = a;
  }
  return found;
}

void drop_whole(summand& s) {
  for (int a = s.over.size() - 1; a >= 0; --a)
    if (s.over[a].done.is(0, s.over[a].size)) s.over.erase(a);
}

void add_whole(few<summand, 1>& sum, term of) {
  for (int i = 0; i < sum.size(); ++i)
    if (sum[i].is_whole()) {
      sum[i].of = sum[i].of + of;
      if (sum[i].of.is_zero()) sum.erase(i);
      return;
    }
  summand s;
  s.of = of;
  sum.push_back(std::move(s));
}

struct elements_of_axis {
  char letter = 0;  // 0: none
  runs at;
};

/// Unites a part with a part of a sum. If the union is whole over an axis, unites it with further parts.
/// Returns whether it united any. `twice`: the elements that both parts have, if only these prevent it.
bool unite(few<summand, 1>& sum, const summand& more, elements_of_axis& twice) {
  for (int i = 0; i < sum.size(); ++i) {
    summand& s = sum[i];
    if (s.of != more.of || s.is_whole()) continue;
    const int axis = differing_axis(s, more);
    interval both;
    if (axis == -1) twice = {s.over[0].letter, s.over[0].done};
    if (axis < 0) continue;
    if (!s.over[axis].done.unite(more.over[axis].done, both)) {
      twice = {s.over[axis].letter, {both.begin, both.end}};
      continue;
    }
    const int axes = s.over.size();
    drop_whole(s);
    if (s.over.size() == axes) return true;
    const summand fewer = s;
    sum.erase(i);
    algebra::add(sum, fewer);
    return true;
  }
  return false;
}

}  // namespace

refusal counted_twice(const std::string& elements) {
  return refusal("RC7500: the sum counts {} twice", elements);
}

void check_same_box(const holding& to, const holding& more) {
  if (!(to.box == more.box))
    throw refusal("RC7501: {} are added to {}; expected the same elements", text_of(more.box),
                  text_of(to.box));
}

void check_addable(const holding& h) {
  if (!h.unfinished().empty())
    throw refusal(
        "RC7502: {} over only some of its elements is added to another value; merge its parts first",
        h.unfinished());
}

void add(few<summand, 1>& sum, summand more) {
  drop_whole(more);
  elements_of_axis twice;
  if (more.is_whole()) add_whole(sum, more.of);
  else if (!unite(sum, more, twice)) sum.push_back(std::move(more));
}

namespace {

/// Whether both have a box, so that they can be added. Otherwise `to` becomes the holding that has a box.
bool have_one_box(holding& to, const holding& more) {
  if (more.any) return false;
  if (to.any) {
    to = more;
    return false;
  }
  check_same_box(to, more);
  check_addable(to);
  check_addable(more);
  return true;
}

}  // namespace

void add(holding& to, const holding& more) {
  if (!have_one_box(to, more)) return;
  to.of_tokens |= more.of_tokens;
  to.in_bf16 |= more.in_bf16;
  for (int i = 0; i < more.sum.size(); ++i) add(to.sum, more.sum[i]);
}

void add_of_member(holding& to, const holding& more) {
  if (!have_one_box(to, more)) return;
  to.of_tokens |= more.of_tokens;
  to.in_bf16 |= more.in_bf16;
  for (int i = 0; i < more.sum.size(); ++i) {
    elements_of_axis twice;
    if (!more.sum[i].is_whole() && unite(to.sum, more.sum[i], twice)) continue;
    if (twice.letter != 0) throw counted_twice(text_of(twice.letter, twice.at));
    add(to.sum, more.sum[i]);
  }
}

void take_maximum(holding& to, const holding& with) {
  if (!(to.box == with.box))
    throw refusal("RC7503: a maximum is taken of {} and {}; expected the same elements", text_of(to.box),
                  text_of(with.box));
  if (to.sum.size() != 1 || with.sum.size() != 1 || to.sum[0].of != with.sum[0].of)
    throw refusal("RC7504: a maximum is taken of two different values");
  summand& s = to.sum[0];
  const summand& other = with.sum[0];
  if (s.over.size() != 1 || other.over.size() != 1 || s.over[0].how != joining::maximum ||
      other.over[0].how != joining::maximum || s.over[0].id != other.over[0].id)
    throw refusal("RC7505: a maximum is taken of values that are not maxima over parts of one axis");
  interval twice;
  runs all = s.over[0].done;
  if (!all.unite(other.over[0].done, twice))
    throw refusal("RC7506: the maximum counts {} twice", text_of(s.over[0].letter, {twice.begin, twice.end}));
  s.over[0].done = all;
  drop_whole(s);
}

namespace {

const pending& part_of_softmax(const holding& h) {
  if (h.sum.size() != 1 || h.sum[0].over.size() != 1 || h.sum[0].over[0].how != joining::softmax)
    throw refusal("RC7507: a value that is not a softmax over a part of the keys is merged with one");
  return h.sum[0].over[0];
}

/// Whether `part` is a part of the whole value without any keys. Its merge into the whole changes nothing.
bool is_without_keys(const holding& whole, const holding& part) {
  if (whole.sum.size() != 1 || !whole.is_whole()) return false;
  return part_of_softmax(part).done.count() == 0 && part.sum[0].of == whole.sum[0].of &&
         part.box == whole.box;
}

}  // namespace

bool has_keys(const holding& part, const runs& positions) {
  return part.is_whole() || common(positions, part_of_softmax(part).done) == positions;
}

void merge_parts(holding& to, const holding& weight, const holding& with, const holding& weight_of_other) {
  if (is_without_keys(to, with) && is_without_keys(weight, weight_of_other)) return;
  if (is_without_keys(with, to) && is_without_keys(weight_of_other, weight)) {
    to = with;
    return;
  }
  const pending own = part_of_softmax(to), other = part_of_softmax(with);
  for (const auto& [part, w] : {std::pair(&own, &weight), {&other, &weight_of_other}})
    if (const pending& of = part_of_softmax(*w); of.id != part->id) {
      throw refusal(
          "RC7788: parts of a softmax are merged with log-sum-exps of other scores; expected those of the "
          "same queries, keys, documents, window, softcap, scale and heads");
    } else if (!(of.done == part->done)) {
      throw refusal("RC7508: the log-sum-exp over {} is given for a softmax over {}",
                    text_of(of.letter, of.done), text_of(part->letter, part->done));
    }
  if (own.id != other.id || to.sum[0].of != with.sum[0].of || weight.sum[0].of != weight_of_other.sum[0].of ||
      !(to.box == with.box))
    throw refusal("RC7509: parts of two different softmaxes are merged");
  interval twice;
  if (!to.sum[0].over[0].done.unite(other.done, twice))
    throw refusal("RC7510: the softmax counts {} twice", text_of(other.letter, {twice.begin, twice.end}));
  drop_whole(to.sum[0]);
}

holding cut(const holding& of, std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
  holding out;
  out.sum = of.sum;
  out.any = of.any;
  out.of_tokens = of.of_tokens;
  out.in_bf16 = of.in_bf16;
  out.share = of.share;
  const int n = of.box.size();
  const bool has_all_heads = n < 2 || cols == of.box[1].at.size();
  if (of.share > 0 && (row % of.share || rows % of.share || !has_all_heads))
    throw refusal(
        "RC7784: rows {}..{} and columns {}..{} of log-sum-exps are read; log-sum-exps are stored by head, "
        "in runs of {} tokens of a sequence, so expected all heads of all tokens of a run",
        row, row + rows - 1, col, col + cols - 1, of.share);
  for (int d = 0; d < n; ++d) {
    const bool is_row = n == 2 && d == 0;
    const part& p = of.box[d];
    out.box.push_back({p.at.slice(is_row ? row : col, is_row ? rows : cols), p.size, p.arranged});
    if (p.is_arranged() && !(out.box.back().at == p.at))
      throw refusal(
          "RC7511: a part of the expert slots is read; their order depends on the data, so only all of them "
          "are known");
  }
  return out;
}

std::int64_t count(const few<part, 2>& box) {
  std::int64_t n = 1;
  for (int d = 0; d < box.size(); ++d) n *= box[d].at.size();
  return n;
}

std::string text_of(const few<part, 2>& box) {
  if (box.empty()) return "a number";
  std::string text;
  for (int d = 0; d < box.size(); ++d) {
    const bool is_rows = d == 0 && box.size() == 2;
    std::string run = text_of(is_rows ? 'r' : 'c', box[d].at);
    text += (d ? " x " : "") + run.substr(run.find(' ') + 1) + fmt::format(" of {}", box[d].size);
  }
  return "elements " + text;
}

}  // namespace rankc::codegen::algebra
