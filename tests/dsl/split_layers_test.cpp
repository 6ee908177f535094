// SPDX-License-Identifier: Apache-2.0
// Layers are split by cost: known models, and all possible splits of small ones.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/stages/split_layers.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <algorithm>
#include <functional>
#include <random>

namespace split_layers_test {

using namespace rankc;

namespace {

using numbers = std::vector<int>;

constexpr models::llama llama{
    .layers = 8, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
constexpr training long_sequences{.seq = 8192, .global_batch = 8, .precision = bf16};
constexpr models::gpt2 gpt{.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50304};
constexpr training short_sequences{.seq = 1024, .global_batch = 64, .precision = bf16};

numbers split(const auto& model, int pp, const auto& schedule, const training& recipe, int tp = 1) {
  const plan_data p =
      make_plan("split", model, {.world = tp * pp, .tp = tp, .pp = pp}, schedule, recipe, clusters::h200<1>);
  for (const diagnostic& d : p.diagnostics) FAIL(std::string(d.text.view()));
  return p.blocks_of_stage;
}

/// A table with only the ranks of its stages, for one direction or two.
action_table placed(const numbers& ranks, const numbers& reversed = {}) {
  action_table t;
  t.rank_of_stage = ranks;
  t.reversed_rank_of_stage = reversed;
  return t;
}

/// The cost of each stage's layers under a split.
std::vector<long long> costs_of(const std::vector<costed_entry>& stack, const numbers& blocks) {
  std::vector<long long> of_stage(blocks.size(), 0);
  int before = 0, all = 0;
  for (int n : blocks) all += n;
  std::size_t stage = 0;
  int left = blocks[0];
  for (const costed_entry& e : stack)
    for (int i = 0; i < e.count; ++i) {
      if (e.repeated) {
        while (left == 0) left = blocks[++stage];
        --left;
        ++before;
      }
      std::size_t at = stage;
      if (!e.repeated && before == 0) at = 0;
      else if (!e.repeated && before == all) at = blocks.size() - 1;
      of_stage[at] += e.each.in(false);
    }
  return of_stage;
}

/// Visit every split of the layers over the stages.
void for_all_splits(int layers, int stages, bool first_may, bool last_may,
                    const std::function<void(const numbers&)>& visit) {
  numbers blocks;
  const std::function<void(int)> go_on = [&](int left) {
    const bool is_last = static_cast<int>(blocks.size()) + 1 == stages;
    const int least = (blocks.empty() && first_may) || (is_last && last_may) ? 0 : 1;
    for (int n = is_last ? left : least; n <= left; ++n) {
      if (n < least) return;
      blocks.push_back(n);
      if (is_last) visit(blocks);
      else go_on(left - n);
      blocks.pop_back();
    }
  };
  go_on(layers);
}

std::vector<long long> sums_of_ranks(const std::vector<long long>& of_stage, const action_table& t) {
  std::vector<long long> sums(of_stage.size(), 0);
  for (std::size_t s = 0; s < of_stage.size(); ++s) {
    sums[t.rank_of_stage[s]] += of_stage[s];
    if (t.bidirectional()) sums[t.reversed_rank_of_stage[s]] += of_stage[s];
  }
  return sums;
}
long long largest(const std::vector<long long>& of) { return *std::max_element(of.begin(), of.end()); }

}  // namespace

TEST_CASE("embedding and head count") {
  CHECK(split(llama, 2, schedules::one_f_one_b{8}, long_sequences) == numbers{5, 3});
  CHECK(split(llama, 2, schedules::zero_bubble_v{8}, long_sequences) == numbers{2, 3, 2, 1});
  CHECK(split(llama, 2, schedules::interleaved_one_f_one_b{8, 2}, long_sequences) == numbers{2, 2, 3, 1});
  CHECK(split(llama, 2, schedules::dual_pipe{8}, long_sequences) == numbers{5, 3});
  CHECK(split(llama, 4, schedules::one_f_one_b{8}, long_sequences) == numbers{2, 3, 2, 1});
  CHECK(split(gpt, 2, schedules::one_f_one_b{8}, short_sequences) == numbers{8, 4});
  CHECK(split(gpt, 4, schedules::one_f_one_b{8}, short_sequences) == numbers{4, 4, 4, 0});
}

TEST_CASE("a head that is sharded over tp costs its part, one that is not costs all") {
  CHECK(split(llama, 2, schedules::one_f_one_b{8}, long_sequences, 4) == numbers{5, 3});
  struct whole_head : models::head {
    constexpr value forward(trace& t, value x, const layer_context& c) const {
      return cross_entropy(linear(x, t.parameter(table)), c.input("targets"), axis::tp, c.loss_scale);
    }
  };
  struct replicated : models::llama {
    constexpr auto stack() const {
      const dim words{"vocab", vocab}, features{"hidden", hidden};
      const parameter_handle table{"lm_head", {words, features}, {}, initial::normal, 0.02};
      const auto base = models::llama::stack();
      return sequential(base[boost::hana::size_c<0>], base[boost::hana::size_c<1>], whole_head{{table}});
    }
  };
  CHECK(split(replicated{llama}, 2, schedules::one_f_one_b{8}, long_sequences, 4) == numbers{7, 1});
}

TEST_CASE("what stands alone is on the first and on the last stage, beside repeated layers or without") {
  const auto kinds = [](std::initializer_list<int> listed) {
    models::gpt2 two = gpt;
    two.layers = 2;
    const int stages = static_cast<int>(listed.size());
    return kinds_of_stages(make_plan("kinds", two, {.world = stages, .pp = stages}, schedules::gpipe{1},
                                     short_sequences, clusters::cpu,
                                     std::span(listed.begin(), listed.size())));
  };
  CHECK(kinds({1, 1}) == std::vector<numbers>{{0, 1}, {1, 2}});
  CHECK(kinds({2, 0}) == std::vector<numbers>{{0, 1, 1}, {2}});
  CHECK(kinds({0, 2}) == std::vector<numbers>{{0}, {1, 1, 2}});
  CHECK(kinds({0, 2, 0}) == std::vector<numbers>{{0}, {1, 1}, {2}});
  CHECK(kinds({0, 1, 1, 0}) == std::vector<numbers>{{0}, {1}, {1}, {2}});
}

TEST_CASE("an evaluation's layers are split by their forwards") {
  const plan_data trained = make_plan("trained", gpt, {.world = 2, .pp = 2}, schedules::looped_bfs{8, 1},
                                      short_sequences, clusters::cpu),
                  evaluated = make_plan("evaluated", gpt, {.world = 2, .pp = 2},
                                        schedules::looped_bfs{8, 1, true}, short_sequences, clusters::cpu);
  const auto forward = [&](std::size_t kind) {
    return static_cast<double>(cost_of(trained.kinds[kind].ops, trained.dims).forward);
  };
  REQUIRE(evaluated.diagnostics.empty());
  CHECK(evaluated.expected.stage[1] / evaluated.expected.stage[0] ==
        doctest::Approx((forward(1) * evaluated.blocks_of_stage[1] + forward(2)) /
                        (forward(1) * evaluated.blocks_of_stage[0] + forward(0))));
}

TEST_CASE("no split of equal layers has a smaller largest rank, nor then a smaller largest stage") {
  std::mt19937 random(1);
  const auto draw = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  const std::vector<action_table> placements{placed({0, 1, 2}),
                                             placed({0, 1, 0, 1}),
                                             placed({0, 1, 1, 0}),
                                             placed({0, 1, 2, 2, 1, 0}),
                                             placed({0, 1, 2, 0, 1, 2}),
                                             placed({0, 1, 0}),
                                             placed({0, 1, 2, 3}, {3, 2, 1, 0})};
  int with_empty_stage = 0;
  for (int drawn = 0; drawn < 400; ++drawn) {
    const action_table& t = placements[static_cast<std::size_t>(draw(static_cast<int>(placements.size())))];
    std::vector<costed_entry> stack;
    const bool first = draw(4) > 0, last = draw(4) > 0;
    if (first) stack.push_back({{draw(30), draw(30)}});
    const int layers = t.stages() - first - last + draw(7);
    stack.push_back({{10 + draw(10), 0}, std::max(layers, 1), true});
    if (last) stack.push_back({{draw(60), draw(30)}});
    if (std::max(layers, 1) + first + last < t.stages()) continue;
    const numbers blocks = split_layers(stack, t, {});
    const std::vector<long long> of_stage = costs_of(stack, blocks);
    const auto rated = [&](const std::vector<long long>& costs) {
      return std::pair(largest(sums_of_ranks(costs, t)), largest(costs));
    };
    auto best = rated(of_stage);
    int ways = 0;
    for_all_splits(std::max(layers, 1), t.stages(), first, last, [&](const numbers& other) {
      ++ways;
      best = std::min(best, rated(costs_of(stack, other)));
    });
    CHECK(ways > 0);
    CHECK(rated(of_stage) == best);
    with_empty_stage += blocks.front() == 0 || blocks.back() == 0;
  }
  CHECK(with_empty_stage > 20);
}

TEST_CASE("no split of unequal layers has a smaller largest stage") {
  std::mt19937 random(2);
  const auto draw = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  int compared = 0;
  for (int drawn = 0; drawn < 400; ++drawn) {
    const int stages = 2 + draw(4);
    std::vector<costed_entry> stack;
    int layers = 0;
    const bool first = draw(3) > 0;
    if (first) stack.push_back({{draw(30), 0}});
    for (int entries = 2 + draw(3); entries > 0; --entries) {
      stack.push_back({{1 + draw(20), draw(20)}, 1 + draw(3), true});
      layers += stack.back().count;
      if (entries > 1 && draw(3) == 0) stack.push_back({{draw(20), 0}});
    }
    const bool last = draw(3) > 0;
    if (last) stack.push_back({{draw(60), 0}});
    if (layers + first + last < stages) continue;
    numbers ranks;
    for (int s = 0; s < stages; ++s) ranks.push_back(s);
    const numbers blocks = split_layers(stack, placed(ranks), {});
    long long least = largest(costs_of(stack, blocks));
    const long long made = least;
    for_all_splits(layers, stages, first, last,
                   [&](const numbers& other) { least = std::min(least, largest(costs_of(stack, other))); });
    CHECK(made == least);
    ++compared;
  }
  CHECK(compared > 300);
}

TEST_CASE("of splits that are equal in this it is the most even, whose first stages have more") {
  const auto equal = [](int layers, int stages) {
    numbers ranks;
    for (int s = 0; s < stages; ++s) ranks.push_back(s);
    const std::vector<costed_entry> stack{{{5, 10}, layers, true}};
    return split_layers(stack, placed(ranks), {});
  };
  CHECK(equal(7, 4) == numbers{2, 2, 2, 1});
  CHECK(equal(13, 5) == numbers{3, 3, 3, 2, 2});
  CHECK(equal(128, 64) == numbers(64, 2));
  const std::vector<costed_entry> one_large{{{100, 0}, 1, true}, {{10, 0}, 6, true}};
  CHECK(split_layers(one_large, placed({0, 1, 2}), {}) == numbers{1, 3, 3});
  const std::vector<costed_entry> free{{{0, 0}}, {{0, 0}, 4, true}, {{0, 0}}};
  CHECK(split_layers(free, placed({0, 1}), {}) == numbers{2, 2});
}

}  // namespace split_layers_test
