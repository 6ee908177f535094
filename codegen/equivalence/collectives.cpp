// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rankc::codegen::algebra {

namespace {

bool is_zeros(const content& c) { return c.pieces.size() == 1 && c.pieces[0].holds.any; }

/// All that a member gives is known.
void check_known(const content& c) {
  std::int64_t known = 0;
  for (int i = 0; i < c.pieces.size(); ++i) known += c.pieces[i].at.rows * c.pieces[i].at.cols;
  if (known != c.elements())
    throw refusal(fmt::format("nothing is known to have written {} of the {} elements that a member gives", c.elements() - known, c.elements()));
}

const piece& same_piece(const content& c, const place& at) {
  for (int i = 0; i < c.pieces.size(); ++i)
    if (c.pieces[i].at == at) return c.pieces[i];
  throw refusal("its members hold tensors of other shapes");
}

/// One more along the line of members that the first two begin.
class line_of_members {
 public:
  line_of_members(int members) : members_(members) {}

  holding sum(const holding& first, const holding& second) const {
    if (first.any && second.any) return first;
    if (!(first.box == second.box))
      throw refusal(fmt::format("{} are added to {}", text_of(second.box), text_of(first.box)));
    if (first.is_maximum()) throw refusal("a maximum that is not yet over all is added up");
    holding all;
    all.box = first.box;
    if (first.sum.size() != second.sum.size()) throw refusal("its members hold sums of other terms");
    for (int i = 0; i < first.sum.size(); ++i)
      add(all.sum, further(first.sum[i], find(second, first.sum[i])));
    return all;
  }
  holding maximum(const holding& first, const holding& second) const {
    holding all = first;
    take_maximum(all, second);  // of the first two, which shows that there is one
    if (first.sum[0].over.size() != 1) return all;
    all.sum = {};
    summand s = further(first.sum[0], second.sum[0]);
    if (s.over[0].done.is(0, s.over[0].size)) s.over.erase(0);
    all.sum.push_back(std::move(s));
    return all;
  }

 private:
  static const summand& find(const holding& h, const summand& like) {
    for (int i = 0; i < h.sum.size(); ++i)
      if (h.sum[i].of == like.of && h.sum[i].over.size() == like.over.size()) return h.sum[i];
    throw refusal("its members hold sums of other terms");
  }
  summand further(const summand& first, const summand& second) const {
    summand all = first;
    bool differs = false;
    for (int a = 0; a < first.over.size(); ++a) {
      const pending &x = first.over[a], &y = second.over[a];
      if (x.id != y.id) throw refusal("its members hold sums over other axes");
      if (x.done == y.done) continue;
      if (differs) throw refusal("its members hold sums that differ in two axes");
      differs = true;
      all.over[a].done = union_of(x.letter, x.done, y.done, members_);
      if (x.letter == rows_of_parameter) all.over[a].done = without_padding(all.over[a].done, x.size, members_);
    }
    if (!differs && !first.is_whole())
      throw refusal(text_of(first.over[0].letter, first.over[0].done) + " are in the sum twice");
    if (!differs) all.of = static_cast<word>(members_) * all.of;
    return all;
  }

