// SPDX-License-Identifier: Apache-2.0
// A generated program under test, with random weights and tokens that are the same for every layout.
#pragma once
#include "reference.hpp"

#include "program.hpp"
#include <rankc/trainer/parameters.hpp>

#include <memory>

namespace fuzz {

class training_run {
 public:
  explicit training_run(const program&);

  double evaluate() { return engine_->evaluate(); }
  /// Run the next step on its batch.
  rankc::runtime::step_output step();
  void load(std::int64_t step);
  tensors read(rankc::runtime::region) const;
  /// Set one element of a weight on all ranks that hold it.
  void write(const rankc::runtime::global_parameter&, std::size_t element, double);
  void write(const rankc::runtime::global_parameter&, const std::vector<double>&);
  /// The name of a parameter whose copies differ; empty if there is none.
  std::string unequal_copies() const;

  const rankc::runtime::description& about() const { return about_; }
  const std::vector<rankc::runtime::global_parameter>& parameters() const { return parameters_; }

 private:
  const rankc::runtime::description& about_;
  std::unique_ptr<rankc::runtime::engine> engine_;
  std::vector<rankc::runtime::global_parameter> parameters_;
  std::int64_t steps_ = 0;
};

/// The batch of step `step`, sequence by sequence.
batch batch_of(int vocab_used, int seq, int global_batch, std::int64_t step);

}  // namespace fuzz
