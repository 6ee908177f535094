// SPDX-License-Identifier: Apache-2.0
// Rules of single ops that the models do not cover, over all placements of their operands.
#include <doctest/doctest.h>

#include <rankc/ops.hpp>

#include <algorithm>
#include <string>

namespace rules_test {

using namespace rankc;

namespace {

constexpr dim tokens{"tokens", 64}, features{"features", 8}, wide{"wide", 16};
constexpr placement placements[]{R, I, V(0), V(1), P};

constexpr type rows_of(dim last, placement over_tp) {
  type t;
  t.ndim = 2;
  t.shape[0] = tokens;
  t.shape[1] = last;
  t[axis::tp] = over_tp;
  return t;
}

/// The message of one op over tp, and the placements of its result and of its operands' gradients.
struct outcome {
  std::string said;
  placement result = I, gradient = I, of_weight = I;
  bool ok() const { return said.empty(); }
};
outcome run(placement x, auto make) {
  trace t;
  const value in = t.add(rows_of(features, x));
  t.input = in.id;
  t.derive_backward(make(t, in));
  outcome o;
  if (!t.said.empty()) {
    o.said = std::string(t.said[0].view());
    return o;
  }
  o.result = t.values[t.result][axis::tp];
  o.gradient = t.values[t.gradients[in.id]][axis::tp];
  if (!t.weights.empty()) o.of_weight = t.weights[0].gradient[axis::tp];
  return o;
}

/// Whether a linear op's weight is whole, or sharded along its output or input features.
enum sharding { whole, by_out, by_in };
value weight_of(trace& t, sharding s) {
  if (s == whole) return t.parameter("w", {wide, features}, {}, initial::ones);
  return t.parameter("w", {wide, features}, {{axis::tp, s == by_out ? "wide" : "features"}}, initial::ones);
}
outcome run_linear(placement x, sharding s) {
  return run(x, [&](trace& t, value in) { return linear(in, weight_of(t, s)); });
}

}  // namespace

static_assert(cotangent(R) == P && cotangent(P) == R && cotangent(I) == I && cotangent(V(1)) == V(1));

TEST_CASE("linear") {
  struct expected {
    placement x;
    sharding s;
    placement y, dw;
  };
  // A rank's part of y[t, o] = sum_i x[t, i] w[o, i], and of dw[o, i] = sum_t dy[t, o] x[t, i].
  const expected table[]{{R, whole, R, P}, {I, whole, I, I},        {V(0), whole, V(0), P},
                         {P, whole, P, P}, {R, by_out, V(1), V(0)}, {V(1), by_in, P, V(1)}};
  for (placement x : placements)
    for (sharding s : {whole, by_out, by_in}) {
      const outcome o = run_linear(x, s);
      bool legal = false;
      for (const expected& e : table)
        if (e.x == x && e.s == s) {
          legal = true;
          CHECK(o.said == "");
          CHECK(o.result == e.y);
          CHECK(o.of_weight == e.dw);
          CHECK(o.gradient == cotangent(x));
        }
      CHECK(o.ok() == legal);
    }
}

TEST_CASE("sums need one placement") {
  for (placement p : placements)
    for (placement q : placements) {
      trace t;
      const value a = t.add(rows_of(features, p)), b = t.add(rows_of(features, q));
      const value sum = a + b;
      CHECK(t.said.empty() == (p == q));
      if (p == q) CHECK(t.of(sum)[axis::tp] == p);
    }
}

TEST_CASE("a product is linear in one pending sum") {
  for (placement p : placements)
    for (placement q : placements) {
      trace t;
      const value a = t.add(rows_of(features, p)), b = t.add(rows_of(features, q));
      t.input = a.id;
      t.derive_backward(a * b);
      const bool pending = (p == P && q == R) || (p == R && q == P);
      CHECK(t.said.empty() == (pending || (p == q && p != P)));
      if (!t.said.empty()) continue;
      CHECK(t.values[t.result][axis::tp] == (pending ? P : p));
      CHECK(t.values[t.gradients[a.id]][axis::tp] == cotangent(p));
      CHECK(t.values[t.gradients[b.id]][axis::tp] == cotangent(q));
    }
}

TEST_CASE("gates, multiples and softmax") {
  for (placement p : placements) {
    CHECK(run(p, [](trace&, value x) { return sigmoid(x); }).ok() == (p != P));
    CHECK(run(p, [](trace&, value x) { return softmax(x); }).ok() == (p != P && p != V(1)));
    const outcome scaled = run(p, [](trace&, value x) { return scale(x, 2); });
    CHECK(scaled.ok());
    CHECK(scaled.result == p);
    CHECK(scaled.gradient == cotangent(p));
  }
}

TEST_CASE("heads are normalised wherever they are; their gain is summed over where they are shared out") {
  const dim heads{"heads", 8, 4, "head_dim"}, element{"head_dim", 4};
  for (placement p : placements) {
    trace t;
    const value x = t.add(rows_of(heads, p));
    t.input = x.id;
    t.derive_backward(head_norm(x, t.parameter("g", {element}, {}, initial::ones)));
    CHECK(t.said.empty() == (p != P));
    if (!t.said.empty()) continue;
    CHECK(t.values[t.result][axis::tp] == p);
    CHECK(t.values[t.gradients[x.id]][axis::tp] == cotangent(p));
    CHECK(t.weights[0].gradient[axis::tp] == (p == I ? I : P));
  }
}

TEST_CASE(
    "rows are taken apart where they are whole, heads everywhere; what nothing uses has a gradient of "
    "zeros") {
  const dim left{"left", 4, 2, "part"}, right{"right", 4, 2, "part"}, heads{"heads", 8, 4, "head_dim"};
  for (const bool of_heads : {false, true})
    for (const int used : {0, 1, 2})
      for (placement p : placements) {
        trace t;
        const value x = t.add(rows_of(of_heads ? heads : dim{"heads", 8, 2, "part"}, p));
        t.input = x.id;
        const auto [a, b] = split(x, left, right);
        value result = used == 0 ? a : b;
        if (used == 2) result = concat(b, a, dim{"both", 8, of_heads ? 4 : 2, "all"});
        t.derive_backward(result);
        CHECK(t.said.empty() == (of_heads || p != V(1)));
        if (!t.said.empty()) continue;
        CHECK(t.values[t.result][axis::tp] == p);
        CHECK(t.values[t.gradients[x.id]] == cotangent(t.of(x)));
        CHECK(t.ops[0].kind == (of_heads ? &ops::split_heads : &ops::split));
        const auto zeros =
            std::count_if(t.ops.begin(), t.ops.end(), [](const op& o) { return o.kind == &ops::zeros; });
        CHECK(zeros == (used < 2));
      }
}

TEST_CASE("what is not linear meets no pending sum; norms need whole rows") {
  for (placement p : placements) {
    CHECK(run(p, [](trace&, value x) { return gelu(x); }).ok() == (p != P));
    CHECK(run(p, [](trace&, value x) { return swiglu(x, x); }).ok() == (p != P));
    const outcome norm = run(
        p, [](trace& t, value x) { return rms_norm(x, t.parameter("g", {features}, {}, initial::ones)); });
    CHECK(norm.ok() == (p != P && p != V(1)));
    if (norm.ok()) CHECK(norm.of_weight == (p == I ? I : P));
    const outcome added =
        run(p, [](trace& t, value x) { return bias(x, t.parameter("b", {features}, {}, initial::zeros)); });
    CHECK(added.ok() == (p != P && p != V(1)));
    if (added.ok()) CHECK(added.of_weight == (p == I ? I : P));
  }
}

TEST_CASE("a conversion takes one placement to one other, and backward is its dual") {
  struct conversion {
    std::string_view name;
    value (*make)(value);
    placement from, to;
  };
  const conversion table[]{
      {"replicate", [](value x) { return replicate(x, axis::tp); }, I, R},
      {"all_reduce", [](value x) { return all_reduce(x, axis::tp); }, P, I},
      {"all_gather", [](value x) { return all_gather(x, axis::tp, "tokens"); }, V(0), R},
      {"all_gather", [](value x) { return all_gather(x, axis::tp, "features"); }, V(1), R},
      {"reduce_scatter", [](value x) { return reduce_scatter(x, axis::tp, "tokens"); }, P, V(0)},
      {"reduce_scatter", [](value x) { return reduce_scatter(x, axis::tp, "features"); }, P, V(1)}};
  for (const conversion& c : table)
    for (placement p : placements) {
      const outcome o = run(p, [&](trace&, value x) { return c.make(x); });
      CAPTURE(std::string(c.name));
      CHECK(o.ok() == (p == c.from));
      if (!o.ok()) continue;
      CHECK(o.result == c.to);
      CHECK(o.gradient == cotangent(p));
    }
}

TEST_CASE("an exchange over cp takes shards along one dim to shards along the other, and its gradient back") {
  struct exchange {
    std::string_view to;
    placement from, becomes;
    int ring = 1;
  };
  std::vector<placement> all(std::begin(placements), std::end(placements));
  all.push_back(heads_in_ring);
  for (const auto& [to, from, becomes, ring] :
       {exchange{"features", V(0), V(1)}, exchange{"tokens", V(1), V(0)},
        exchange{"features", V(0), heads_in_ring, 2}, exchange{"tokens", heads_in_ring, V(0), 2}})
    for (placement p : all) {
      trace t;
      type x = rows_of(features, I);
      x[axis::cp] = p;
      const value in = t.add(x), out = all_to_all(in, axis::cp, to, 8, ring);
      CHECK(t.said.empty() == (p == from));
      if (!t.said.empty()) continue;
      CHECK(t.of(out)[axis::cp] == becomes);
      t.derive_backward(out);
      CHECK(t.said.empty());
      CHECK(t.of(t.gradient_of(in.id))[axis::cp] == from);
      CHECK(t.ops.back().kind == &ops::all_to_all);
    }
}

TEST_CASE("a shift takes shards of tokens to the next rank, around a ring, and their gradients back") {
  for (placement p : placements) {
    trace t;
    type x = rows_of(features, I);
    x[axis::cp] = p;
    const value k = t.add(x), v = t.add(x);
    const value_pair first = shift(k, v, axis::cp, 3);
    CHECK(t.said.empty() == (p == V(0)));
    if (!t.said.empty()) continue;
    CHECK(t.of(first.first).shape[0].passed == 1);
    const value_pair second = shift(first.first, first.second, axis::cp, 3),
                     home = shift(second.first, second.second, axis::cp, 3);
    CHECK(t.of(second.second).shape[0].passed == 2);
    CHECK(t.of(home.first) == x);
    CHECK(t.of(shift_back(k, v, axis::cp, 3).first) == t.of(second.first));
    CHECK((t.said.empty() && t.of(first.first) != x));
    t.ops.pop_back();
    t.derive_backward(home.first);
    CHECK(t.said.empty());
    CHECK(t.of(t.gradient_of(k.id))[axis::cp] == V(0));
    CHECK(t.ops.back().kind == &ops::shift_back);
    CHECK(t.of(t.gradient_of(first.first.id)).shape[0].passed == 1);
  }
}

TEST_CASE("a ring's parts are of keys that have come as many ranks as the step says") {
  const dim heads{"heads", 8, 4, "head_dim"};
  for (const int step : {0, 1, 2}) {
    trace t;
    type x = rows_of(heads, I);
    x[axis::cp] = V(0);
    const value q = t.add(x), k = t.add(x), v = t.add(x);
    const value_pair other = shift(k, v, axis::cp, 3);
    t.apply(ops::ring_attention, {q, other.first, other.second}, {},
            {.with = {.rows = 1, .seq = 6, .ring = 3, .step = static_cast<double>(step)}});
    CHECK(t.said.empty() == (step == 1));
  }
}

TEST_CASE(
    "backward of a ring takes keys around the other way, one shift for each, and brings their gradients "
    "home") {
  for (const int ring : {2, 3, 4}) {
    const dim heads{"heads", 8, 4, "head_dim"};
    trace t;
    type x = rows_of(heads, I);
    x[axis::cp] = V(0);
    const value q = t.add(x), k = t.add(x), v = t.add(x);
    t.derive_backward(ring_attention(q, k, v, 1, 24, ring));
    CHECK(t.said.empty());
    int forward = 0, keys = 0, gradients = 0;
    for (std::size_t i = 0; i < t.ops.size(); ++i) {
      forward += t.ops[i].kind == &ops::shift && i < t.forward_ops;
      if (t.ops[i].kind != &ops::shift_back) continue;
      bool is_gradient = false;
      for (int g : t.gradients) is_gradient |= g == t.ops[i].in[0];
      ++(is_gradient ? gradients : keys);
    }
    CHECK(forward == ring - 1);
    CHECK(keys == ring - 1);
    CHECK(gradients == ring - 1);
    for (const value of : {q, k, v}) CHECK(t.of(t.gradient_of(of.id)) == x);
  }
}

TEST_CASE("shards of two axes along one dim are converted from the inside out") {
  trace t;
  type x = rows_of(features, V(0));
  x[axis::cp] = V(0);
  const value in = t.add(x);
  CHECK(t.of(all_gather(all_gather(in, axis::tp, "tokens"), axis::cp, "tokens"))[axis::cp] == R);
  CHECK(t.said.empty());
  all_gather(in, axis::cp, "tokens");
  CHECK(t.said.size() == 1);
}

TEST_CASE("the first mistake alone is said") {
  trace t;
  const value in = t.add(rows_of(features, P));
  const value bad = gelu(in);
  (void)(bad + gelu(gelu(bad)));
  gelu(in);
  REQUIRE(t.said.size() == 1);
  CHECK(t.said[0].view().find("rules_test.cpp:") == 0);
}

}  // namespace rules_test
