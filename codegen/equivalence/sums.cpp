// SPDX-License-Identifier: Apache-2.0
// The sums that the model has, and their parts. A program may add up in another order than the model, and
// keep what it has added so far: such a part of a sum is known as a value is.
#include <algorithm>

#include "contents.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

/// Of a sum with more addends the parts are not listed, of which there are 2^addends.
static constexpr std::size_t most_addends = 10;

void model::know_parts(const sum& of, const std::vector<term>& addends) {
  std::vector<term> parts;
  for (const term& addend : addends) {
    const std::size_t before = parts.size();
    for (std::size_t i = 0; i < before; ++i) parts.push_back(parts[i] + addend);
    parts.push_back(addend);
  }
  for (const term& part : parts) know(part, "a part of " + of.name, nullptr);
}

/// An addend that is a sum itself may be added up with the others one by one.
void model::know_sums() {
  std::map<term, const sum*> by_total;
  for (const sum& s : sums_) {
    term total = zero;
    for (const term& addend : s.addends) total = total + addend;
    if (s.addends.size() > 1) by_total.emplace(total, &s);
  }
  for (const sum& s : sums_) {
    std::vector<term> addends;
    for (const term& addend : s.addends)
      if (const auto inner = by_total.find(addend); inner == by_total.end()) addends.push_back(addend);
      else addends.insert(addends.end(), inner->second->addends.begin(), inner->second->addends.end());
    if (addends.size() > most_addends) addends = s.addends;
    if (addends.size() > most_addends) large_sums_.push_back(s.shape);
    else know_parts(s, addends);
  }
}

static bool is_of_shape(const holding& h, const std::vector<std::int64_t>& shape) {
  bool is = h.box.size() == static_cast<int>(shape.size());
  for (int d = 0; is && d < h.box.size(); ++d) is = h.box[d].size == shape[static_cast<std::size_t>(d)];
  return is;
}

bool model::has(const holding& h) const {
  term all = zero;  // each of its terms once: one may be there in several parts
  for (int i = 0; i < h.sum.size(); ++i) {
    bool is_new = true;
    for (int before = 0; before < i; ++before) is_new &= h.sum[before].of != h.sum[i].of;
    if (is_new) all = all + h.sum[i].of;
  }
  return all.is_zero() || has(all) || has(h.closed());
}

bool model::has_large_sum_like(const holding& h) const {
  return std::any_of(large_sums_.begin(), large_sums_.end(),
                     [&](const std::vector<std::int64_t>& shape) { return is_of_shape(h, shape); });
}

}  // namespace rankc::codegen::algebra
