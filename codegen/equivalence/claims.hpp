// SPDX-License-Identifier: Apache-2.0
// Compares a step with the model: the gradients that the optimizer reads, the norm, the loss, and the tensors
// at the start and the end of the step.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/update_rows.hpp>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "contents.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

/// "the weight of wte", "the loss"
std::string name_of(const codegen::holding&);

class claims {
 public:
  /// Errors: refusal where the program names no step, or trains a model without trained parameters.
  claims(const program&, const model&);

  /// The contents of an access of op `begin`.
  content begin(int rank, const access&, const codegen::holding&);
  /// Checks the contents of an access of op `end`.
  void end(int rank, const access&, const content&, const codegen::holding&);
  /// The sum of the squares of gradients, added to an earlier sum.
  holding sum_squares(const std::vector<const content*>& gradients, const content* before);
  /// Checks the optimizer's operands for a parameter (weight, gradient and moments), and returns its results.
  /// `decays` must be true exactly for weights of more than one dim. A router's bias is updated by its counts
  /// instead of a gradient.
  /// Shapes: the results are the weight and its moments.
  std::vector<content> update(const std::vector<const content*>& given, bool decays, const load_balance&);
  void check_norm(const content&) const;
  void note_bf16_reduction() { bf16_reductions_ = true; }
  void note_fp8() { fp8_linears_ = true; }
  /// Notes that a rank computes a part of the last layer's loss.
  void note_loss(int rank) { make_loss_.insert(rank); }

  /// Checks, after the last op, that ranks own each element, and that the step leaves the tensors that the
  /// next step begins with.
  /// Errors: refusal where they do not.
  void check_all();
  std::vector<std::string> sentences() const;

 private:
  /// A tensor that the step begins with. The step must leave it in the same bytes.
  struct kept {
    access at;
    codegen::holding what;
    bool is_left = false;
  };
  /// The part of a parameter that a rank holds.
  struct held {
    int rank;
    few<part, 2> box;
  };
  /// The box and the term that a tensor must have at the end of the step.
  struct expectation {
    few<part, 2> box;
    term value;
  };
  expectation expected_at_end(const codegen::holding&) const;
  void leave(int rank, const access&, const codegen::holding&, const few<part, 2>& box);
  void check_left() const;
  [[noreturn]] void refuse_value(const std::string& what, term expected, const holding& found) const;
  [[noreturn]] void refuse_sum(const std::string& what, const holding& found, term expected) const;
  [[noreturn]] void refuse_gradient(const holding&) const;
  [[noreturn]] void refuse_norm(const holding&) const;
  const model::parameter& parameter(const std::string& name) const;
  few<part, 2> box_of(const codegen::holding&, const model::parameter&) const;
  void check_owned(const std::vector<held>&) const;
  std::int64_t world() const {
    return program_.world > 0 ? program_.world : static_cast<std::int64_t>(program_.ranks.size());
  }

  const program& program_;
  const model& model_;
  bool trains_;
  std::map<std::pair<int, std::size_t>, kept> kept_;  // by the rank and the first byte
  std::map<std::string, std::vector<held>> held_;     // by parameter
  int updates_ = 0;
  std::set<term> squared_;  // squares of gradients that some rank has added to a norm
  std::set<int> read_targets_, make_loss_, leave_loss_, leave_norm_;  // ranks
  bool bf16_weights_ = false, bf16_moments_ = false;                  // the optimizer has some in bf16
  bool fp8_linears_ = false;                                          // operands are rounded to fp8
  bool bf16_reductions_ = false;                                      // gradients are sent in bf16
};

}  // namespace rankc::codegen::algebra
