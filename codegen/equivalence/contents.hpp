// SPDX-License-Identifier: Apache-2.0
// What a buffer holds: pieces, each of which is a box of a sum of terms.
#pragma once
#include <rankc/codegen/program.hpp>

#include <deque>
#include <string>
#include <string_view>

#include "domain.hpp"
#include "facts.hpp"
#include "refusal.hpp"
#include "term.hpp"

namespace rankc::codegen::algebra {

/// An axis over which a term is summed, and the elements that are in the sum so far.
struct pending {
  term id;  // of the sum: equal ids are one axis
  char letter = 0;
  joining how = joining::sum;
  std::int64_t size = 0;
  runs done;
  bool operator==(const pending&) const = default;
};
/// A term, whole or summed so far over a product of parts of axes.
struct summand {
  term of;
  few<pending, 1> over;
  bool is_whole() const { return over.empty(); }
};

/// A box of a sum. Zeros are an empty sum; where nothing says of which box, of any.
struct holding {
  few<part, 2> box;
  few<summand, 1> sum;
  bool any = false;        // zeros of any box
  bool of_tokens = false;  // a sum over tokens is in it

  bool is_zero() const { return sum.empty(); }
  bool is_whole() const { return sum.size() == 0 || (sum.size() == 1 && sum[0].is_whole()); }
  /// "a maximum", "a softmax": what it is parts of that are no sum; empty where it is none.
  std::string_view unfinished() const;
  /// The term of all summands, were they whole.
  term closed() const;
};

/// The most sequences of an op: its check takes one at a time.
inline constexpr std::int64_t most_sequences = 1 << 16;

/// Put a summand into a sum. Whole terms add up; parts of one term unite where they differ in one axis and
/// have no element in common. Elements that are there already begin a second of the term: x + x is two of x.
void add(few<summand, 1>& sum, summand);
/// `to` becomes the sum of both, of one box.
void add(holding& to, const holding& more);
/// "tokens 0..3" are in a sum more than once.
refusal counted_twice(const std::string& elements);
/// Errors: refusal where two values that are added are of different elements.
void check_same_box(const holding& to, const holding& more);
/// Errors: refusal where a value is a maximum or a softmax over some of its elements, which can not be added.
void check_addable(const holding&);
/// The same of what members of a group hold, of whom no two have the same elements of a sum.
/// Errors: refusal where two have.
void add_of_member(holding& to, const holding& more);
/// The maximum of two parts of one.
void take_maximum(holding& to, const holding& with);
/// `to` becomes the softmax over the keys of both, by the log-sum-exp of each.
/// Errors: refusal where they are no parts of one, or have keys in common.
void merge_parts(holding& to, const holding& weight, const holding& with, const holding& weight_of_other);
/// Rows and columns of a box: of two dims, or the columns of one.
holding cut(const holding&, std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols);

/// Where a piece of a buffer lies. Units: elements.
struct place {
  std::int64_t offset = 0, rows = 1, cols = 1, pitch = 1;
  bool operator==(const place&) const = default;
};
inline std::int64_t end_of(const place& p) { return p.offset + (p.rows - 1) * p.pitch + p.cols; }
struct piece {
  place at;
  holding holds;
};
inline std::int64_t size_of(element_type t) { return static_cast<std::int64_t>(element_size(t)); }
/// Pieces have no element in common; between them is nothing that is known.
struct content {
  std::size_t bytes = 0;
  element_type type = element_type::bytes;
  few<piece, 1> pieces;

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes) / size_of(type); }
};

/// A tensor that a buffer holds: its elements, and after them, where the tensor ends before the buffer does,
/// zeros.
struct tensor {
  const holding* holds;
  std::int64_t elements;  // that are no zeros past the end
};
/// Errors: refusal where a buffer holds anything else.
tensor tensor_of(const content&);
/// Let a buffer hold zeros in so many elements more, joined to zeros that end where these begin.
void append_zeros(content&, std::int64_t offset, std::int64_t elements);

/// Part of an operand: rows and columns of it, and what they hold.
struct tile {
  std::int64_t row = 0, col = 0, rows = 1, cols = 1;
  const holding* holds = nullptr;
};
/// What an op is given for a port, or gives: a matrix, a vector (its columns) or a number, in tiles.
struct operand {
  int ndim = 0;
  std::int64_t rows = 1, cols = 1, unit = 1, first = 0;
  element_type type = element_type::bytes;
  few<tile, 2> tiles;

  void clear() {
    ndim = 0;
    rows = cols = unit = 1;
    first = 0;
    type = element_type::bytes;
    tiles.clear();
  }
};

/// Holdings that live as long as the op that is looked at.
class workspace {
 public:
  holding& make() {
    if (used_ == all_.size()) all_.emplace_back();
    holding& h = all_[used_++];
    h.box.clear();
    h.sum.clear();
    h.any = h.of_tokens = false;
    return h;
  }
  const holding* keep(holding h) {
    holding& kept = make();
    kept = std::move(h);
    return &kept;
  }
  void clear() { used_ = 0; }

 private:
  std::deque<holding> all_;
  std::size_t used_ = 0;
};

/// A part of an operand that lies in one buffer: rows and columns from `row` and `col` on.
struct segment {
  place at;
  std::int64_t row = 0, col = 0;
};
/// The tiles of a segment of an operand.
/// Errors: refusal where one lies across it in other rows.
void read_tiles(const content&, const segment&, operand& out, workspace&);
/// Let a buffer hold the tiles of a segment; what it holds beside it keeps.
/// Errors: refusal where the segment lies across what it held.
void write_tiles(content&, const segment&, const operand&);

/// The elements of a box.
std::int64_t count(const few<part, 2>& box);
/// "rows 0..63 and features 0..127"
std::string text_of(const few<part, 2>& box);

}  // namespace rankc::codegen::algebra
