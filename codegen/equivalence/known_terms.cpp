// SPDX-License-Identifier: Apache-2.0
// The terms of the model, by fingerprint: their names and shapes.
#include <algorithm>

#include "model.hpp"

namespace rankc::codegen::algebra {

int model::find(term t) const {
  for (std::size_t i = t.a & (index_.size() - 1);; i = (i + 1) & (index_.size() - 1)) {
    if (index_[i] < 0) return -1;
    if (known_[static_cast<std::size_t>(index_[i])].is == t) return index_[i];
  }
}

void model::know(term t, std::string name, const std::vector<std::int64_t>* shape) {
  if (t.is_zero()) return;
  if (const int at = find(t); at >= 0) {
    if (name.starts_with("the "))
      known_[static_cast<std::size_t>(at)].name = std::move(name);  // a parameter's name wins
    if (shape) known_[static_cast<std::size_t>(at)].shape = shape;
    return;
  }
  known_.push_back({t, std::move(name), shape, nullptr});
  if (2 * known_.size() > index_.size()) {
    index_.assign(2 * index_.size(), -1);
    for (std::size_t k = 0; k < known_.size(); ++k) put(static_cast<int>(k));
  } else {
    put(static_cast<int>(known_.size()) - 1);
  }
}

void model::put(int known) {
  std::size_t i = known_[static_cast<std::size_t>(known)].is.a & (index_.size() - 1);
  while (index_[i] >= 0) i = (i + 1) & (index_.size() - 1);
  index_[i] = known;
}

const std::pair<const std::string, model::parameter>* model::owner(term weight) const {
  const int at = find(weight);
  return at < 0 ? nullptr : known_[static_cast<std::size_t>(at)].owner;
}

std::int64_t model::size(term t, std::size_t dim) const {
  const int at = find(t);
  if (at < 0 || !known_[static_cast<std::size_t>(at)].shape) return -1;
  const std::vector<std::int64_t>& shape = *known_[static_cast<std::size_t>(at)].shape;
  return dim < shape.size() ? shape[dim] : -1;
}

taken_of_group model::limit(term order) const {
  const auto at = limits_.find(order);
  return at == limits_.end() ? taken_of_group{} : at->second;
}
term model::arrangement(term t) const {
  const auto at = arrangements_.find(t);
  return at == arrangements_.end() ? zero : at->second;
}

std::int64_t model::sequence(term t) const {
  const auto at = sequences_.find(t);
  return at == sequences_.end() ? 0 : at->second;
}

specification::rounding model::rounding_of(term t) const {
  const auto at = roundings_.find(t);
  return at == roundings_.end() ? specification::rounding::none : at->second;
}

bool model::rounds(specification::rounding by) const {
  return std::any_of(roundings_.begin(), roundings_.end(), [by](const auto& r) { return r.second == by; });
}

std::string model::name(term t) const {
  if (t.is_zero()) return "zeros";
  const int at = find(t);
  return at < 0 ? "a value that does not occur in the model" : known_[static_cast<std::size_t>(at)].name;
}

}  // namespace rankc::codegen::algebra
