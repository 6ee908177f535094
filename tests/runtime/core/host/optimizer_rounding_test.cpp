// SPDX-License-Identifier: Apache-2.0
// Persistent bf16 state: its rounding, the random bits, and updates in shards of every kind.
#include "../tensor_shards.hpp"
#include "workspace.hpp"

#include <array>
#include <set>

namespace rounding_test {

using namespace rankc::test;
using namespace rankc::runtime;
namespace host = rankc::host;

TEST_CASE("Philox gives the published words") {
  struct known {
    random_words counter;
    std::uint32_t key[2];
    std::uint32_t words[4];
  };
  // Source: kat_vectors of Random123.
  constexpr std::uint32_t all = 0xFFFFFFFF;
  const known vectors[]{
      {{{0, 0, 0, 0}}, {0, 0}, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
      {{{all, all, all, all}}, {all, all}, {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
      {{{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}},
       {0xA4093822, 0x299F31D0},
       {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}}};
  for (const known& v : vectors) {
    const random_words got = philox(v.counter, v.key[0], v.key[1]);
    for (int i = 0; i < 4; ++i) CHECK(got.word[i] == v.words[i]);
  }
}

TEST_CASE("the nearest of bf16, ties to even") {
  for (std::uint32_t upper = 0; upper < 0x7F7F; upper += 7)
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const std::uint32_t even = (upper & ~1u) | sign;
      const auto of = [&](std::uint32_t lower) {
        return rounded_to_nearest(std::bit_cast<float>(even << 16 | lower)).bits;
      };
      const bool right = of(0) == even && of(0x7FFF) == even && of(0x8000) == even &&
                         of(0x8001) == even + 1 &&
                         rounded_to_nearest(std::bit_cast<float>((even + 1) << 16 | 0x8000)).bits == even + 2;
      CHECK(right);
    }
  const float infinite = std::numeric_limits<float>::infinity();
  CHECK(widened(rounded_to_nearest(infinite)) == infinite);
  CHECK(std::isnan(widened(rounded_to_nearest(std::bit_cast<float>(0x7F800001)))));
  CHECK(widened(rounded_to_nearest(3.4e38f)) == infinite);
}

TEST_CASE("of all random numbers as many round up as a number is above its lower neighbour") {
  for (const std::uint32_t bits :
       {0x3F80'0000u, 0x3F80'0001u, 0x3F81'4567u, 0xBF81'FFFFu, 0x0001'8000u, 0xC77F'8001u}) {
    CAPTURE(bits);
    std::uint32_t up = 0;
    for (std::uint32_t random = 0; random < 0x10000; ++random) {
      const std::uint16_t got =
          rounded_stochastically(std::bit_cast<float>(bits), static_cast<std::uint16_t>(random)).bits;
      const bool is_neighbour = got == bits >> 16 || got == (bits >> 16) + 1;
      if (!is_neighbour) FAIL("no neighbour");
      up += got != bits >> 16;
    }
    CHECK(up == (bits & 0xFFFF));
  }
  const float infinite = std::numeric_limits<float>::infinity();
  CHECK(widened(rounded_stochastically(-infinite, 0xFFFF)) == -infinite);
  CHECK(std::isnan(widened(rounded_stochastically(std::numeric_limits<float>::quiet_NaN(), 0xFFFF))));
}

TEST_CASE(
    "the bits of elements are their own: of tensor, index, step and seed, and of each thing that is kept") {
  std::set<std::uint64_t> seen;
  int drawn = 0;
  for (const std::uint64_t tensor : {fnv1a64("layers.0.wq"), fnv1a64("layers.1.wq")})
    for (const std::uint32_t seed : {0u, 1u})
      for (const std::uint32_t step : {1u, 2u}) {
        bits_of_elements random(tensor, seed, step);
        for (const std::uint64_t first : {0ull, 1ull << 33})
          for (std::uint64_t e = first; e < first + 64; ++e, ++drawn) {
            const element_bits b = random[e];
            seen.insert(std::uint64_t{b.weight} << 32 | std::uint64_t{b.first_moment} << 16 |
                        b.second_moment);
          }
      }
  CHECK(static_cast<int>(seen.size()) == drawn);  // no two of 1024 draws out of 2^48 are equal
  double sum[3]{};
  bits_of_elements random(7, 7, 7);
  for (std::uint64_t e = 0; e < 100'000; ++e) {
    const element_bits b = random[e];
    sum[0] += b.weight;
    sum[1] += b.first_moment;
    sum[2] += b.second_moment;
  }
  for (const double s : sum)
    CHECK(s / 100'000 == doctest::Approx(32767.5).epsilon(0.01));  // 5 standard deviations
}

TEST_CASE("an update in bf16 alone leaves the same bits in shards of every kind") {
  int ranks = 0, elements = 0, moved = 0;
  for_each_rank([&](const sharing& s, int dp, int tp) {
    CAPTURE(s.name);
    CAPTURE(dp);
    CAPTURE(tp);
    tensor_shards t(s, dp, tp);
    workspace<float> space;
    space.rank().about = &t.about;
    space.rank().where = &t.where;
    space.rank().row = &t.row;
    space.rank().input = exact_step;
    const std::size_t n = t.elements.size();
    const at w = space.room(n), m = space.room(n), g = space.room(n), norm = space.put(values{1});
    auto *weight = space.rank().at<bf16_bits>(w), *moment = space.rank().at<bf16_bits>(m);
    for (std::size_t i = 0; i < n; ++i) {
      const given x = given_of(t.is_vector(i), t.elements[i]);
      weight[i] = rounded_to_nearest(x.weight);
      moment[i] = rounded_to_nearest(x.moment);
      space.rank().at<float>(g)[i] = x.gradient;
      if (t.is_gap(i)) weight[i] = moment[i] = {0x7FC0};
    }
    host::sgd<float, bf16_bits, bf16_bits, rounding::stochastic>(space.lane(), w, g, m, norm, t.ranges);
    for (std::size_t i = 0; i < n; ++i, ++elements) {
      CAPTURE(i);
      const left want = t.is_gap(i) ? left{{0x7FC0}, {0x7FC0}} : left_of(t.is_vector(i), t.elements[i]);
      CHECK(weight[i] == want.weight);
      CHECK(moment[i] == want.moment);
      moved += want.weight != rounded_to_nearest(given_of(t.is_vector(i), t.elements[i]).weight);
    }
    ++ranks;
  });
  CHECK(ranks == 2 * (1 + 3 + 5 + 4 + 20 + 6));
  CHECK(moved > elements / 4);
}

TEST_CASE_TEMPLATE("moments in bf16 are worked out as wide ones and rounded once", T, float, double) {
  constexpr std::size_t count = 257;
  const range all{0, count, true};
  workspace<T> wide, narrow;
  const values w = random_values(count, 1);
  for (workspace<T>* space : {&wide, &narrow}) space->rank().input = {0.01, 0.1, 0, 0.9, 0.95, 1e-8, 4};
  const values m = random_values(count, 2), v = random_values(count, 3), g = random_values(count, 4);
  const auto put_narrow = [&](const values& x, bool square) {
    const at where = narrow.room(count);
    for (std::size_t i = 0; i < count; ++i)
      narrow.rank().template at<bf16_bits>(where)[i] =
          rounded_to_nearest(static_cast<float>(square ? x[i] * x[i] : x[i]));
    return where;
  };
  const auto of_narrow = [&](at where) {
    values x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = widened(narrow.rank().template at<bf16_bits>(where)[i]);
    return x;
  };
  const at norm_w = wide.put(values{1}), norm_n = narrow.put(values{1});
  const at nm = put_narrow(m, false), nv = put_narrow(v, true), nw = narrow.put(w), ww = wide.put(w);
  const at wm = wide.put(of_narrow(nm)), wv = wide.put(of_narrow(nv));
  host::adamw<T>(wide.lane(), ww, wide.put(g), wm, wv, norm_w, {&all, 1});
  host::adamw<T, T, bf16_bits>(narrow.lane(), nw, narrow.put(g), nm, nv, norm_n, {&all, 1});
  check_near(narrow.get(nw, count), wide.get(ww, count), tolerance<T>);
  for (const auto& [kept, exact] :
       {std::pair(of_narrow(nm), wide.get(wm, count)), std::pair(of_narrow(nv), wide.get(wv, count))}) {
    int rounded = 0;
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(std::abs(kept[i] - exact[i]) <= 0x1p-8 * std::abs(exact[i]));
      rounded += kept[i] != exact[i];
    }
    CHECK(rounded > static_cast<int>(count) / 2);
  }
}

TEST_CASE_TEMPLATE("SGD with momentum, Nesterov's too, clipping and decay", T, float, double) {
  constexpr std::size_t count = 37;
  for (const double clip : {0.0, 0.5})
    for (const double momentum : {0.0, 0.9})
      for (const bool nesterov : {false, true}) {
        CAPTURE(clip);
        CAPTURE(momentum);
        CAPTURE(nesterov);
        const range ranges[]{{0, 20, true},
                             {24, count - 24, false}};  // the elements between keep their values
        workspace<T> space;
        values w = random_values(count, 1), m(count);
        const at in_w = space.put(w), in_m = space.put(m);
        for (int step = 1; step <= 4; ++step) {
          const values g = random_values(count, 10 + static_cast<unsigned>(step));
          space.rank().input = {0.01, 0.1, clip, 0, 0, 1, step, momentum, nesterov};
          const at in_g = space.put(g), norm = space.put(values{dot(g, g)});
          if (momentum == 0) host::sgd<T, T, no_moment>(space.lane(), in_w, in_g, {}, norm, ranges);
          else host::sgd<T>(space.lane(), in_w, in_g, in_m, norm, ranges);
          const double scale = clip > 0 ? std::min(1.0, clip / (std::sqrt(dot(g, g)) + 1e-6)) : 1;
          for (std::size_t i = 0; i < count; ++i) {
            if (i >= 20 && i < 24) continue;
            const double by = scale * g[i] + (i < 20 ? 0.1 * w[i] : 0);
            m[i] = momentum * m[i] + by;
            w[i] -= 0.01 * (nesterov ? by + momentum * m[i] : m[i]);
          }
        }
        check_near(space.get(in_w, count), w, tolerance<T>);
        if (momentum > 0) check_near(space.get(in_m, count), m, tolerance<T>);
        else CHECK(space.get(in_m, count) == values(count));
      }
}

}  // namespace rounding_test
