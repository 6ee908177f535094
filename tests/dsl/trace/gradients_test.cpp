// SPDX-License-Identifier: Apache-2.0
// Placements of gradients: for every value the dual of its placement, for every parameter the sum that is
// still to be reduced.
#include "traces.hpp"

#include <doctest/doctest.h>

namespace gradients_test {

using namespace rankc;
using namespace rankc::testing;

namespace {

/// Whether value and gradient have dual placements: a pending sum has a replicated gradient, and the reverse.
bool are_dual(placement value, placement gradient) {
  switch (value.k) {
    case placement::R:
      return gradient == P;
    case placement::P:
      return gradient == R;
    default:
      return gradient == value;
  }
}

std::vector<plan_data> all() { return {gpt2(false), gpt2(true), llama(false), llama(true)}; }

}  // namespace

TEST_CASE("every value's gradient has its shape and the dual placement") {
  for (const plan_data& p : all())
    for (const layer_kind& k : p.kinds) {
      const trace& t = k.ops;
      int with_gradient = 0;
      for (std::size_t v = 0; v < t.gradients.size(); ++v) {
        if (t.gradients[v] < 0) continue;
        ++with_gradient;
        const type &x = t.values[v], &g = t.values[t.gradients[v]];
        for (axis a : axes) CHECK(are_dual(x[a], g[a]));
        CHECK(g.ndim == x.ndim);
        CHECK(g.shape[0] == x.shape[0]);
        CHECK(g.shape[1] == x.shape[1]);
      }
      CHECK(with_gradient >= 2);
      CHECK((t.values[t.input].holds == element::index || t.gradients[t.input] >= 0));
    }
}

TEST_CASE("every result that something needs has a gradient") {
  for (const plan_data& p : all())
    for (const layer_kind& k : p.kinds) {
      const trace& t = k.ops;
      for (std::size_t i = 0; i < t.forward_ops; ++i) {
        // The maximum cancels in the softmax, so it has no gradient.
        const bool shift = t.ops[i].kind->name == "row_max" || t.ops[i].kind->name == "all_reduce_max";
        CHECK((t.gradients[t.ops[i].out[0]] >= 0) == !shift);
      }
    }
}

TEST_CASE(
    "gradients of parameters: sums over the data, sharded as they are, replicated ones summed where tokens "
    "are split") {
  for (const plan_data& p : all())
    for (const layer_kind& k : p.kinds)
      for (const weight_info& w : k.ops.weights) {
        CAPTURE(w.name.text());
        REQUIRE(w.has_gradient);
        for (axis a : {axis::dp_replicate, axis::dp_shard, axis::cp}) CHECK(w.gradient[a] == P);
        const bool sharded = w.holds[axis::tp] != I;
        const placement of_replicated = p.dims.sequence_parallel ? P : I;
        CHECK(w.gradient[axis::tp] == (sharded ? w.holds[axis::tp] : of_replicated));
        for (int i = 0; i < w.holds.ndim; ++i) CHECK(w.gradient.shape[i] == w.holds.shape[i]);
      }
}

TEST_CASE("which parameters are sharded") {
  const auto sharded = [](const plan_data& p, int kind) {
    std::string s;
    for (const weight_info& w : p.kinds[kind].ops.weights)
      if (w.holds[axis::tp] != I)
        s += w.name.text() + ":" + std::string(w.holds.shape[w.holds[axis::tp].along].name) + " ";
    return s;
  };
  for (bool sp : {false, true}) {
    CHECK(sharded(gpt2(sp), 0) == "wte:vocab ");
    CHECK(sharded(gpt2(sp), 1) ==
          "wq:heads wq.bias:heads wk:heads wk.bias:heads wv:heads wv.bias:heads wo:heads w1:ffn w1.bias:ffn "
          "w2:ffn ");
    CHECK(sharded(gpt2(sp), 2) == "wte:vocab ");
    CHECK(sharded(llama(sp), 1) == "wq:heads wk:kv_heads wv:kv_heads wo:heads w1:ffn w3:ffn w2:ffn ");
    CHECK(sharded(llama(sp), 2) == "lm_head:vocab ");
  }
}

TEST_CASE("sequence parallelism leaves the gradients of (2 L + 1) h norm weights to be summed over tp") {
  const auto to_sum = [](const plan_data& p) {
    int n = 0;
    for (const layer_kind& k : p.kinds)
      for (const weight_info& w : k.ops.weights)
        n += w.gradient[axis::tp] == P ? elements(w.holds) * k.count : 0;
    return n;
  };
  CHECK(to_sum(llama(true)) == (2 * layers + 1) * hidden);
  CHECK(to_sum(llama(false)) == 0);
  // GPT-2's norms also have a shift. The biases after a reduction, and the embeddings of the 16 positions,
  // are added to shards of the tokens.
  CHECK(to_sum(gpt2(true)) == 2 * (2 * layers + 1) * hidden + 2 * layers * hidden + 16 * hidden);
  CHECK(to_sum(gpt2(false)) == 0);
}

}  // namespace gradients_test
