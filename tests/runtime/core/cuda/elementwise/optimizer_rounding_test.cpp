// SPDX-License-Identifier: Apache-2.0
// The bf16 state that the optimizer's kernels write: the host's bits, in shards of every kind, and with more
// tensors than a launch holds.
#include "../../tensor_shards.hpp"
#include "../bench.hpp"

#include <deque>

namespace rankc::runtime::cuda::test::rounding_test {
namespace {

using namespace rankc::test;

/// Replaces a bench's tables by another rank's while the object lives.
struct in_place_of {
  in_place_of(bench& b, const tensor_shards& t) : r(b.of()), about(r.about), where(r.where), row(r.row) {
    r.about = &t.about;
    r.where = &t.where;
    r.row = &t.row;
  }
  ~in_place_of() {
    r.about = about;
    r.where = where;
    r.row = row;
  }
  rank& r;
  const description* about;
  const layout* where;
  const rank_row* row;
};

TEST_CASE("an update in bf16 alone leaves the host's bits, in shards of every kind") {
  for (const bool misplaced : {false, true}) {
    bench b;
    if (misplaced) b.misplace();
    b.owner().set_input(exact_step);
    b.owner().copy_input();
    int ranks = 0, moved = 0, elements = 0;
    for_each_rank([&](const sharing& s, int dp, int tp) {
      CAPTURE(s.name);
      CAPTURE(dp);
      CAPTURE(tp);
      tensor_shards t(s, dp, tp);
      const std::size_t n = t.elements.size();
      numbers w(n), g(n), m(n), want_w(n), want_m(n);
      for (std::size_t i = 0; i < n; ++i) {
        const given x = given_of(t.is_vector(i), t.elements[i]);
        const left then = left_of(t.is_vector(i), t.elements[i]);
        w[i] = x.weight;
        g[i] = x.gradient;
        m[i] = x.moment;
        want_w[i] = t.is_gap(i) ? w[i] : widened(then.weight);
        want_m[i] = t.is_gap(i) ? m[i] : widened(then.moment);
        moved += want_w[i] != w[i];
        ++elements;
      }
      const at at_w = b.put<bf16>(w), at_g = b.put<float>(g), at_m = b.put<bf16>(m), norm = b.put<float>({1});
      const in_place_of other(b, t);
      sgd<bf16, bf16, bf16, rounding::stochastic>(b.on(), at_w, at_g, at_m, norm, t.ranges);
      CHECK(b.take<bf16>(at_w, n) == want_w);
      CHECK(b.take<bf16>(at_m, n) == want_m);
      ++ranks;
    });
    CHECK(ranks == 2 * (1 + 3 + 5 + 4 + 20 + 6));
    CHECK(moved > elements / 4);
  }
}

TEST_CASE("more tensors than one launch holds") {
  constexpr std::size_t count = 1600;
  bench b;
  std::deque<std::string> names;
  tensor_shards t(sharings[0], 0, 0);
  t.parameters.clear();
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back("layers." + std::to_string(i) + ".gain");
    t.parameters.push_back({names.back().c_str(), 1, 1, -1, i, fill::ones, 0, false, false});
  }
  t.where.parameters = t.parameters;
  const range all[]{{0, count, false}};
  const at w = b.put<bf16>(numbers(count, 1.0)), g = b.put<float>(numbers(count, 0x1.08p0)),
           norm = b.put<float>({1});
  b.owner().set_input(exact_step);
  b.owner().copy_input();
  const in_place_of other(b, t);
  sgd<bf16, bf16, no_moment, rounding::stochastic>(b.on(), w, g, {}, norm, all);
  const numbers got = b.take<bf16>(w, count);
  for (std::size_t i = 0; i < count; ++i) {
    bits_of_elements random(fnv1a64(names[i]), exact_step.rounding_seed, exact_step.step);
    REQUIRE(got[i] == widened(rounded_stochastically(1 - 0x1p-7f * 0x1.08p0f, random[0].weight)));
  }
}

/// An element of AdamW's state.
struct element {
  double w, m, v;
};
element after(element e, double g, double lr, int step) {
  e.m = 0.9 * e.m + 0.1 * g;
  e.v = 0.95 * e.v + 0.05 * g * g;
  e.w -= lr * 0.1 * e.w +
         lr / (1 - std::pow(0.9, step)) * e.m / (std::sqrt(e.v / (1 - std::pow(0.95, step))) + 1e-8);
  return e;
}

/// Check that each number kept in bf16 is a neighbour of the exact one, or the nearest.
void check_neighbours(const char* what, const numbers& got, const numbers& want, double units) {
  INFO(what);
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    REQUIRE(got[i] == rounded<bf16>(got[i]));
    REQUIRE(std::abs(got[i] - want[i]) <= units * 0x1p-7 * std::abs(want[i]) + 1e-6 * std::abs(want[i]));
  }
}

