// SPDX-License-Identifier: Apache-2.0
// The collectives of the layers, against the literature's table: Megatron-LM (Shoeybi et al. 2019) and its
// sequence parallelism (Korthikanti et al. 2022). N tokens of h features. The collectives of backward are
// derived, not written.
#include "traces.hpp"

#include <doctest/doctest.h>

namespace collectives_test {

using namespace rankc;
using namespace rankc::testing;

namespace {

struct collective {
  std::string_view op;
  int elements;  // size of the whole value
  bool operator==(const collective&) const = default;
};

std::vector<collective> over(axis a, const trace& t, bool backward) {
  std::vector<collective> out;
  for (std::size_t i = backward ? t.forward_ops : 0; i < (backward ? t.ops.size() : t.forward_ops); ++i)
    if (const op& o = t.ops[i]; o.kind->communicates() && o.over == a)
      out.push_back({o.kind->name, elements(t.values[o.in[0]])});
  return out;
}
using list = std::vector<collective>;

constexpr int Nh = tokens * hidden, N = tokens;

void check(const trace& t, const list& forward, const list& backward) {
  CHECK((over(axis::tp, t, false) == forward));
  CHECK((over(axis::tp, t, true) == backward));
}

}  // namespace

TEST_CASE("only an op that converts has an axis") {
  for (const plan_data& p : {gpt2(true), llama(false)})
    for (const layer_kind& kind : p.kinds)
      for (const op& o : kind.ops.ops) {
        CAPTURE(o.kind->name);
        CHECK((o.over == no_axis) == (o.kind->converts == conversion::none));
      }
}

TEST_CASE("without sequence parallelism") {
  for (const plan_data& p : {gpt2(false), llama(false)}) {
    // embedding: one rank holds a token's row of the table
    check(p.kinds[0].ops, {{"all_reduce", Nh}}, {});
    // block: after attention and after the feed-forward; backward has the duals before both
    check(p.kinds[1].ops, {{"all_reduce", Nh}, {"all_reduce", Nh}}, {{"all_reduce", Nh}, {"all_reduce", Nh}});
    // head: a maximum and two sums for each token
    check(p.kinds[2].ops, {{"all_reduce_max", N}, {"all_reduce", 2 * N}}, {{"all_reduce", Nh}});
  }
}

TEST_CASE("with sequence parallelism") {
  for (const plan_data& p : {gpt2(true), llama(true)}) {
    const collective gather{"all_gather", Nh}, scatter{"reduce_scatter", Nh};
    check(p.kinds[0].ops, {scatter}, {gather});
    check(p.kinds[1].ops, {gather, scatter, gather, scatter}, {gather, scatter, gather, scatter});
    check(p.kinds[2].ops, {gather, {"all_reduce_max", N}, {"all_reduce", 2 * N}}, {scatter});
  }
}

TEST_CASE("keys and values of context-parallel ranks are gathered, their gradients scattered") {
  const int kv = tokens * hidden / 2;  // two heads
  for (bool sp : {false, true}) {
    const plan_data p = llama(sp);
    CHECK((over(axis::cp, p.kinds[1].ops, false) == list{{"all_gather", kv}, {"all_gather", kv}}));
    CHECK((over(axis::cp, p.kinds[1].ops, true) == list{{"reduce_scatter", kv}, {"reduce_scatter", kv}}));
    for (int k : {0, 2}) {
      CHECK(over(axis::cp, p.kinds[k].ops, false).empty());
      CHECK(over(axis::cp, p.kinds[k].ops, true).empty());
    }
  }
}

TEST_CASE("the data-parallel ranks talk of nothing but gradients of parameters") {
  for (bool sp : {false, true})
    for (const plan_data& p : {gpt2(sp), llama(sp)})
      for (const layer_kind& k : p.kinds)
        for (axis a : {axis::dp_replicate, axis::dp_shard})
          for (bool backward : {false, true}) CHECK(over(a, k.ops, backward).empty());
}

}  // namespace collectives_test