  int members_;
};

content reduce(bool maximum, const std::vector<const content*>& given, int members) {
  const bool in_line = static_cast<int>(given.size()) < members;
  content all = *given[0];
  for (std::size_t m = 1; m < given.size(); ++m) {
    const content& other = *given[m];
    if (is_zeros(all) && !in_line) {
      all = other;
      continue;
    }
    if (is_zeros(other) && !in_line) continue;
    if (all.pieces.size() != other.pieces.size()) throw refusal("its members hold tensors of other shapes");
    for (int i = 0; i < all.pieces.size(); ++i) {
      holding& h = all.pieces[i].holds;
      const holding& more = same_piece(other, all.pieces[i].at).holds;
      if (in_line)
        h = maximum ? line_of_members(members).maximum(h, more) : line_of_members(members).sum(h, more);
      else if (maximum) take_maximum(h, more);
      else add_of_member(h, more);
    }
  }
  return all;
}

bool is_alike(const holding& x, const holding& y) {
  bool alike = !x.any && !y.any && x.box.size() == y.box.size() && x.sum.size() == y.sum.size();
  for (int d = 1; alike && d < x.box.size(); ++d) alike = x.box[d] == y.box[d];
  for (int i = 0; alike && i < x.sum.size(); ++i)
    alike = x.sum[i].of == y.sum[i].of && x.sum[i].over == y.sum[i].over;
  return alike;
}

/// Join a piece to one that it continues, with further rows or, of one dim, with further elements.
/// False where there is none.
bool continue_piece(content& all, const piece& more) {
  for (int i = 0; i < all.pieces.size(); ++i) {
    piece& p = all.pieces[i];
    if (!is_alike(p.holds, more.holds)) continue;
    const std::int64_t pitch = more.at.offset - p.at.offset - (p.at.rows - 1) * p.at.pitch;
    const auto has_pitch = [pitch](const place& at) { return at.rows == 1 || at.pitch == pitch; };
    if (p.holds.box.size() == 1) {
      if (pitch != p.at.cols) continue;
      p.at.cols += more.at.cols;
      p.at.pitch = p.at.cols;
    } else {
      if (p.at.cols != more.at.cols || pitch < p.at.cols || !has_pitch(p.at) || !has_pitch(more.at)) continue;
      p.at.pitch = pitch;
      p.at.rows += more.at.rows;
    }
    p.holds.box[0].at.append(more.holds.box[0].at);
    return true;
  }
  return false;
}

/// What members hold, one after the other.
content gather(const std::vector<const content*>& given) {
  content all{given[0]->bytes * given.size(), given[0]->type, {}};
  for (std::size_t m = 0; m < given.size(); ++m)
    for (int i = 0; i < given[m]->pieces.size(); ++i) {
      piece p = given[m]->pieces[i];
      p.at.offset += static_cast<std::int64_t>(m) * given[m]->elements();
      if (!p.holds.any && p.holds.box.empty()) throw refusal("numbers are concatenated");
      if (p.holds.any) append_zeros(all, p.at.offset, p.at.rows * p.at.cols);
      else if (m == 0) all.pieces.push_back(std::move(p));
      else if (!continue_piece(all, p)) throw refusal("its members hold parts of different values");
    }
  return all;
}

/// The members' elements in their order, of an axis of so many. Of a parameter whose rows do not divide, the last
/// members have fewer than a row each beyond its end.
runs shards_in_line(const part& first, const runs& second, int members) {
  std::int64_t by = 0;
  if (!first.at.is_shifted(second, by)) throw refusal("its members hold parts that do not follow on each other");
  runs all;
  for (int k = 0; k < members; ++k) all.append(first.at.shifted(k * by));
  return without_padding(all, first.size, members);
}

bool reaches_end(const part& p) { return p.at.count() == 1 && p.at[0].end == p.size; }

/// What so many members hold, one after the other, of whom the first two are given. What there is of a parameter may
/// end before they do.
content gather_line(const content& first, const content& second, int members) {
  content all{first.bytes * static_cast<std::size_t>(members), first.type, {}};
  if (is_zeros(first) && is_zeros(second)) {
    append_zeros(all, 0, all.elements());
    return all;
  }
  if (is_zeros(second)) {  // the first has all that there is
    const tensor t = tensor_of(first);
    if (t.elements == 0 || t.holds->box.empty() || !reaches_end(t.holds->box[0]))
      throw refusal("its members hold parts of different values");
    all.pieces = first.pieces;
    append_zeros(all, first.elements(), all.elements() - first.elements());
    return all;
  }
  std::int64_t known = 0;
  for (int i = 0; i < first.pieces.size(); ++i) {
    piece p = first.pieces[i];
    const holding& more = same_piece(second, p.at).holds;
    if (!is_alike(p.holds, more)) throw refusal("its members hold parts of different values");
    if (p.holds.box.empty()) throw refusal("numbers are concatenated");
    const bool is_matrix = p.holds.box.size() == 2;
    if (is_matrix && p.at.rows == 1) p.at.pitch = first.elements();
    if (p.at.rows * p.at.pitch != first.elements()) throw refusal("its members hold no whole rows");
    runs& along = p.holds.box[0].at;
    along = shards_in_line(p.holds.box[0], more.box[0].at, members);
    if (is_matrix) p.at.rows = along.size();
    else p.at.cols = p.at.pitch = along.size();
    known += p.at.rows * p.at.cols;
    all.pieces.push_back(std::move(p));
  }
  if (known != all.elements() && all.pieces.size() > 1) throw refusal("its members hold no one tensor");
  append_zeros(all, known, all.elements() - known);
  return all;
}

/// Rows of a matrix that begin before an element. Errors: refusal where one ends behind it.
std::int64_t rows_before(const place& m, std::int64_t element) {
  const std::int64_t rows = std::clamp<std::int64_t>((element - m.offset + m.pitch - 1) / m.pitch, 0, m.rows);
  if (rows > 0 && m.offset + (rows - 1) * m.pitch + m.cols > element)
    throw refusal("its members hold no rows that can be shared out");
  return rows;
}

/// The part of a member: of each piece what is in these elements of the buffer.
content chunk(const content& all, int index, int members) {
  content part{all.bytes / static_cast<std::size_t>(members), all.type, {}};
  const std::int64_t begin = index * part.elements(), end = begin + part.elements();
  for (int i = 0; i < all.pieces.size(); ++i) {
    const piece& p = all.pieces[i];
    if (!p.holds.any && p.holds.box.empty()) throw refusal("its members hold no rows that can be shared out");
    const std::int64_t from = std::max(begin, p.at.offset), to = std::min(end, p.at.offset + p.at.rows * p.at.cols);
    if (p.holds.any && p.at.rows * p.at.cols == end_of(p.at) - p.at.offset) {
      if (from < to) append_zeros(part, from - begin, to - from);
    } else if (p.holds.box.size() == 1) {
      if (from < to)
        part.pieces.push_back({{from - begin, 1, to - from, to - from}, cut(p.holds, 0, 1, from - p.at.offset, to - from)});
    } else {
      const std::int64_t first = rows_before(p.at, begin), rows = rows_before(p.at, end) - first;
      if (rows > 0)
        part.pieces.push_back({{p.at.offset + first * p.at.pitch - begin, rows, p.at.cols, rows > 1 ? p.at.pitch : p.at.cols},
                               cut(p.holds, first, rows, 0, p.at.cols)});
    }
  }
  return part;
}

}  // namespace

