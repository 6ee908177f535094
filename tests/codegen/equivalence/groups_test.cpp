// SPDX-License-Identifier: Apache-2.0
// Programs whose ranks exchange heads within groups, which pass keys and values on. An exchange or a pass
// among other ranks, of other sequences, or that is missing, is refused.
#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <tuple>

#include "refused.hpp"
#include "ring_plans.hpp"

namespace groups_test {

using namespace equivalence_tests;

namespace {

using rankc::cp_weights;

constexpr rankc::models::llama llama{
    .layers = 1, .hidden = 16, .heads = 8, .kv_heads = 4, .ffn = 24, .vocab = 32, .theta = 10000};
constexpr rankc::models::gpt2 gpt{.layers = 1, .hidden = 16, .heads = 4, .ffn = 24, .vocab = 32};

/// of_pairs: two Ulysses pairs with tp and microbatches of two sequences. of_fours: two groups of four.
/// of_three: three pairs whose backward recomputes attention.
const subject& of_pairs() {
  static const subject s(
      ring_plan(gpt, {.world = 8, .cp = 4, .tp = 2, .ulysses = 2, .sequence_parallel = true}, 2, 16),
      target::host);
  return s;
}
const subject& of_fours() {
  static const subject s(
      ring_plan(llama, {.world = 8, .cp = 8, .ulysses = 4, .cp_weights = cp_weights::replicate}, 1, 32),
      target::cuda, dtype::bf16);
  return s;
}
const subject& of_three() {
  static const subject s(ring_plan(llama, {.world = 6, .cp = 6, .ulysses = 2}, 1, 24, {.attention = true}),
                         target::host);
  return s;
}

bool exchanges(const op& o) { return o.kind == op_kind::collective && o.does == collective_kind::all_to_all; }
bool hands_on(const op& o) { return o.kind == op_kind::collective && is_shift(o.does); }

/// The n-th op of a kind on each rank.
std::vector<op*> ops_of(subject& s, bool (*is)(const op&), std::size_t n) {
  std::vector<op*> all;
  for (rank_program& r : s.p.ranks) {
    std::size_t left = n;
    for (op& o : r.ops)
      if (is(o) && left-- == 0) all.push_back(&o);
  }
  return all;
}
std::size_t count(const subject& s, bool (*is)(const op&)) {
  std::size_t n = 0;
  for (const op& o : s.p.ranks[0].ops) n += is(o);
  return n;
}
/// The communicator of a rank whose name has this prefix.
int communicator_of(const subject& s, std::size_t rank, const std::string& begin) {
  for (std::size_t c = 0; c < s.p.communicators.size(); ++c)
    for (const int member : s.p.communicators[c].ranks)
      if (member == static_cast<int>(rank) && s.p.communicators[c].name.starts_with(begin))
        return static_cast<int>(c);
  throw std::logic_error("rank " + std::to_string(rank) + " has no communicator " + begin);
}

}  // namespace

TEST_CASE(
    "ranks that exchange heads in groups of a ring compute the model, on worlds of which some stand for all "
    "too") {
  CHECK(of_pairs().reason() == "");
  CHECK(of_fours().reason() == "");
  CHECK(of_three().reason() == "");
  constexpr rankc::models::llama wide{
      .layers = 2, .hidden = 64, .heads = 8, .kv_heads = 4, .ffn = 128, .vocab = 64, .theta = 10000};
  for (const cp_weights by : {cp_weights::shard, cp_weights::replicate}) {
    const subject s(ring_plan(wide,
                              {.world = 192,
                               .dp_replicate = 6,
                               .dp_shard = 4,
                               .cp = 4,
                               .tp = 2,
                               .ulysses = 2,
                               .sequence_parallel = true,
                               .cp_weights = by},
                              1, 16),
                    target::cuda, dtype::bf16);
    CHECK(s.reason() == "");
    CHECK(static_cast<int>(s.p.ranks.size()) < s.p.world);
  }
}

TEST_CASE("groups are neighbours on cp, and rings are of ranks of the same place in these") {
  for (const auto& [sound, groups, rings] :
       {std::tuple(&of_pairs(), std::vector<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}},
                   std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}),
        std::tuple(&of_fours(), std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}},
                   std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}),
        std::tuple(&of_three(), std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}},
                   std::vector<std::vector<int>>{{0, 2, 4}, {1, 3, 5}})}) {
    std::set<std::vector<int>> exchanging, handing_on;
    for (const rank_program& r : sound->p.ranks)
      for (const op& o : r.ops) {
        if (o.communicator < 0) continue;
        const std::vector<int>& ranks =
            sound->p.communicators[static_cast<std::size_t>(o.communicator)].ranks;
        if (exchanges(o)) exchanging.insert(ranks);
        if (hands_on(o)) handing_on.insert(ranks);
      }
    CHECK(exchanging == std::set(groups.begin(), groups.end()));
    CHECK(handing_on == std::set(rings.begin(), rings.end()));
  }
}

TEST_CASE("each exchange and each shift is needed, and is among its own ranks") {
  for (const subject* sound : {&of_pairs(), &of_fours(), &of_three()})
    for (const auto& [is, instead] : {std::pair(&exchanges, "cp at"), std::pair(&hands_on, "ulysses at")})
      for (std::size_t n = 0; n < count(*sound, is); ++n) {
        CAPTURE(n);
        CAPTURE(instead);
        // Each rank's local tensor stays in place, under the name of the exchange's result.
        CHECK(fault(*sound, [&](subject& s) {
                const std::vector<op*> all = ops_of(s, is, n);
                for (std::size_t r = 0; r < all.size(); ++r) s.leave_out(static_cast<int>(r), *all[r]);
              }) != "");
        // Heads are exchanged around the ring, or keys and values shifted within a group.
        CHECK(fault(*sound, [&](subject& s) {
                const std::vector<op*> all = ops_of(s, is, n);
                for (std::size_t r = 0; r < all.size(); ++r)
                  all[r]->communicator = communicator_of(s, r, instead);
              }) != "");
      }
}

TEST_CASE("an exchange of other sequences, and a step that is told of another group, are refused") {
  for (const subject* sound : {&of_pairs(), &of_fours(), &of_three()}) {
    for (std::size_t n = 0; n < count(*sound, exchanges); ++n)
      for (const int factor : {2, 3}) {
        CAPTURE(n);
        CHECK(fault(*sound, [&](subject& s) {
                for (op* o : ops_of(s, exchanges, n)) o->seq *= factor;
              }) != "");
      }
    for (const char* row : {"ring_attention", "ring_attention_grad"}) {
      CAPTURE(row);
      // The next rank belongs to the same group, but its queries are taken for the next group's.
      CHECK(fault(*sound, [&](subject& s) {
              view& q = subject::port(*s.find(sound == &of_pairs() ? 2 : 1, "0", row).at(0), "q");
              q.first += q.shape[0];
            }) != "");
    }
  }
}

TEST_CASE("groups whose ranks are told in another order are refused") {
  for (const subject* sound : {&of_pairs(), &of_fours(), &of_three()})
    CHECK(fault(*sound, [](subject& s) {
            for (auto& c : s.p.communicators)
              if (c.name.starts_with("ulysses ")) std::swap(c.ranks[0], c.ranks[1]);
          }) != "");
}

}  // namespace groups_test
