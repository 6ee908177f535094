// SPDX-License-Identifier: Apache-2.0
// Exchanges of slots: each slot arrives where the offsets sent with it say, returns to its origin, and is
// never dropped.
#include <doctest/doctest.h>

#include "slots.hpp"

#include <algorithm>

namespace slots_test {

using namespace field;

namespace {

constexpr std::int64_t members = 3, each = 2, experts = members * each, slots = 12, width = 3;

/// The slots of a member's tokens in the order of their experts; each expert's number of slots is drawn.
slot_exchange drawn(std::int64_t slab) {
  slot_exchange x{{}, {}, slab};
  for (std::int64_t m = 0; m < members; ++m) {
    matrix given(extent{slots, width}), offsets(extent{2, experts});
    for (std::size_t i = 0; i < given.of.size(); ++i)
      given.of[i] = draw(mix(key_of("slot"), mix(static_cast<std::uint64_t>(m), i)));
    std::vector<std::int64_t> expert_of(slots);
    for (std::size_t n = 0; n < expert_of.size(); ++n)
      expert_of[n] = static_cast<std::int64_t>(
          draw_below(mix(key_of("expert"), mix(static_cast<std::uint64_t>(m), n)), experts));
    std::sort(expert_of.begin(), expert_of.end());
    for (std::int64_t e = 0; e < experts; ++e) {
      const auto [first, end] = std::equal_range(expert_of.begin(), expert_of.end(), e);
      offsets.row(0)[e] = static_cast<element>(first - expert_of.begin());
      offsets.row(1)[e] = static_cast<element>(end - expert_of.begin());
    }
    x.given.push_back(given);
    x.offsets.push_back(offsets);
  }
  return x;
}

matrix made(void (*send)(const slot_exchange&, std::size_t, matrix&), const slot_exchange& x,
            std::size_t member, extent is) {
  matrix m(is);
  send(x, member, m);
  return m;
}

}  // namespace

TEST_CASE("slots arrive where shared offsets say, and come back where they were") {
  const slot_exchange x = drawn(slots);
  slot_exchange back = x;
  std::int64_t seen = 0;
  for (std::size_t m = 0; m < members; ++m) {
    const matrix shared = made(send_offsets, x, m, {2, experts});
    const matrix& received = back.given[m] = made(send_to_experts, x, m, {members * slots, width});
    for (std::int64_t s = 0; s < experts; ++s) {
      const std::size_t giver = static_cast<std::size_t>(s / each);
      const std::int64_t expert = static_cast<std::int64_t>(m) * each + s % each;
      const matrix& own = x.offsets[giver];
      REQUIRE(shared.row(1)[s] - shared.row(0)[s] == own.row(1)[expert] - own.row(0)[expert]);
      for (std::int64_t n = 0; n < static_cast<std::int64_t>(shared.row(1)[s] - shared.row(0)[s]);
           ++n, ++seen) {
        const element* at = received.row(static_cast<std::int64_t>(shared.row(0)[s]) + n);
        CHECK(std::equal(at, at + width,
                         x.given[giver].row(static_cast<std::int64_t>(own.row(0)[expert]) + n)));
      }
    }
  }
  CHECK(seen == members * slots);
  for (std::size_t m = 0; m < members; ++m)
    CHECK(made(send_from_experts, back, m, {slots, width}).of == x.given[m].of);
}

TEST_CASE(
    "slots that have no room, experts that are not shared out, and slabs in another place are no exchange") {
  const slot_exchange x = drawn(2);
  CHECK_THROWS_AS(made(send_to_experts, x, 0, {members * 2, width}), malformed);
  CHECK_THROWS_AS(made(send_offsets, x, 0, {2, experts}), malformed);
  slot_exchange other = drawn(slots);
  CHECK_THROWS_AS(made(send_to_experts, other, 0, {members * slots, width + 1}), malformed);
  CHECK_THROWS_AS(made(send_to_experts, other, 0, {slots, width}), malformed);
  other.offsets[1] = matrix(extent{2, experts - 1});
  CHECK_THROWS_AS(made(send_offsets, other, 0, {2, experts}), malformed);
}

}  // namespace slots_test
