// SPDX-License-Identifier: Apache-2.0
// Token tables for a plan whose vocabulary padding differs from the source's: padding rows are dropped, or
// filled with zeros.
#pragma once
#include <rankc/trainer/checkpoint_index.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime {

class vocabulary_source : public tensor_source {
 public:
  /// Wraps a source. `resized`: the plan's shape of each tensor that has another number of rows in the
  /// source. `note`: a sentence on these rows.
  vocabulary_source(std::unique_ptr<tensor_source> from,
                    const std::map<std::string, std::vector<std::size_t>>& resized, const std::string& note);

  const std::string& name() const override { return from_->name(); }
  const std::map<std::string, std::vector<std::size_t>>& shapes() const override { return shapes_; }
  std::size_t vocabulary() const override { return from_->vocabulary(); }
  std::vector<std::string> notes() const override { return notes_; }
  void check(const std::string& tensor, const area&) override;
  void read(const std::string& tensor, const area&, double* to) const override;

 private:
  /// The part of an area that the wrapped source holds.
  area there(const std::string& tensor, const area&) const;

  std::unique_ptr<tensor_source> from_;
  std::vector<std::string> notes_;
  std::map<std::string, std::vector<std::size_t>> shapes_;
};

/// Adapts a source to the plan's token tables, if it has the same tokens and another number of padding rows.
/// Any other source is returned unchanged.
std::unique_ptr<tensor_source> with_plan_vocabulary(std::unique_ptr<tensor_source>, const description&,
                                                    const std::vector<global_parameter>&,
                                                    const std::vector<saved_region>&);

}  // namespace rankc::runtime
