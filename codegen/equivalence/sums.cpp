// SPDX-License-Identifier: Apache-2.0
// The sums of the model, and their parts. A program may add in another order than the model, and store
// partial sums. So each part of a sum is recorded as a term of the model.
#include <algorithm>

#include "contents.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

namespace {

constexpr std::size_t most_addends = 10,  // in a sum whose parts are listed: there are 2^addends of them
    most_taken_apart = 6;                 // in a sum with addends that are sums

/// Replaces each addend that is itself a sum by its addends, recursively, as long as there are few.
/// Errors: false where a direct addend of the sum has too many.
bool take_apart(std::vector<term>& addends, const std::map<term, std::vector<term>>& sums) {
  bool is_done = true;
  std::size_t own = addends.size();  // the direct addends come first
  for (std::size_t i = 0; i < addends.size();) {
    const auto inner = sums.find(addends[i]);
    if (inner == sums.end() || addends.size() + inner->second.size() - 1 > most_taken_apart) {
      is_done &= inner == sums.end() || i >= own;
      ++i;
      continue;
    }
    own -= i < own;
    addends.erase(addends.begin() + static_cast<std::ptrdiff_t>(i));
    addends.insert(addends.end(), inner->second.begin(), inner->second.end());
  }
  return is_done;
}

}  // namespace

void model::know_parts(const std::vector<term>& addends, const std::string& name) {
  std::vector<term> parts;
  for (const term& addend : addends) {
    const std::size_t before = parts.size();
    for (std::size_t i = 0; i < before; ++i) parts.push_back(parts[i] + addend);
    parts.push_back(addend);
  }
  for (const term& part : parts)
    if (!has(part)) know(part, name, nullptr);
}

void model::know_sums() {
  std::map<term, std::vector<term>> addends_of;
  for (const sum& s : sums_) {
    term total = zero;
    for (const term& addend : s.addends) total = total + addend;
    if (s.addends.size() > 1 && s.addends.size() <= most_addends) addends_of.emplace(total, s.addends);
  }
  for (const sum& s : sums_) {
    std::vector<term> addends = s.addends;
    const bool are_known = addends.size() <= most_addends && take_apart(addends, addends_of);
    if (!are_known && s.shape) large_sums_.push_back(*s.shape);
    if (addends.size() <= most_addends) know_parts(addends, "a part of " + s.name);
  }
}

static bool is_of_shape(const holding& h, const std::vector<std::int64_t>& shape) {
  bool is = h.box.size() == static_cast<int>(shape.size());
  for (int d = 0; is && d < h.box.size(); ++d) is = h.box[d].size == shape[static_cast<std::size_t>(d)];
  return is;
}

bool model::has(const holding& h) const {
  term all = zero;  // each term once, because several parts may have the same one
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
