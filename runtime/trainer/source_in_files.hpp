// SPDX-License-Identifier: Apache-2.0
// The plan's parameters as Hugging Face's files have them: with the rows of each query and key head in their
// order, and without the numbers that the plan adds.
#pragma once
#include "hugging_face_names.hpp"
#include <rankc/trainer/tensor_source.hpp>

#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

class source_in_files : public tensor_source {
 public:
  /// Wraps a source that has been checked. A LoRA adapter's second matrix has the rows of its parameter.
  source_in_files(const tensor_source& from, const description&, const hugging_face_model&,
                  const std::vector<global_parameter>&);

  const std::string& name() const override { return from_.name(); }
  const std::map<std::string, std::vector<std::size_t>>& shapes() const override { return from_.shapes(); }
  std::vector<std::string> notes() const override { return from_.notes(); }
  void check(const std::string&, const area&) override {}
  void read(const std::string& tensor, const area&, double* to) const override;

 private:
  const tensor_source& from_;
  /// How the files differ from the plan.
  struct difference {
    head_order order;
    double added;
  };
  std::map<std::string, difference> different_;
};

}  // namespace rankc::runtime
