// SPDX-License-Identifier: Apache-2.0
// Weights merged with their LoRA adapters: w + scale b a.
#pragma once
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

class merged_source : public tensor_source {
 public:
  /// Wraps a source that has all parameters and has been checked.
  merged_source(const tensor_source& from, const std::vector<global_parameter>& all, double scale);

  const std::string& name() const override { return from_.name(); }
  const std::map<std::string, std::vector<std::size_t>>& shapes() const override { return from_.shapes(); }
  std::vector<std::string> notes() const override { return from_.notes(); }
  void check(const std::string&, const area&) override {}
  void read(const std::string& tensor, const area&, double* to) const override;

 private:
  /// Shapes: a (rank, columns of w), b (rows of w, rank).
  struct product {
    std::vector<double> a, b;
    std::size_t rank, columns;
  };
  const tensor_source& from_;
  double scale_;
  std::map<std::string, product> beside_;
};

}  // namespace rankc::runtime
