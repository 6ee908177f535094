// SPDX-License-Identifier: Apache-2.0
// Walks the ops of all ranks in their proven order, with the contents of each value.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/prove.hpp>

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "blame.hpp"
#include "claims.hpp"
#include "layout.hpp"
#include "model.hpp"
#include "store.hpp"
#include "transfer.hpp"

namespace rankc::codegen::algebra {

class interpreter {
 public:
  /// `made`: if given, records the tokens that each op adds to sums, and a refusal names the op that lacks
  /// tokens.
  interpreter(const program&, const model&, claims&, contributions* made = nullptr);
  /// Errors: refusal, which names the op; missing_tokens where a run with `made` would find the op.
  void run(const verdict& order);

 private:
  struct op_ref {
    int rank = 0, op = 0;
  };
  using channel = std::tuple<int, int, int>;  // communicator, sender, receiver

  const op& at(op_ref r) const {
    return program_.ranks[static_cast<std::size_t>(r.rank)].ops[static_cast<std::size_t>(r.op)];
  }
  std::vector<op_ref> sequence(const verdict&) const;
  std::string place_of(op_ref);
  std::string parameters_of(const op&);
  void step(op_ref);
  void begin(const op&, int rank);
  void end(const op&, int rank);
  const fact& fact_of(std::string_view row);
  void compute(const op&);
  void check_whole_places(const op&, const fact&);
  void kernel(const op&, const fact&);
  bool add_tensors(const op&, const fact&);
  void sum_squares(const op&);
  void update(const op&);
  void put_updated(const op&, const view&, std::string_view port, content);
  void message(op_ref);
  void meet(op_ref sent, op_ref received);
  void collective(op_ref);
  void exchange_heads(const std::vector<op_ref>& members);
  void send_slots(const std::vector<op_ref>& members);
  void check_sent_in_bf16(const op&, const content&);
  void check_read_of_bf16(const fact&) const;
  void note_loss(const fact&);
  void check_goes_by_rows(op_ref);

  few<segment, 2> segments(const op&, const view&) const;
  segment segment_of(const view&, const access&, const operand& shape, std::int64_t elements) const;
  static operand operand_of(const view&);
  static void shape(const view&, operand&);
  void read(const op&, const view&, operand&);
  static const access& whole_of(const op&, const view&);
  const content& whole(const op&, const view&);
  void write(const op&, int access);
  /// Stores a result of an op.
  /// Errors: refusal where it is a sum or a multiple that the model does not have.
  void put(const access&, content);
  std::string operands_of(const op&);
  void add_before(const access&, const segment&, operand& made);

  const program& program_;
  const model& model_;
  claims& claims_;
  contributions* made_;
  op_ref current_;
  store store_;
  workspace space_;
  transfer transfer_;
  std::vector<operand> ports_;
  std::vector<std::pair<std::string_view, int>> rows_;  // the rows found so far; their names do not move
  std::vector<std::vector<op_ref>> waiting_;  // the members that have reached each communicator's collective
  std::map<channel, std::deque<op_ref>> sent_, received_;
};

}  // namespace rankc::codegen::algebra
