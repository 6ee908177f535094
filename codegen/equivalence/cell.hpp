// SPDX-License-Identifier: Apache-2.0
// One cell of an op: a range of each axis in which every operand is of one tensor, and which elements these
// are.
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

  std::array<std::int64_t, max_letters> length;  // of each letter, on this rank; -1: not known
  std::array<interval, max_letters> range{};     // of the cell

  /// What each port holds in the cell, and which elements of its axes these are.
  /// Errors: refusal where they are not the same in all operands, or the row needs others.
  void bind(const std::vector<operand>& ports, const attributes&);
  /// What an equation makes of it.
  holding function(int equation, const std::vector<operand>& ports, const attributes&);
  holding merge(int equation);
  holding sum(int equation, const std::vector<operand>& ports, const attributes&);

  /// Of positions that a table lists: how many a sequence has.
  std::int64_t listed_positions() const { return is_bound_[slot('s')] ? bound_[slot('s')].size : 0; }

  /// The rows or columns of a port that an axis of it has in the cell. Units: elements.
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
  /// The number of tokens of a sequence whose log-sum-exps lie together, head by head. 0: another port.
  std::int64_t share_of(const port&, const attributes&) const;
  void check_share(const port&, const holding&, const attributes&) const;
  void check_ring(std::int64_t first, const attributes&);
  void check_documents(std::int64_t first, const attributes&) const;
  /// The order in which the op expects slots of tokens to lie; zero where it takes no slots.
  term find_order(const std::vector<operand>& ports) const;
  void check_order() const;
  /// An op that sums over slots takes places or offsets: slots that no token fills hold what was there
  /// before.
  void check_sums_no_slots(const equation&) const;
  /// Tokens are of one group, which is the operands'.
  void bind_group(const attributes&);
  /// Tokens are equal shares of the op's sequences, at the same positions of each.
  void bind_sequences(const attributes&);
  void bind_experts();
  /// An operand's term, were it whole. What is missing of it goes into `over`, where the op is linear in it.
  term take(int operand, bool linear, few<pending, 1>& over, bool& has_pending) const;
  /// What is missing of a result for tokens that is made of some experts' slots alone.
  void take_experts(const equation&, few<pending, 1>& over, bool has_pending) const;
  /// Zeros of the box that the operands say; of any, where they do not.
  holding zeros(int result, const operand& shape) const;
  few<part, 2> box_of(int result, const operand& shape, term of) const;
  [[noreturn]] void refuse_result(term of, const std::vector<int>& operands) const;
  /// The operands of a term are rounded to fp8 where the recipe rounds them, and nowhere else.
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

/// The axes over which a linear op of a pending sum is pending: those of the sum, or, of several summands,
/// their parts. Errors: refusal where they are summed over products of axes.
void carry(const holding&, few<pending, 1>& over);
/// The elements that a sum lacks: "tokens 0..3 and 8..11".
std::string text_of_missing(const holding&, const model&);

}  // namespace rankc::codegen::algebra