template <class Weight, class Moment, rounding How>
void check_adamw(double units) {
  constexpr std::size_t count = 5000;
  constexpr bool copies = sizeof(Weight) == 4;
  for (const bool misplaced : {false, true}) {
    bench b;
    if (misplaced) b.misplace();
    tensor_shards t(sharings[0], 0, 0);
    t.parameters = {{"all", static_cast<int>(count), 1, -1, 0, fill::zeros, 0, true, false}};
    t.where.parameters = t.parameters;
    const numbers w = random_numbers<Weight>(count, 1.0, 1), g = random_numbers<float>(count, 1.0, 2),
                  m = random_numbers<Moment>(count, 1.0, 3);
    numbers v = random_numbers<Moment>(count, 1.0, 4);
    for (double& x : v) x = std::abs(x);
    const at at_w = b.put<Weight>(w), at_g = b.put<float>(g), at_m = b.put<Moment>(m),
             at_v = b.put<Moment>(v), norm = b.put<float>({1}), copy = b.room<bf16>(count);
    t.where.working_copy = copy;
    b.owner().set_input(
        {.lr = 0.01, .weight_decay = 0.1, .clip = 0, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = 2});
    b.owner().copy_input();
    const in_place_of other(b, t);
    const range all[]{{0, count, true}};
    adamw<bf16, Weight, Moment, How>(b.on(), at_w, at_g, at_m, at_v, norm, all);
    numbers want_w(count), want_m(count), want_v(count);
    for (std::size_t i = 0; i < count; ++i) {
      const element e = after({w[i], m[i], v[i]}, g[i], 0.01, 2);
      want_w[i] = e.w;
      want_m[i] = e.m;
      want_v[i] = e.v;
    }
    const numbers got = b.take<Weight>(at_w, count);
    if (copies) check_close("w", got, want_w, 1e-5, 1e-6);
    else check_neighbours("w", got, want_w, units);
    if (sizeof(Moment) == 4) {
      check_close("m", b.take<Moment>(at_m, count), want_m, 1e-5, 1e-6);
      check_close("v", b.take<Moment>(at_v, count), want_v, 1e-5, 1e-6);
    } else {
      check_neighbours("m", b.take<Moment>(at_m, count), want_m, units);
      check_neighbours("v", b.take<Moment>(at_v, count), want_v, units);
    }
    const numbers copied = b.take<bf16>(copy, count);
    for (std::size_t i = 0; i < count; ++i)
      if (copies) REQUIRE(copied[i] == rounded<bf16>(got[i]));
      else REQUIRE(std::isnan(copied[i]));
  }
}

TEST_CASE("AdamW with moments in bf16, and without a master copy") {
  check_adamw<float, bf16, rounding::nearest>(0.5);
  check_adamw<float, bf16, rounding::stochastic>(1);
  check_adamw<bf16, float, rounding::stochastic>(1);
  check_adamw<bf16, bf16, rounding::stochastic>(1);
}

TEST_CASE_TEMPLATE("three steps of SGD over ranges", T, float, bf16) {
  constexpr std::size_t count = 9000;
  const range ranges[]{{0, 4096, true}, {4096, 1003, false}, {6001, 2500, true}};
  for (const double momentum : {0.0, 0.9})
    for (const bool nesterov : {false, true})
      for (const double clip : {0.0, 2.0}) {
        CAPTURE(momentum);
        CAPTURE(nesterov);
        CAPTURE(clip);
        bench b;
        numbers w = random_numbers<float>(count, 1.0, 1), m(count, 0.0);
        const numbers g = random_numbers<float>(count, 1.0, 2);
        double norm_squared = 0;
        for (const double x : g) norm_squared += x * x;
        const double scale = clip > 0 ? std::min(1.0, clip / (std::sqrt(norm_squared) + 1e-6)) : 1.0;
        const at at_w = b.put<float>(w), at_g = b.put<float>(g), at_m = b.put<float>(m),
                 norm = b.put<float>({norm_squared}), copy = b.room<bf16>(count);
        b.working_copy_at(copy);
        for (int step = 1; step <= 3; ++step) {
          b.owner().set_input({.lr = 0.01,
                               .weight_decay = 0.1,
                               .clip = clip,
                               .beta1 = 0,
                               .beta2 = 0,
                               .eps = 1,
                               .step = step,
                               .momentum = momentum,
                               .nesterov = nesterov});
          b.owner().copy_input();
          if (momentum == 0) sgd<T, float, no_moment>(b.on(), at_w, at_g, {}, norm, ranges);
          else sgd<T>(b.on(), at_w, at_g, at_m, norm, ranges);
          for (const range& each : ranges)
            for (std::size_t i = each.first; i < each.first + each.count; ++i) {
              const double by = g[i] * scale + (each.decay ? 0.1 * w[i] : 0);
              m[i] = momentum * m[i] + by;
              w[i] -= 0.01 * (nesterov ? by + momentum * m[i] : m[i]);
            }
        }
        const numbers got = b.take<float>(at_w, count), copied = b.take<bf16>(copy, count);
        check_close("w", got, w, 1e-5, 1e-6);
        if (momentum > 0) check_close("m", b.take<float>(at_m, count), m, 1e-5, 1e-6);
        for (const range& each : ranges)
          for (std::size_t i = each.first; i < each.first + each.count; ++i)
            if (sizeof(T) == 2) REQUIRE(copied[i] == rounded<bf16>(got[i]));
      }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::rounding_test
