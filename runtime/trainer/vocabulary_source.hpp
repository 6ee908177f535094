// SPDX-License-Identifier: Apache-2.0
// Tables of tokens for a plan whose vocabulary is padded otherwise than the source's: the rows of padding are
// left out, or are zero.
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
  /// Wrap a source. `resized`: the shape in the plan of each tensor that has another number of rows there.
  /// `note`: a sentence on these rows.
  vocabulary_source(std::unique_ptr<tensor_source> from,
                    const std::map<std::string, std::vector<std::size_t>>& resized, const std::string& note);

  const std::string& name() const override { return from_->name(); }
  const std::map<std::string, std::vector<std::size_t>>& shapes() const override { return shapes_; }
  std::size_t vocabulary() const override { return from_->vocabulary(); }
  std::vector<std::string> notes() const override { return notes_; }
  void check(const std::string& tensor, const area&) override;
  void read(const std::string& tensor, const area&, double* to) const override;

 private:
  /// The part of an area that the wrapped source has.
  area there(const std::string& tensor, const area&) const;

  std::unique_ptr<tensor_source> from_;
  std::vector<std::string> notes_;
  std::map<std::string, std::vector<std::size_t>> shapes_;
};

/// A source with the plan's tables of tokens, where it has the same tokens and pads them to another number of
/// rows. Any other source stays as it is.
std::unique_ptr<tensor_source> with_plan_vocabulary(std::unique_ptr<tensor_source>, const description&,
                                                    const std::vector<global_parameter>&,
                                                    const std::vector<part>&);

}  // namespace rankc::runtime
