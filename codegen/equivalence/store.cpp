// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include "types.hpp"

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

/// Whether tokens are missing in a value: it is added up further. Counts of whole numbers are as good.
static bool lacks_tokens(const content& c, const holding& h) {
  if (c.type == element_type::i32) return false;
  for (int s = 0; s < h.sum.size(); ++s)
    for (int k = 0; k < h.sum[s].over.size(); ++k)
      if (h.sum[s].over[k].letter == 't') return true;
  return false;
}

/// A sum over tokens is kept in no type of few digits, whether it is whole or not.
static void check_type(const content& c) {
  if (is_wide(c.type)) return;
  for (int i = 0; i < c.pieces.size(); ++i)
    if (const holding& h = c.pieces[i].holds; h.of_tokens || lacks_tokens(c, h))
      throw refusal("RC7673: a sum over tokens is kept in {}; expected f32 or f64",
                    element_type_names[static_cast<int>(c.type)]);
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
