// SPDX-License-Identifier: Apache-2.0
// Rules of the ops that depend on tokens (positions, the loss, attention and the embedding), over all
// placements of their operands.
#include <doctest/doctest.h>

#include <rankc/ops.hpp>

#include <string>

namespace tokens_test {

using namespace rankc;

namespace {

constexpr dim tokens{"tokens", 64}, features{"features", 8}, vocab{"vocab", 32}, positions{"positions", 16};
constexpr placement placements[]{R, I, V(0), V(1), P};

type of_tokens(dim last, placement p, axis over = axis::tp) {
  type t;
  t.ndim = 2;
  t.shape[0] = tokens;
  t.shape[1] = last;
  t[over] = p;
  return t;
}
type ids(placement p, axis over = axis::tp) {
  type t;
  t.ndim = 1;
  t.shape[0] = tokens;
  t.holds = element::index;
  t[over] = p;
  return t;
}

/// The message about an op's operands, without file and line.
std::string said(const trace& t) {
  if (t.said.empty()) return "";
  const std::string text(t.said[0].view());
  return text.substr(text.find(": ") + 2);
}

std::string of_loss(const type& logits, const type& targets, axis over) {
  trace t;
  const value x = t.add(logits), y = t.add(targets);
  cross_entropy(x, y, over, 1);
  return said(t);
}

std::string of_position(placement x, std::initializer_list<shard> sharded, dim rows = positions,
                        dim columns = features) {
  trace t;
  const value in = t.add(of_tokens(features, x));
  position(in, t.parameter("wpe", {rows, columns}, sharded, initial::ones), 16);
  return said(t);
}

}  // namespace

TEST_CASE("logits: each token's count once, next to its target") {
  const std::string not_once =
      "expected invariant (I), or sharded along the vocabulary (V): shard the weight that makes it, or do "
      "not "
      "replicate what it is made from (each rank would count the loss)";
  for (const placement targets : {I, V(0)})
    for (const placement p : placements)
      for (const axis over : {axis::tp, axis::cp}) {
        std::string expected;
        if (p == R) expected = "row_max: the value is replicated (R) over tp; " + not_once;
        if (p == P)
          expected =
              "row_max: the value is a pending sum (P) over tp; expected R, I or V: reduce it first "
              "(all_reduce, reduce_scatter)";
        if (p == V(0) && targets == I)
          expected =
              "row_max: the value is sharded along tokens (V) over tp; expected all tokens, as the targets "
              "are: all_gather it over the tokens first";
        if (p == I && targets == V(0))
          expected =
              "row_max: the value is invariant (I) over tp; expected sharded along the tokens, as the "
              "targets are: do not gather it";
        if (p == V(1) && targets == V(0))
          expected =
              "row_max: the value is sharded along vocab (V) over tp; expected sharded along the tokens, as "
              "the targets are: do not gather it";
        if (p == V(1) && over != axis::tp)
          expected =
              "row_max: the value is sharded along vocab (V) over tp; expected the whole vocabulary: "
              "all_gather it first";
        CHECK(of_loss(of_tokens(vocab, p), ids(targets), over) == expected);
      }
  // Logits gathered over cp, although each cp rank has a part of the targets.
  type logits = of_tokens(vocab, V(1));
  CHECK(of_loss(logits, ids(V(0), axis::cp), axis::tp) ==
        "row_max: the value is invariant (I) over cp; expected sharded along the tokens, as the targets are: "
        "do not gather it");
  logits[axis::cp] = V(0);
  CHECK(of_loss(logits, ids(V(0), axis::cp), axis::tp) == "");
  CHECK(of_loss(ids(I), ids(I), axis::tp) ==
        "row_max: the value is (tokens=64); expected rows of features, (tokens, features)");
}

TEST_CASE("positions: a whole table on every rank, added once to whole rows") {
  for (const placement p : placements) {
    CHECK((of_position(p, {}) == "") == (p != P && p != V(1)));
    CHECK(of_position(p, {{axis::tp, "positions"}}) != "");
    CHECK(of_position(p, {{axis::tp, "features"}}) != "");
  }
  CHECK(of_position(P, {}) ==
        "position 'wpe': the value is a pending sum (P) over tp; expected R, I or V (each rank would add the "
        "positions): "
        "reduce it first (all_reduce, reduce_scatter)");
  CHECK(of_position(V(1), {}) ==
        "position 'wpe': the value is sharded along features (V) over tp; expected whole rows: all_gather it "
        "first");
  CHECK(of_position(I, {{axis::tp, "positions"}}) ==
        "position 'wpe': the table is sharded along positions (V) over tp; expected the same on every rank "
        "(I): declare it without a shard");
  CHECK(of_position(V(0), {{axis::tp, "features"}}) ==
        "position 'wpe': the table is sharded along features (V) over tp; expected the same on every rank "
        "(I): declare it without a shard");
  const std::string expected = "; expected a row for each position of a sequence, (positions=16, features=8)";
  CHECK(of_position(I, {}, {"rows", 16}) == "");
  CHECK(of_position(I, {}, {"positions", 15}) ==
        "position 'wpe': the table is (positions=15, features=8)" + expected);
  CHECK(of_position(I, {}, positions, {"features", 4}) ==
        "position 'wpe': the table is (positions=16, features=4)" + expected);
  CHECK(of_position(I, {}, positions, {"other", 8}) ==
        "position 'wpe': the table is (positions=16, other=8)" + expected);
}

TEST_CASE("embedding: ids that are the same everywhere meet a table of which each rank has some rows") {
  const auto of = [](const type& in, std::initializer_list<shard> sharded) {
    trace t;
    const value x = t.add(in),
                y = embedding(x, t.parameter("wte", {vocab, features}, sharded, initial::ones));
    if (!said(t).empty()) return said(t);
    const placement p = t.of(y)[axis::tp];
    if (p == P) return std::string("P");
    return std::string(p == I ? "I" : "V");
  };
  CHECK(of(ids(I), {{axis::tp, "vocab"}}) == "P");
  CHECK(of(ids(I), {}) == "I");
  CHECK(of(ids(V(0)), {}) == "V");
  CHECK(of(ids(V(0)), {{axis::tp, "vocab"}}) ==
        "embedding 'wte': ids is sharded along tokens (V) over tp; expected the same on every rank: "
        "all_gather them first");
  CHECK(of(ids(I), {{axis::tp, "features"}}) ==
        "embedding 'wte': the table is sharded along features (V) over tp; expected whole or sharded along "
        "its rows: shard it along the vocabulary");
}

TEST_CASE("attention: a query meets every key") {
  const dim heads{"heads", 32, 8, "head_dim"}, kv_heads{"kv_heads", 16, 8, "head_dim"};
  const auto of = [&](axis over, placement q, placement k, placement v) {
    trace t;
    const value a = t.add(of_tokens(heads, q, over)), b = t.add(of_tokens(kv_heads, k, over)),
                c = t.add(of_tokens(kv_heads, v, over));
    attention(a, b, c, 4, 16);
    return said(t);
  };
  int legal = 0, asked = 0;
  for (const axis over : {axis::tp, axis::cp, axis::dp_replicate})
    for (const placement q : placements)
      for (const placement k : placements)
        for (const placement v : placements) {
          // Data-parallel ranks may have whole sequences each. cp ranks may have parts if every key is
          // replicated.
          const bool parts = q == V(0) && over == axis::cp;
          const bool ok =
              parts ? k == R && v == R : q == k && k == v && q != P && !(q == V(0) && over == axis::tp);
          CHECK((of(over, q, k, v) == "") == ok);
          legal += ok;
          ++asked;
        }
  CHECK(asked == 3 * 125);
  CHECK(legal == 3 + 4 + 4);
  CHECK(of(axis::cp, V(0), V(0), R) ==
        "attention: k is sharded along tokens (V) over cp; expected replicated (R): every query meets every "
        "key: all_gather it over the tokens first");
  CHECK(of(axis::tp, V(1), V(1), I) ==
        "attention: v is invariant (I) over tp; expected q's placement: all_gather it over the tokens first");
}

}  // namespace tokens_test
