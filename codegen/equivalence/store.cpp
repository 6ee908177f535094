// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <algorithm>

#include "types.hpp"

namespace rankc::codegen::algebra {

store::store(const program& p, std::int64_t most_parts) : most_parts_(most_parts) {
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

/// Whether a value is a sum that lacks tokens. Integers do not count, because they are exact.
static bool lacks_tokens(const content& c, const holding& h) {
  if (c.type == element_type::i32) return false;
  for (int s = 0; s < h.sum.size(); ++s)
    for (int k = 0; k < h.sum[s].over.size(); ++k)
      if (h.sum[s].over[k].letter == 't') return true;
  return false;
}

/// Checks that a sum over tokens is kept in f32 or f64, whether it is whole or not.
static void check_type(const content& c) {
  if (is_wide(c.type)) return;
  for (int i = 0; i < c.pieces.size(); ++i)
    if (const holding& h = c.pieces[i].holds; h.of_tokens || lacks_tokens(c, h))
      throw refusal("RC7673: a sum over tokens is kept in {}; expected f32 or f64",
                    element_type_names[static_cast<int>(c.type)]);
}

/// The number of pieces of a buffer, of their addends and of the runs of elements of these, not counting the
/// first of each.
static std::int64_t parts_of(const content& c) {
  std::int64_t parts = c.pieces.size() - 1;
  for (int i = 0; i < c.pieces.size(); ++i) {
    const few<summand, 1>& sum = c.pieces[i].holds.sum;
    parts += sum.empty() ? 0 : sum.size() - 1;
    for (int s = 0; s < sum.size(); ++s)
      for (int k = 0; k < sum[s].over.size(); ++k) parts += std::max(sum[s].over[k].done.count() - 1, 0);
  }
  return parts;
}

/// Limits the number of parts. A linear op keeps the parts of an unreduced sum, and an addition has the parts
/// of both operands. A program that never reduces its sums could double the parts with each op, until they
/// fill the memory.
void store::count_parts(const content& c) {
  const std::int64_t parts = parts_of(c);
  parts_ += parts;
  if (parts > most_parts_)
    throw refusal("RC7748: the op writes a sum of {} parts; expected at most {}: reduce a sum before adding",
                  parts + 1, most_parts_ + 1);
  if (parts_ > most_parts_at_once)
    throw refusal(
        "RC7749: the sums that later ops read have {} parts; expected at most {}: reduce them earlier",
        parts_, most_parts_at_once);
}

void store::put(const access& a, content c) {
  check_type(c);
  const auto value = static_cast<std::size_t>(a.value);
  if (slot_of_[value] >= 0)
    throw refusal("RC7674: the op writes value {}, which has been written before", a.value);
  if (reads_left_[value] == 0) return;
  count_parts(c);
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
    parts_ -= parts_of(slots_[static_cast<std::size_t>(slot_of_[value])]);
    free_.push_back(slot_of_[value]);
    slot_of_[value] = -1;
  }
}

}  // namespace rankc::codegen::algebra
