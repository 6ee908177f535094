// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

namespace rankc::codegen::algebra {

store::store(const program& p) {
  const auto count = [&](const access& a, int reads) {
    if (a.value < 0) throw refusal("RC7670: an op reads or writes value {}; expected 0 or more", a.value);
    if (static_cast<std::size_t>(a.value) >= reads_left_.size())
      reads_left_.resize(static_cast<std::size_t>(a.value) + 1, 0);
    reads_left_[static_cast<std::size_t>(a.value)] += reads;
  };
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops) {
      for (const access& a : o.reads) count(a, 1);
      for (const access& a : o.writes) count(a, 0);
    }
  slot_of_.assign(reads_left_.size(), -1);
}

content& store::at(const access& a) {
  const int slot = slot_of_[static_cast<std::size_t>(a.value)];
  if (slot < 0)
    throw refusal("RC7671: the op reads bytes {} to {}, which nothing has written", a.begin, a.end);
  content& c = slots_[static_cast<std::size_t>(slot)];
  if (c.bytes != a.end - a.begin || c.type != a.type)
    throw refusal("RC7672: the op reads {} bytes of {}; expected {} of {}, as they were written",
                  a.end - a.begin, element_type_names[static_cast<int>(a.type)], c.bytes,
                  element_type_names[static_cast<int>(c.type)]);
  return c;
}

/// What is not yet of all tokens is added up further: not in a type of few digits.
static void check_type(const content& c) {
  if (size_of(c.type) > 2 || c.type == element_type::bytes) return;
  for (int i = 0; i < c.pieces.size(); ++i)
    for (int s = 0; s < c.pieces[i].holds.sum.size(); ++s) {
      const few<pending, 1>& over = c.pieces[i].holds.sum[s].over;
      for (int k = 0; k < over.size(); ++k)
        if (over[k].letter == 't')
          throw refusal("RC7673: a sum over tokens is kept in {}; expected f32 or f64",
                        element_type_names[static_cast<int>(c.type)]);
    }
}

void store::put(const access& a, content c) {
  check_type(c);
  const auto value = static_cast<std::size_t>(a.value);
  if (slot_of_[value] >= 0)
    throw refusal("RC7674: the op writes value {}, which has been written before", a.value);
  if (reads_left_[value] == 0) return;
  if (free_.empty()) {
    slot_of_[value] = static_cast<int>(slots_.size());
    slots_.push_back(std::move(c));
  } else {
    slot_of_[value] = free_.back();
    free_.pop_back();
    slots_[static_cast<std::size_t>(slot_of_[value])] = std::move(c);
  }
}

void store::done(const std::vector<access>& reads) {
  for (const access& a : reads) {
    const auto value = static_cast<std::size_t>(a.value);
    if (--reads_left_[value] > 0 || slot_of_[value] < 0) continue;
    free_.push_back(slot_of_[value]);
    slot_of_[value] = -1;
  }
}

}  // namespace rankc::codegen::algebra
