// SPDX-License-Identifier: Apache-2.0
// Tables with a row for each token id or position, and rotary positions.
#include "rows.hpp"

#include <algorithm>

namespace field::tables {

namespace {

/// The row of a token in the rank's part of a table; null if it is not there.
template <class Matrix>
auto held(Matrix& table, element id, std::int64_t first) -> decltype(table.row(0)) {
  const auto begin = static_cast<element>(first), end = static_cast<element>(first + table.is.rows);
  return id >= begin && id < end ? table.row(static_cast<std::int64_t>(id - begin)) : nullptr;
}

std::int64_t position_of(const call& c, std::int64_t token) {
  expect(c.seq > 0, "a sequence of no positions");
  const std::int64_t at = (c.first("x") + token) % c.seq;
  return at < 0 ? at + c.seq : at;
}

/// Multiply pairs (j, j + dim / 2) of each head by the position's rotation, or by its transpose.
void rotate(call& c, std::string_view from, std::string_view to, bool back) {
  const matrix &x = c.in(from), &table = c.in("table");
  const std::int64_t dim = table.is.cols, half = dim / 2;
  expect(dim > 0 && dim % 2 == 0 && x.is.cols % dim == 0 && x.is.unit == dim,
         "rope: heads are not as wide as the table");
  expect(c.seq > 0 && c.seq <= table.is.rows, "rope: the table has too few positions");
  matrix& y = c.out(to, x.is.rows, x.is.cols, x.is.unit);
  const element *cosines = table.of.data(), *sines = cosines + table.is.rows * half;
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t h = 0; h < x.is.cols; h += dim)
      for (std::int64_t j = 0; j < half; ++j) {
        const element cosine = cosines[t % c.seq * half + j], sine = sines[t % c.seq * half + j];
        const element a = x.row(t)[h + j], b = x.row(t)[h + j + half], turned = back ? negate(sine) : sine;
        y.row(t)[h + j] = add(multiply(a, cosine), negate(multiply(b, turned)));
        y.row(t)[h + j + half] = add(multiply(b, cosine), multiply(a, turned));
      }
}

}  // namespace

void embedding(call& c) {
  const matrix &ids = c.in("ids"), &table = c.in("table");
  matrix& y = c.out("y", ids.is.size(), table.is.cols);
  for (std::int64_t t = 0; t < ids.is.size(); ++t)
    if (const element* row = held(table, ids.of[t], c.first("table")))
      std::copy_n(row, table.is.cols, y.row(t));
}

void embedding_grad(call& c) {
  const matrix &dy = c.in("dy"), &ids = c.in("ids");
  matrix& dtable = c.out("dtable");
  expect(dy.is.rows == ids.is.size() && dy.is.cols == dtable.is.cols, "embedding_grad: sizes do not fit");
  for (std::int64_t t = 0; t < dy.is.rows; ++t)
    if (element* row = held(dtable, ids.of[t], c.first("dtable")))
      for (std::int64_t i = 0; i < dy.is.cols; ++i) row[i] = add(row[i], dy.row(t)[i]);
}

void position(call& c) {
  const matrix &x = c.in("x"), &table = c.in("table");
  expect(c.seq <= table.is.rows && table.is.cols == x.is.cols, "position: the table is of another size");
  matrix& y = c.out("y", x.is.rows, x.is.cols, x.is.unit);
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t i = 0; i < x.is.cols; ++i)
      y.row(t)[i] = add(x.row(t)[i], table.row(position_of(c, t))[i]);
}

void position_grad(call& c) {
  const matrix& dy = c.in("dy");
  matrix& dtable = c.out("dtable");
  expect(c.seq > 0 && c.seq <= dtable.is.rows && dtable.is.cols == dy.is.cols,
         "position_grad: the table is of another size");
  for (std::int64_t t = 0; t < dy.is.rows; ++t) {
    element* row = dtable.row((c.first("dy") + t) % c.seq);
    for (std::int64_t i = 0; i < dy.is.cols; ++i) row[i] = add(row[i], dy.row(t)[i]);
  }
}

