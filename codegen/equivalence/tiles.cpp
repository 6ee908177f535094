// SPDX-License-Identifier: Apache-2.0
// Parts of buffers: an operand reads tiles from one, and a result writes tiles into one.
#include "contents.hpp"

namespace rankc::codegen::algebra {

namespace {

struct rectangle {
  std::int64_t row, col, rows, cols;
};

refusal other_rows() { return refusal("RC7675: a buffer is used with other rows than it was written with"); }
refusal zeros_beside() {
  return refusal("RC7676: a tensor is partly zeros and partly another value; expected whole rows of either");
}
refusal not_one_tensor() { return refusal("RC7677: a buffer holds other than one whole tensor"); }

/// Finds the part of a matrix that a piece overlaps, in rows and columns of the matrix. Returns false if they
/// do not overlap.
/// Errors: refusal where the rows of one are not the rows of the other.
bool overlap(const place& p, const place& m, rectangle& in_matrix) {
  const std::int64_t p_end = p.offset + (p.rows - 1) * p.pitch + p.cols,
                     m_end = m.offset + (m.rows - 1) * m.pitch + m.cols;
  if (p_end <= m.offset || m_end <= p.offset) return false;
  std::int64_t pitch = std::max(p_end, m_end);
  if (m.rows > 1) pitch = m.pitch;
  else if (p.rows > 1) pitch = p.pitch;
  if (m.rows > 1 && p.rows > 1 && m.pitch != p.pitch) throw other_rows();
  const std::int64_t delta = p.offset - m.offset;
  std::int64_t row = delta >= 0 ? delta / pitch : -((-delta + pitch - 1) / pitch), col = delta - row * pitch;
  if (col >= m.cols && col + p.cols > pitch) {
    ++row;
    col -= pitch;
  }  // it begins before the matrix's first column
  const std::int64_t r0 = std::max<std::int64_t>(row, 0), r1 = std::min(row + p.rows, m.rows);
  const std::int64_t c0 = std::max<std::int64_t>(col, 0), c1 = std::min(col + p.cols, m.cols);
  if (r0 >= r1 || c0 >= c1) return false;
  if (col + p.cols > pitch || m.cols > pitch) throw other_rows();
  in_matrix = {r0, c0, r1 - r0, c1 - c0};
  return true;
}

bool is_run(const place& p) { return p.rows == 1 || p.pitch == p.cols; }
bool is_apart(const place& p, const place& other) {
  return end_of(p) <= other.offset || end_of(other) <= p.offset;
}

/// The part of a matrix in which a buffer has zeros without a box: whole rows of it, or elements of its one
/// row.
/// Errors: refusal where it is anything else.
rectangle rows_of_zeros(const place& zeros, const place& m) {
  const std::int64_t begin = std::max<std::int64_t>(zeros.offset - m.offset, 0),
                     end = std::min(end_of(zeros), end_of(m)) - m.offset;
  if (is_run(zeros) && begin == 0 && end == end_of(m) - m.offset) return {0, 0, m.rows, m.cols};
  if (is_run(zeros) && m.rows == 1) return {0, begin, 1, end - begin};
  if (!is_run(zeros) || !is_run(m) || begin % m.cols || end % m.cols) throw zeros_beside();
  return {begin / m.cols, 0, (end - begin) / m.cols, m.cols};
}

/// Keeps the zeros that a write does not overwrite.
/// Errors: refusal where the zeros or the write are not contiguous.
void leave_zeros(content& of, const place& zeros, const place& written) {
  const bool is_covered =
      is_run(written) && written.offset <= zeros.offset && end_of(zeros) <= end_of(written);
  if (is_covered) return;
  if (!is_run(zeros) || !is_run(written)) throw zeros_beside();
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
    if (found || p.at.offset != 0 || !is_run(p.at)) throw not_one_tensor();
    found = &p;
  }
  if (known != c.elements()) throw not_one_tensor();
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
      throw refusal("RC7678: the op overwrites a part of a tensor; expected all of it");
    to.pieces.erase(i);
  }
  for (int i = 0; i < given.tiles.size(); ++i) {
    const tile& t = given.tiles[i];
    const std::int64_t row = t.row - s.row, col = t.col - s.col;
    if (row + t.rows <= 0 || row >= at.rows || col + t.cols <= 0 || col >= at.cols) continue;
    if (row < 0 || col < 0 || row + t.rows > at.rows || col + t.cols > at.cols)
      throw refusal("RC7679: the op writes a value across two tensors");
    to.pieces.push_back(
        {{at.offset + row * at.pitch + col, t.rows, t.cols, t.rows > 1 ? at.pitch : t.cols}, *t.holds});
  }
}

}  // namespace rankc::codegen::algebra
