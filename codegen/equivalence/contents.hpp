// SPDX-License-Identifier: Apache-2.0
// The contents of a buffer: pieces, each of which is a box of a sum of terms.
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

/// An axis over which a term is summed, and the elements that are added so far.
struct pending {
  term id;  // equal ids are one axis
  char letter = 0;
  joining how = joining::sum;
  std::int64_t size = 0;
  runs done;
  bool operator==(const pending&) const = default;
};
/// A term. It is complete, or a sum over only a part of each axis in `over`.
struct summand {
  term of;
  few<pending, 1> over;
  bool is_whole() const { return over.empty(); }
};

/// A box of a sum. An empty sum is zeros. `any`: the box of these zeros is unknown.
struct holding {
  few<part, 2> box;
  few<summand, 1> sum;
  bool any = false;
  bool of_tokens = false;  // an addend is a sum over tokens
  bool in_bf16 = false;    // it was sent in bf16 to be summed
  std::int64_t share = 0;  // log-sum-exps are stored by head, in runs of this many tokens; 0: by token

  bool is_zero() const { return sum.empty(); }
  bool is_whole() const { return sum.size() == 0 || (sum.size() == 1 && sum[0].is_whole()); }
  /// "a maximum" or "a softmax" if the holding is a partial result of one; else empty.
  std::string_view unfinished() const;
  /// The sum of the terms of all summands, each treated as complete.
  term closed() const;
};

/// The most sequences of an op: its check takes one at a time.
inline constexpr std::int64_t most_sequences = 1 << 16;

/// Adds a summand to a sum. Whole terms are added. Parts of one term unite if they differ in one axis and
/// have no element in common. Elements that the sum already has begin a second summand, because x + x is 2 x.
void add(few<summand, 1>& sum, summand);
/// Adds `more` to `to`. Both have the same box.
void add(holding& to, const holding& more);
/// The refusal of a sum that has some elements twice, such as "tokens 0..3".
refusal counted_twice(const std::string& elements);
/// Checks that two values to be added have the same elements.
/// Errors: refusal where they differ.
void check_same_box(const holding& to, const holding& more);
/// Checks that a value is not a maximum or a softmax over some of its elements, because these cannot be
/// added.
/// Errors: refusal where it is one.
void check_addable(const holding&);
/// Adds the value of another member of a group.
/// Errors: refusal where both members have the same elements of a sum.
void add_of_member(holding& to, const holding& more);
/// Takes the maximum of two parts of one maximum.
void take_maximum(holding& to, const holding& with);
/// Merges two parts of one softmax by their log-sum-exps: `to` becomes the softmax over the keys of both. A
/// part without keys changes nothing.
/// Errors: refusal where they are parts of different softmaxes, or have keys in common.
void merge_parts(holding& to, const holding& weight, const holding& with, const holding& weight_of_other);
/// Whether a softmax, or a part of one, is over the keys at these positions.
/// Errors: refusal where it is a part of another kind.
bool has_keys(const holding& part, const runs& positions);
/// Cuts rows and columns out of a box of two dims, or columns out of a box of one.
holding cut(const holding&, std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols);

/// The place of a piece in its buffer. Units: elements.
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
/// Pieces have no element in common. The elements between them are unknown.
struct content {
  std::size_t bytes = 0;
  element_type type = element_type::bytes;
  few<piece, 1> pieces;

  std::int64_t elements() const { return static_cast<std::int64_t>(bytes) / size_of(type); }
};

/// The one tensor of a buffer. If the tensor ends before the buffer does, zeros follow.
struct tensor {
  const holding* holds;
  std::int64_t elements;  // before the zeros
};
/// Errors: refusal where the buffer holds something else.
tensor tensor_of(const content&);
/// Appends zeros to a buffer, and joins them to zeros that end where these begin.
void append_zeros(content&, std::int64_t offset, std::int64_t elements);

/// Rows and columns of an operand, and their contents.
struct tile {
  std::int64_t row = 0, col = 0, rows = 1, cols = 1;
  const holding* holds = nullptr;
};
/// An operand or a result of an op, in tiles. It is a matrix, a vector (its columns) or a number.
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

/// Holdings that live until the next op is checked.
class workspace {
 public:
  holding& make() {
    if (used_ == all_.size()) all_.emplace_back();
    holding& h = all_[used_++];
    h.box.clear();
    h.sum.clear();
    h.any = h.of_tokens = h.in_bf16 = false;
    h.share = 0;
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

/// The part of an operand in one buffer. It begins at `row` and `col` of the operand.
struct segment {
  place at;
  std::int64_t row = 0, col = 0;
};
/// Reads the tiles of a segment of an operand.
/// Errors: refusal where a piece overlaps the segment with other rows.
void read_tiles(const content&, const segment&, operand& out, workspace&);
/// Writes the tiles of a segment into a buffer. The other contents of the buffer remain.
/// Errors: refusal where the segment overwrites only a part of a piece.
void write_tiles(content&, const segment&, const operand&);

/// The number of elements of a box.
std::int64_t count(const few<part, 2>& box);
/// "rows 0..63 and features 0..127"
std::string text_of(const few<part, 2>& box);

}  // namespace rankc::codegen::algebra
