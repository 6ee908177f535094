// SPDX-License-Identifier: Apache-2.0
#include "slots.hpp"

#include "rows.hpp"

#include <algorithm>

namespace field {

namespace {

std::int64_t offset_of(element e) {
  const auto n = static_cast<std::int64_t>(e);
  expect(n >= 0 && n <= 1 << 20 && static_cast<element>(n) == e, "an offset that is none");
  return n;
}

/// The slots of one expert: their rows in the sending member's tensor and in the receiving member's.
struct segment {
  std::int64_t column;  // in the offset table of the receiving member
  std::int64_t first, received, count;
};

/// Visit the segments that a member's slots have at another member's experts.
void each_segment(const slot_exchange& x, std::size_t of_tokens, std::size_t of_experts, auto visit) {
  const matrix& offsets = x.offsets[of_tokens];
  const auto members = static_cast<std::int64_t>(x.offsets.size()),
             giver = static_cast<std::int64_t>(of_tokens), taker = static_cast<std::int64_t>(of_experts),
             each = offsets.is.cols / members;
  expect(offsets.is.rows == 2 && each > 0 && offsets.is.cols == each * members,
         "experts that its members do not share out");
  std::int64_t next = giver * x.slab;
  for (std::int64_t i = 0; i < each; ++i) {
    const std::int64_t first = offset_of(offsets.row(0)[taker * each + i]),
                       end = offset_of(offsets.row(1)[taker * each + i]);
    expect(first <= end && next + end - first <= (giver + 1) * x.slab, "slots that have no room in a slab");
    visit(segment{giver * each + i, first, next, end - first});
    next += end - first;
  }
}

void draw_all(matrix& m) {
  for (std::size_t i = 0; i < m.of.size(); ++i) m.of[i] = draw(mix(key_of("no slot"), i));
}
void copy_rows(const matrix& from, std::int64_t first, matrix& to, std::int64_t at, std::int64_t count) {
  expect(from.is.cols == to.is.cols, "slots of another width");
  expect(first + count <= from.is.rows && at + count <= to.is.rows, "slots that are not there");
  std::copy_n(from.row(first), count * from.is.cols, to.row(at));
}

}  // namespace

void send_to_experts(const slot_exchange& x, std::size_t member, matrix& received) {
  draw_all(received);
  for (std::size_t m = 0; m < x.given.size(); ++m)
    each_segment(x, m, member,
                 [&](const segment& s) { copy_rows(x.given[m], s.first, received, s.received, s.count); });
}

void send_from_experts(const slot_exchange& x, std::size_t member, matrix& slots) {
  draw_all(slots);
  for (std::size_t m = 0; m < x.given.size(); ++m)
    each_segment(x, member, m,
                 [&](const segment& s) { copy_rows(x.given[m], s.received, slots, s.first, s.count); });
}

void send_offsets(const slot_exchange& x, std::size_t member, matrix& shared) {
  expect(shared.is.rows == 2 && shared.is.cols == x.offsets[member].is.cols, "a table of other segments");
  for (std::size_t m = 0; m < x.offsets.size(); ++m)
    each_segment(x, m, member, [&](const segment& s) {
      shared.row(0)[s.column] = static_cast<element>(s.received);
      shared.row(1)[s.column] = static_cast<element>(s.received + s.count);
    });
}

void gather_offsets(const slot_exchange& x, std::size_t, matrix& gathered) {
  const std::int64_t each = x.offsets.front().is.cols;
  expect(gathered.is.rows == 2 && gathered.is.cols == each * static_cast<std::int64_t>(x.offsets.size()),
         "a table of other segments");
  for (std::size_t m = 0; m < x.offsets.size(); ++m)
    for (int which = 0; which < 2; ++which)
      for (std::int64_t s = 0; s < each; ++s) {
        const std::int64_t at = offset_of(x.offsets[m].row(which)[s]), before = static_cast<std::int64_t>(m);
        expect(at <= x.slab, "slots that lie past their member's slab");
        gathered.row(which)[before * each + s] = static_cast<element>(before * x.slab + at);
      }
}

}  // namespace field
