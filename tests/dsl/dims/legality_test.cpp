// SPDX-License-Identifier: Apache-2.0
// Dims that are accepted, refused and inferred, against a search.
#include <doctest/doctest.h>

#include <limits>

#include "legal_dims.hpp"

namespace rankc::test {

namespace {

bool same_degrees(const parallel_dims& a, const parallel_dims& b) {
  for (const auto& n : all_degrees)
    if (a.*n.degree != b.*n.degree) return false;
  return true;
}

/// Requires rankc's verdicts to be as expected. A refusal searches for alternatives, which is slow, so that
/// only every 61st refused configuration is given to the rules.
class verdicts {
 public:
  void expect(const parallel_dims& d, bool legal) {
    REQUIRE(has_layout(resolve(d)) == legal);
    if (legal || refused_++ % 61 == 0) REQUIRE(accepted(d) == legal);
  }
  int refused() const { return refused_; }

 private:
  int refused_ = 0;
};

constexpr expert_layout layouts[]{expert_layout::folded, expert_layout::folded_over_replicas,
                                  expert_layout::independent};

}  // namespace

TEST_CASE("all that is legal is accepted") {
  for (int world = 1; world <= 64; ++world)
    for_each_legal(world, [](const parallel_dims& d) { REQUIRE(accepted(d)); });
}

TEST_CASE("one degree away from what is legal, dims are refused exactly where they are not") {
  verdicts v;
  for (int world = 1; world <= 12; ++world)
    for_each_legal(world, [&](const parallel_dims& d) {
      for (const auto& a : all_degrees)
        for (int n = -2; n <= world + 1; ++n) {
          if (n == infer) continue;
          parallel_dims other = d;
          other.*a.degree = n;
          v.expect(other, legal(other));
        }
    });
  CHECK(v.refused() > 100000);
}

TEST_CASE("small degrees, inferred or not, are accepted exactly where a search finds a layout") {
  constexpr int degrees[]{infer, 1, 2, 3};
  constexpr int combinations = 1 << (2 * std::size(all_degrees));
  verdicts v;
  for (const expert_layout layout : layouts)
    for (const int world : {6, 12, 24})
      for (int i = 0; i < combinations; ++i) {
        parallel_dims d{.world = world, .expert_layout = layout};
        int rest = i;
        for (const auto& a : all_degrees) {
          d.*a.degree = degrees[rest % 4];
          rest /= 4;
        }
        const auto found = inferred(d) <= 1 ? filled(d) : std::nullopt;
        v.expect(d, found.has_value());
        if (found) REQUIRE(same_degrees(resolve(d), *found));
      }
}

TEST_CASE("any single degree of legal dims can be inferred") {
  for (int world = 1; world <= 32; ++world)
    for_each_legal(world, [](const parallel_dims& d) {
      for (const auto& a : all_degrees) {
        parallel_dims unknown = d;
        unknown.*a.degree = infer;
        REQUIRE(accepted(unknown));
        const parallel_dims r = resolve(unknown);
        // The degrees that span the world determine each other. For ep, etp and ulysses, the largest is
        // inferred.
        if (spans_world(d, a.degree)) REQUIRE(same_degrees(r, d));
        else REQUIRE(same_degrees(r, *filled(unknown)));
      }
    });
}

TEST_CASE("degrees near the ends of int are refused or accepted like others") {
  constexpr int most = std::numeric_limits<int>::max(), least = std::numeric_limits<int>::min();
  verdicts v;
  for (const expert_layout layout : layouts)
    for (const int world : {64, 1 << 30, most})
      for (const auto& a : all_degrees)
        for (const auto& b : all_degrees)
          for (const auto& c : all_degrees)
            for (const int large : {1 << 16, 1 << 30, most, least, -2}) {
              parallel_dims d{.world = world, .expert_layout = layout};
              for (const auto& x : {a, b, c}) d.*x.degree = large;
              v.expect(d, legal(d));
              REQUIRE(same_degrees(resolve(d), d));
              d.*c.degree = infer;
              v.expect(d, legal(resolve(d)));
            }
}

}  // namespace rankc::test
