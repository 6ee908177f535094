// SPDX-License-Identifier: Apache-2.0
#include "merged_source.hpp"

namespace rankc::runtime {
namespace {

std::vector<double> read_all(const tensor_source& in, const global_parameter& p) {
  std::vector<double> values(p.count());
  in.read(p.name, {0, p.rows, 0, p.columns}, values.data());
  return values;
}

}  // namespace

merged_source::merged_source(const tensor_source& from, const std::vector<global_parameter>& all,
                             double scale)
    : from_(from), scale_(scale) {
  for (const global_parameter& p : all) {
    const global_parameter *a = find_parameter(all, p.name + lora_a),
                           *b = find_parameter(all, p.name + lora_b);
    if (a != nullptr && b != nullptr)
      beside_[p.name] = {read_all(from, *a), read_all(from, *b), a->rows, a->columns};
  }
}

void merged_source::read(const std::string& tensor, const area& wanted, double* to) const {
  from_.read(tensor, wanted, to);
  const auto beside = beside_.find(tensor);
  if (beside == beside_.end()) return;
  const auto& [a, b, rank, columns] = beside->second;
  for (std::size_t i = 0; i < wanted.rows; ++i)
    for (std::size_t k = 0; k < rank; ++k) {
      const double factor = scale_ * b[(wanted.row + i) * rank + k];
      for (std::size_t j = 0; j < wanted.columns; ++j)
        to[i * wanted.columns + j] += factor * a[k * columns + wanted.column + j];
    }
}

}  // namespace rankc::runtime
