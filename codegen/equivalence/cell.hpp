// SPDX-License-Identifier: Apache-2.0
// One cell of an op: a range along each axis in which every operand comes from one tensor, and the elements
// of that tensor that the range covers.
#pragma once
#include <array>

#include "contents.hpp"
#include "facts.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

class cell {
 public:
  cell(const fact& f, const model& m, workspace& space) : fact_(f), model_(m), space_(space) {
    length.fill(-1);
  }

  std::size_t slot(char letter) const { return fact_.place[static_cast<std::size_t>(letter - 'a')]; }

  std::array<std::int64_t, max_letters> length;  // by letter, on this rank; -1: unknown
  std::array<interval, max_letters> range{};     // by letter, in the cell

  /// Binds each port to its tensor in the cell, and each axis to its elements.
  /// Errors: refusal where operands have different elements of an axis, or the row needs other elements.
  void bind(const std::vector<operand>& ports, const attributes&);
  /// The result of an equation of each kind.
  holding function(int equation, const std::vector<operand>& ports, const attributes&);
  holding merge(int equation, const attributes&);
  holding sum(int equation, const std::vector<operand>& ports, const attributes&);

  /// The number of positions of a sequence that a table lists; 0 where no table lists them.
  std::int64_t listed_positions() const { return is_bound_[slot('s')] ? bound_[slot('s')].size : 0; }

  /// The range of a port's rows or columns that the cell has along an axis. Units: elements.
  interval extent(const operand&, const axis_use&, bool is_row) const;

 private:
  const holding* find(const operand&, const port&) const;
  void bind_axis(const std::string& name, const axis_use&, std::int64_t unit, const part&);
  void check_needs(const std::vector<operand>& ports) const;
  void check_number_of_sequences(const attributes&) const;
  void check_positions(std::int64_t first, const attributes&) const;
  void check_sequences(const attributes&) const;
  void check_chunks(std::int64_t first, const attributes&);
  void check_tokens(const runs& queries, const runs& keys) const;
  void check_shares(const attributes&) const;
  /// The positions of the op's tokens in a sequence.
  runs positions_of_queries(std::int64_t row, const attributes&) const;
  /// The number of tokens of a sequence whose log-sum-exps lie together, head by head; 0 for a port without
  /// log-sum-exps.
  std::int64_t share_of(const port&, const attributes&) const;
  void check_share(const port&, const holding&, const attributes&) const;
  void check_ring(std::int64_t first, const attributes&);
  void check_documents(std::int64_t first, const attributes&) const;
  /// The order of expert slots that the op expects; zero if it reads no slots.
  term find_order(const std::vector<operand>& ports) const;
  void check_order() const;
  /// Refuses a sum over expert slots. Slots that no token fills hold stale memory, and only an op with places
  /// or offsets can skip them.
  void check_sums_no_slots(const equation&) const;
  /// Checks that the tokens are of one group, and binds axis m to it.
  void bind_group(const attributes&);
  /// Checks that the tokens are equal shares of the op's sequences, at the same positions of each.
  void bind_sequences(const attributes&);
  void bind_experts();
  /// The term of an operand, as if it were whole. Appends to `over` the elements that it lacks, if the op is
  /// linear in it.
  term take(int operand, bool linear, few<pending, 1>& over, bool& has_pending) const;
  /// Appends the experts that a result for tokens lacks, if it is made of the slots of some experts only.
  void take_experts(const equation&, few<pending, 1>& over, bool has_pending) const;
  /// Zeros of the box that the operands determine, or of any box if they determine none.
  holding zeros(int result, const operand& shape) const;
  few<part, 2> box_of(int result, const operand& shape, term of) const;
  [[noreturn]] void refuse_result(term of, const std::vector<int>& operands) const;
  /// Checks that the operands of a term are rounded to fp8 exactly where the recipe rounds them.
  void check_rounding(const equation&, const std::vector<operand>& ports, term of) const;

  const fact& fact_;
  const model& model_;
  workspace& space_;
  std::array<part, max_letters> bound_;
  std::array<bool, max_letters> is_bound_{};
  std::array<const holding*, 16> held_{};
  term order_ = zero;
  std::int64_t group_ = 0;
};

/// Appends the axes over which a sum is incomplete, for the result of a linear op of it. An incomplete sum of
/// several summands has one joint axis.
/// Errors: refusal where such a summand is incomplete over several axes.
void carry(const holding&, few<pending, 1>& over);
/// The elements that a sum lacks: "tokens 0..3 and 8..11".
std::string text_of_missing(const holding&, const model&);

}  // namespace rankc::codegen::algebra
