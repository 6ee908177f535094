// SPDX-License-Identifier: Apache-2.0
// Gradient norm, AdamW and clearing against PyTorch's formulas in plain loops.
#include "workspace.hpp"

#include <array>

namespace optimizer_test {

using namespace rankc::test;
namespace host = rankc::host;
using rankc::runtime::range;

TEST_CASE_TEMPLATE("the sum of squares overwrites or adds", T, float, double) {
  workspace<T> space;
  const values g = random_values(1000, 1);
  values outside = g;  // elements outside the ranges must not count
  outside.insert(outside.begin() + 400, 7, 1e3);
  const at in_g = space.put(outside), total = space.room(1);
  const range ranges[]{{0, 400, true}, {407, 600, false}};
  host::sum_squares<T>(space.lane(), total, in_g, ranges, false);
  check_near(space.get(total, 1), {dot(g, g)}, tolerance<T>);
  host::sum_squares<T>(space.lane(), total, in_g, ranges, true);
  check_near(space.get(total, 1), {2 * dot(g, g)}, tolerance<T>);
}

TEST_CASE_TEMPLATE("AdamW with and without clipping and decay", T, float, double) {
  constexpr std::size_t count = 37;
  for (const double clip : {0.0, 0.5, 2.0, 100.0})  // the norms are about 3.5
    for (const bool decay : {false, true}) {
      CAPTURE(clip);
      CAPTURE(decay);
      const range ranges[]{{0, 20, decay},
                           {24, count - 24, !decay}};  // the elements between keep their values
      const auto decays = [&](std::size_t i) { return i < 20 ? decay : !decay; };
      workspace<T> space;
      values w = random_values(count, 1), m(count), v(count);
      const at in_w = space.put(w), in_m = space.put(m), in_v = space.put(v);
      for (int step = 1; step <= 3; ++step) {
        const values g = random_values(count, 10 + static_cast<unsigned>(step));
        space.rank().input = {0.01, 0.1, clip, 0.9, 0.95, 1e-8, step};
        host::adamw<T>(space.lane(), in_w, space.put(g), in_m, in_v, space.put(values{dot(g, g)}), ranges);
        REQUIRE(dot(g, g) > 2.5 * 2.5);
        REQUIRE(dot(g, g) < 100 * 100);
        const double scale = clip > 0 ? std::min(1.0, clip / (std::sqrt(dot(g, g)) + 1e-6)) : 1;
        for (std::size_t i = 0; i < count; ++i) {
          if (i >= 20 && i < 24) continue;
          if (decays(i)) w[i] -= 0.01 * 0.1 * w[i];
          m[i] = 0.9 * m[i] + 0.1 * scale * g[i];
          v[i] = 0.95 * v[i] + 0.05 * scale * g[i] * scale * g[i];
          const double first = m[i] / (1 - std::pow(0.9, step)), second = v[i] / (1 - std::pow(0.95, step));
          w[i] -= 0.01 * first / (std::sqrt(second) + 1e-8);
        }
      }
      check_near(space.get(in_w, count), w, tolerance<T>);
      check_near(space.get(in_m, count), m, tolerance<T>);
      check_near(space.get(in_v, count), v, tolerance<T>);
    }
}

TEST_CASE_TEMPLATE("a clip scales gradients whose norm is larger, and no others", T, float, double) {
  const values g = random_values(50, 1);
  const double norm = std::sqrt(dot(g, g));
  for (const double share : {0.5, 0.9, 1.1, 1.25, 2.0}) {
    CAPTURE(share);
    workspace<T> space;
    const values none(g.size());
    const at w = space.put(none), m = space.put(none), v = space.put(none);
    space.rank().input = {0.01, 0, share * norm, 0.9, 0.95, 1e-8, 1};
    host::adamw<T>(space.lane(), w, space.put(g), m, v, space.put(values{dot(g, g)}),
                   std::array{range{0, g.size(), true}});
    values first = g;
    for (double& x : first) x *= 0.1 * std::min(1.0, share);
    check_near(space.get(m, g.size()), first,
               std::max(tolerance<T>, 1e-6));  // clipping divides by the norm plus 1e-6
  }
}

TEST_CASE("a step whose norm is not finite changes nothing") {
  for (const double norm :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const double clip : {0.0, 1.0}) {
      workspace<double> space;
      const values before{1, 2}, gradient{1, norm};
      const at w = space.put(before), m = space.put(before), v = space.put(before),
               norm_at = space.put(values{norm});
      space.rank().input = {0.01, 0.1, clip, 0.9, 0.95, 1e-8, 1};
      host::adamw<double>(space.lane(), w, space.put(gradient), m, v, norm_at, std::array{range{0, 2, true}});
      host::sgd<double>(space.lane(), w, space.put(gradient), m, norm_at, std::array{range{0, 2, true}});
      for (const at kept : {w, m, v}) CHECK(space.get(kept, 2) == before);
    }
}

TEST_CASE_TEMPLATE("clear", T, float, double) {
  workspace<T> space;
  const at out = space.put(random_values(19, 1));
  host::clear<T>(space.lane(), out, 18);
  const values got = space.get(out, 19);
  for (int i = 0; i < 18; ++i) CHECK(got[i] == 0);
  CHECK(got[18] != 0);
}

}  // namespace optimizer_test