runs without_padding(const runs& all, std::int64_t size, int members) {
  const runs there = all.below(size);
  const std::int64_t past = all.size() - there.size();
  if (past > 0 && (all.count() != 1 || past >= members))
    throw refusal(fmt::format("its {} members hold {} of it; it has {}", members, text_of('w', all), size));
  return there;
}

runs union_of(char letter, const runs& first, const runs& second, int members) {
  std::int64_t by = 0;
  if (!first.is_shifted(second, by))
    throw refusal("what the members of a group hold is not the same, shifted");
  runs all;
  for (int k = 0; k < members; ++k) all.append(first.shifted(k * by));
  if (interval twice; !all.sort(twice))
    throw refusal(text_of(letter, {twice.begin, twice.end}) + " are in the sum twice");
  return all;
}

std::vector<content> combine(collective_kind does, const std::vector<const content*>& given, int members) {
  const std::size_t n = given.size();
  if (static_cast<int>(n) != members && n != 2)
    throw refusal(fmt::format("{} of its {} members are known; expected 2 or all", n, members));
  for (const content* c : given)
    if (c->bytes != given[0]->bytes || c->type != given[0]->type)
      throw refusal("its members hold other sizes");
  for (const content* c : given) check_known(*c);
  switch (does) {
    case collective_kind::all_reduce:
      return std::vector<content>(n, reduce(false, given, members));
    case collective_kind::all_reduce_max:
      return std::vector<content>(n, reduce(true, given, members));
    case collective_kind::all_gather:
      return std::vector<content>(n, static_cast<int>(n) == members ? gather(given)
                                                                    : gather_line(*given[0], *given[1], members));
    case collective_kind::reduce_scatter:
      break;
  }
  const content all = reduce(false, given, members);
  std::vector<content> parts;
  for (std::size_t m = 0; m < n; ++m) parts.push_back(chunk(all, static_cast<int>(m), members));
  return parts;
}

}  // namespace rankc::codegen::algebra
