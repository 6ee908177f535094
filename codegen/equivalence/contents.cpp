// SPDX-License-Identifier: Apache-2.0
#include "contents.hpp"

#include <fmt/format.h>

namespace rankc::codegen::algebra {

bool holding::is_maximum() const {
  for (int i = 0; i < sum.size(); ++i)
    for (int a = 0; a < sum[i].over.size(); ++a)
      if (sum[i].over[a].maximum) return true;
  return false;
}

term holding::closed() const {
  term all = zero;
  for (int i = 0; i < sum.size(); ++i) all = all + sum[i].of;
  return all;
}

namespace {

/// The one axis in which two parts of a term differ; -1: none, -2: several, or they are not alike.
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

/// Whether a part is united with one of a sum; `twice` says what is in both where it could have been.
bool unite(few<summand, 1>& sum, const summand& more, std::string& twice) {
  for (int i = 0; i < sum.size(); ++i) {
    summand& s = sum[i];
    if (s.of != more.of || s.is_whole()) continue;
    const int axis = differing_axis(s, more);
    interval both;
    if (axis == -1) twice = text_of(s.over[0].letter, s.over[0].done);
    if (axis < 0) continue;
    if (!s.over[axis].done.unite(more.over[axis].done, both)) {
      twice = text_of(s.over[axis].letter, {both.begin, both.end});
      continue;
    }
    drop_whole(s);
    if (!s.is_whole()) return true;
    const term of = s.of;
    sum.erase(i);
    add_whole(sum, of);
    return true;
  }
  return false;
}

}  // namespace

void add(few<summand, 1>& sum, summand more) {
  drop_whole(more);
  std::string twice;
  if (more.is_whole()) add_whole(sum, more.of);
  else if (!unite(sum, more, twice)) sum.push_back(std::move(more));
}

namespace {

/// Whether there is more to be done than to take the one that is no zeros.
bool have_one_box(holding& to, const holding& more) {
  if (more.any) return false;
  if (to.any) {
    to = more;
    return false;
  }
  if (!(to.box == more.box))
    throw refusal(fmt::format("{} are added to {}", text_of(more.box), text_of(to.box)));
  if (to.is_maximum() || more.is_maximum())
    throw refusal("a maximum that is not yet over all is added to another value");
  return true;
}

}  // namespace

void add(holding& to, const holding& more) {
  if (have_one_box(to, more))
    for (int i = 0; i < more.sum.size(); ++i) add(to.sum, more.sum[i]);
}

void add_of_member(holding& to, const holding& more) {
  if (!have_one_box(to, more)) return;
  for (int i = 0; i < more.sum.size(); ++i) {
    std::string twice;
    if (!more.sum[i].is_whole() && unite(to.sum, more.sum[i], twice)) continue;
    if (!twice.empty()) throw refusal(twice + " are in the sum twice");
    add(to.sum, more.sum[i]);
  }
}

void take_maximum(holding& to, const holding& with) {
  if (!(to.box == with.box))
    throw refusal(fmt::format("the maximum is taken of {} and {}", text_of(to.box), text_of(with.box)));
  if (to.sum.size() != 1 || with.sum.size() != 1 || to.sum[0].of != with.sum[0].of)
    throw refusal("the maximum is taken of values that are not parts of one");
  summand& s = to.sum[0];
  const summand& other = with.sum[0];
  if (s.over.size() != 1 || other.over.size() != 1 || !s.over[0].maximum || !other.over[0].maximum ||
      s.over[0].id != other.over[0].id)
    throw refusal("the maximum is taken of values that are no parts of a maximum");
  interval twice;
  runs all = s.over[0].done;
  if (!all.unite(other.over[0].done, twice))
    throw refusal(text_of(s.over[0].letter, {twice.begin, twice.end}) + " are in the maximum twice");
  s.over[0].done = all;
  drop_whole(s);
}

holding cut(const holding& of, std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
  holding out;
  out.sum = of.sum;
  out.any = of.any;
  const int n = of.box.size();
  for (int d = 0; d < n; ++d) {
    const bool is_row = n == 2 && d == 0;
    out.box.push_back({of.box[d].at.slice(is_row ? row : col, is_row ? rows : cols), of.box[d].size});
  }
  return out;
}

namespace {

struct rectangle {
  std::int64_t row, col, rows, cols;
};

/// Where a piece lies in a matrix, in the matrix's rows; false where it lies outside of it.
/// Errors: refusal where the rows of one are not the rows of the other.
bool overlap(const place& p, const place& m, rectangle& in_matrix) {
  const std::int64_t p_end = p.offset + (p.rows - 1) * p.pitch + p.cols,
                     m_end = m.offset + (m.rows - 1) * m.pitch + m.cols;
  if (p_end <= m.offset || m_end <= p.offset) return false;
  const std::int64_t pitch = m.rows > 1 ? m.pitch : p.rows > 1 ? p.pitch : std::max(p_end, m_end);
  if (m.rows > 1 && p.rows > 1 && m.pitch != p.pitch)
    throw refusal("it is read in other rows than it was written in");
  const std::int64_t delta = p.offset - m.offset;
  std::int64_t row = delta >= 0 ? delta / pitch : -((-delta + pitch - 1) / pitch), col = delta - row * pitch;
  if (col >= m.cols && col + p.cols > pitch)
    ++row, col -= pitch;  // it begins before the matrix's first column
  const std::int64_t r0 = std::max<std::int64_t>(row, 0), r1 = std::min(row + p.rows, m.rows);
  const std::int64_t c0 = std::max<std::int64_t>(col, 0), c1 = std::min(col + p.cols, m.cols);
  if (r0 >= r1 || c0 >= c1) return false;
  if (col + p.cols > pitch || m.cols > pitch)
    throw refusal("it is read in other rows than it was written in");
  in_matrix = {r0, c0, r1 - r0, c1 - c0};
  return true;
}

bool is_run(const place& p) { return p.rows == 1 || p.pitch == p.cols; }
bool is_apart(const place& p, const place& other) {
  return end_of(p) <= other.offset || end_of(other) <= p.offset;
}

/// The part of a matrix in which a buffer has zeros, of no box: whole rows of it, or elements of its one row.
/// Errors: refusal where it is anything else.
rectangle rows_of_zeros(const place& zeros, const place& m) {
  const std::int64_t begin = std::max<std::int64_t>(zeros.offset - m.offset, 0),
                     end = std::min(end_of(zeros), end_of(m)) - m.offset;
  if (is_run(zeros) && begin == 0 && end == end_of(m) - m.offset) return {0, 0, m.rows, m.cols};
  if (is_run(zeros) && m.rows == 1) return {0, begin, 1, end - begin};
  if (!is_run(zeros) || !is_run(m) || begin % m.cols || end % m.cols)
    throw refusal("zeros and other values meet in it");
  return {begin / m.cols, 0, (end - begin) / m.cols, m.cols};
}

/// What is left of zeros beside what is written.
/// Errors: refusal where the two are no runs of elements.
void leave_zeros(content& of, const place& zeros, const place& written) {
  const bool is_covered =
      is_run(written) && written.offset <= zeros.offset && end_of(zeros) <= end_of(written);
  if (is_covered) return;
  if (!is_run(zeros) || !is_run(written)) throw refusal("zeros and other values meet in it");
  if (zeros.offset < written.offset) append_zeros(of, zeros.offset, written.offset - zeros.offset);
  if (end_of(written) < end_of(zeros)) append_zeros(of, end_of(written), end_of(zeros) - end_of(written));
}

}  // namespace

void append_zeros(content& to, std::int64_t offset, std::int64_t elements) {
  if (elements == 0) return;
  for (int i = 0; i < to.pieces.size(); ++i)
    if (place& at = to.pieces[i].at; to.pieces[i].holds.any && is_run(at) && end_of(at) == offset) {
      const std::int64_t all = offset + elements - at.offset;
      at = {at.offset, 1, all, all};
      return;
    }
  piece p{{offset, 1, elements, elements}, {}};
  p.holds.any = true;
  to.pieces.push_back(std::move(p));
}

tensor tensor_of(const content& c) {
  const piece* found = nullptr;
  std::int64_t known = 0;
  for (int i = 0; i < c.pieces.size(); ++i) {
    const piece& p = c.pieces[i];
    known += p.at.rows * p.at.cols;
    if (p.holds.any) continue;
    if (found || p.at.offset != 0 || !is_run(p.at)) throw refusal("it holds no one tensor");
    found = &p;
  }
  if (known != c.elements()) throw refusal("it holds no one tensor");
  if (!found) return {&c.pieces[0].holds, 0};
  return {&found->holds, found->at.rows * found->at.cols};
}

void read_tiles(const content& from, const segment& s, operand& out, workspace& space) {
  const place& at = s.at;
  for (int i = 0; i < from.pieces.size(); ++i) {
    const piece& p = from.pieces[i];
    if (p.at == at) {
      out.tiles.push_back({s.row, s.col, at.rows, at.cols, &p.holds});
      continue;
    }
    rectangle r, in_piece;
    if (p.holds.any) {
      if (is_apart(p.at, at)) continue;
      r = rows_of_zeros(p.at, at);
      out.tiles.push_back({s.row + r.row, s.col + r.col, r.rows, r.cols, &p.holds});
      continue;
    }
    if (!overlap(p.at, at, r)) continue;
    overlap(at, p.at, in_piece);
    const bool is_all = in_piece.rows == p.at.rows && in_piece.cols == p.at.cols;
    out.tiles.push_back(
        {s.row + r.row, s.col + r.col, r.rows, r.cols,
         is_all ? &p.holds
                : space.keep(cut(p.holds, in_piece.row, in_piece.rows, in_piece.col, in_piece.cols))});
  }
}

void write_tiles(content& to, const segment& s, const operand& given) {
  const place& at = s.at;
  for (int i = to.pieces.size() - 1; i >= 0; --i) {
    const piece& p = to.pieces[i];
    rectangle in_piece;
    if (p.at == at) {
      to.pieces.erase(i);
      continue;
    }
    if (p.holds.any) {
      if (is_apart(p.at, at)) continue;
      const place zeros = p.at;
      to.pieces.erase(i);
      leave_zeros(to, zeros, at);
      continue;
    }
    if (!overlap(at, p.at, in_piece)) continue;
    if (in_piece.rows != p.at.rows || in_piece.cols != p.at.cols)
      throw refusal("it is written over a part of what was there");
    to.pieces.erase(i);
  }
  for (int i = 0; i < given.tiles.size(); ++i) {
    const tile& t = given.tiles[i];
    const std::int64_t row = t.row - s.row, col = t.col - s.col;
    if (row + t.rows <= 0 || row >= at.rows || col + t.cols <= 0 || col >= at.cols) continue;
    if (row < 0 || col < 0 || row + t.rows > at.rows || col + t.cols > at.cols)
      throw refusal("what is written lies across two tensors");
    to.pieces.push_back(
        {{at.offset + row * at.pitch + col, t.rows, t.cols, t.rows > 1 ? at.pitch : t.cols}, *t.holds});
  }
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