void chunk_position(call& c) {
  const matrix &x = c.in("x"), &table = c.in("table");
  expect(c.seq == table.is.rows && table.is.cols == x.is.cols,
         "chunk_position: the table is of another size");
  matrix& y = c.out("y", x.is.rows, x.is.cols, x.is.unit);
  for (std::int64_t t = 0; t < x.is.rows; ++t) {
    const element* row = table.row(token_of_chunks(c, c.first("x") + t) % c.seq);
    for (std::int64_t i = 0; i < x.is.cols; ++i) y.row(t)[i] = add(x.row(t)[i], row[i]);
  }
}

void chunk_position_grad(call& c) {
  const matrix& dy = c.in("dy");
  matrix& dtable = c.out("dtable");
  expect(c.seq == dtable.is.rows && dtable.is.cols == dy.is.cols,
         "chunk_position_grad: the table is of another size");
  for (std::int64_t t = 0; t < dy.is.rows; ++t) {
    element* row = dtable.row(token_of_chunks(c, c.first("dy") + t) % c.seq);
    for (std::int64_t i = 0; i < dy.is.cols; ++i) row[i] = add(row[i], dy.row(t)[i]);
  }
}

namespace {

/// A token's position in its document; the token is an index in whole sequences.
std::int64_t position_in_document(const call& c, const matrix& starts, std::int64_t token) {
  expect(token >= 0 && token < starts.is.size(), "a token of no sequence");
  return token % c.seq - static_cast<std::int64_t>(starts.of[static_cast<std::size_t>(token)]);
}

void add_positions(call& c, auto token) {
  const matrix &x = c.in("x"), &table = c.in("table"), &starts = starts_of(c);
  expect(c.seq <= table.is.rows && table.is.cols == x.is.cols,
         "document_position: the table is of another size");
  matrix& y = c.out("y", x.is.rows, x.is.cols, x.is.unit);
  for (std::int64_t t = 0; t < x.is.rows; ++t) {
    const element* row = table.row(position_in_document(c, starts, token(c.first("x") + t)));
    for (std::int64_t i = 0; i < x.is.cols; ++i) y.row(t)[i] = add(x.row(t)[i], row[i]);
  }
}

void sum_positions(call& c, auto token) {
  const matrix &dy = c.in("dy"), &starts = starts_of(c);
  matrix& dtable = c.out("dtable");
  expect(c.seq <= dtable.is.rows && dtable.is.cols == dy.is.cols,
         "document_position_grad: the table is of another size");
  for (std::int64_t t = 0; t < dy.is.rows; ++t) {
    element* row = dtable.row(position_in_document(c, starts, token(c.first("dy") + t)));
    for (std::int64_t i = 0; i < dy.is.cols; ++i) row[i] = add(row[i], dy.row(t)[i]);
  }
}

constexpr auto in_line = [](std::int64_t n) { return n; };

}  // namespace

void document_position(call& c) { add_positions(c, in_line); }
void document_position_grad(call& c) { sum_positions(c, in_line); }
void document_chunk_position(call& c) {
  add_positions(c, [&](std::int64_t n) { return token_of_chunks(c, n); });
}
void document_chunk_position_grad(call& c) {
  sum_positions(c, [&](std::int64_t n) { return token_of_chunks(c, n); });
}

void rope(call& c) { rotate(c, "x", "y", false); }
void rope_grad(call& c) { rotate(c, "dy", "dx", true); }

matrix rotary(std::int64_t positions, std::int64_t dim, double theta, const rankc::rope_scaling& scaling) {
  matrix table(extent{positions, dim});
  const std::int64_t half = dim / 2;
  for (std::int64_t sines = 0; sines < 2; ++sines)
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t j = 0; j < half; ++j)
        table.of[static_cast<std::size_t>((sines * positions + p) * half + j)] =
            rotary_number(p, j, dim, theta, scaling, sines);
  return table;
}

}  // namespace field::tables
