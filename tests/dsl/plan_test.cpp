// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/looped_bfs.hpp>

#include <type_traits>

namespace plan_test {

using namespace rankc;

namespace {

inline constexpr models::gpt2 gpt{
    .layers = 5, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64, .vocab_used = 61};
inline constexpr training recipe{.seq = 16, .global_batch = 24};
inline constexpr parallel_dims eight{.world = 8, .dp_replicate = infer, .tp = 2, .pp = 2};

inline constexpr plan legal{.model = gpt,
                            .dims = eight,
                            .schedule = schedules::one_f_one_b{.microbatches = 3},
                            .recipe = recipe,
                            .cluster = clusters::cpu};
static_assert(valid<legal>);

inline constexpr plan illegal{.model = gpt,
                              .dims = parallel_dims{.world = 9, .tp = 2, .pp = 8},
                              .schedule = schedules::gpipe{.microbatches = 0},
                              .recipe = training{.seq = 16, .global_batch = 0},
                              .cluster = cluster{1, 8, 0, 0}};
static_assert(!valid<illegal>);

// Any member may be omitted; the members' types follow from those that are given.
constexpr schedules::gpipe gpipe{.microbatches = 1};
constexpr cluster cpu = clusters::cpu;
static_assert(
    std::is_same_v<decltype(plan{.model = gpt, .schedule = gpipe, .recipe = recipe, .cluster = cpu}),
                   plan<models::gpt2, schedules::gpipe>>);
static_assert(
    std::is_same_v<decltype(plan{.model = gpt, .dims = {}, .schedule = gpipe, .recipe = {}, .cluster = cpu}),
                   plan<models::gpt2, schedules::gpipe>>);
static_assert(std::is_same_v<decltype(plan{.model = gpt, .schedule = gpipe, .stage_layers = stage_layers{5}}),
                             plan<models::gpt2, schedules::gpipe, stage_layers<1>>>);
static_assert(std::is_same_v<decltype(plan{.model = gpt, .dims = {}, .recipe = {}, .cluster = cpu}),
                             plan<models::gpt2, no_schedule>>);
static_assert(std::is_same_v<decltype(plan{.model = gpt}), plan<models::gpt2, no_schedule>>);
static_assert(std::is_same_v<decltype(plan{.dims = {}, .schedule = gpipe, .recipe = {}, .cluster = cpu}),
                             plan<no_model, schedules::gpipe>>);
static_assert(std::is_same_v<decltype(plan{.schedule = gpipe}), plan<no_model, schedules::gpipe>>);
static_assert(
    std::is_same_v<decltype(plan{.dims = eight, .cluster = clusters::cpu}), plan<no_model, no_schedule>>);
static_assert(is_plan<decltype(legal)&> && !is_plan<const models::gpt2&>);

/// A schedule in which each rank runs its backward first.
struct backwards {
  int microbatches = 1;
  static constexpr std::string_view name = "backwards";
  static constexpr int stages_per_rank = 1;
  constexpr int rank_of_stage(int stage, int) const { return stage; }
  constexpr void actions(int, int rank, auto emit) const {
    emit(action{action_kind::B, rank, 0});
    emit(action{action_kind::F, rank, 0});
  }
};

}  // namespace

TEST_CASE("a legal plan as plain data") {
  const plan_data p = make_plan("legal", legal);
  CHECK(p.name == "legal");
  CHECK(p.diagnostics.empty());
  CHECK(p.dims.dp_replicate == 2);
  CHECK(p.schedule == "one_f_one_b");
  CHECK(p.rows == 4);  // 24 sequences over 3 microbatches and 2 data-parallel ranks
  CHECK(p.vocab_used == 61);
  CHECK(p.blocks_of_stage == std::vector<int>{3, 2});
  CHECK(p.actions.ranks() == 2);
  // Plus a reduction and an optimizer step of each stage.
  CHECK(p.actions.actions.size() == 2 * 2 * 3 + 2 * 2);
  REQUIRE(p.kinds.size() == 3);
  CHECK(p.kinds[0].name == "embedding");
  CHECK(p.kinds[1].name == "block");
  CHECK(p.kinds[1].count == 5);
  CHECK(p.kinds[1].repeated);
  CHECK_FALSE(p.kinds[2].repeated);
  CHECK(p.kinds[1].ops.values[p.kinds[1].ops.input].shape[0].size == 4 * 2 * 16);
}

TEST_CASE("a compiler makes the plain data that a run makes") {
  static constexpr double send = make_plan_data(legal).expected.send;
  static constexpr std::size_t actions = make_plan_data(legal).actions.actions.size();
  static_assert(make_plan_data(legal).kinds[1].name == "block");
  static_assert(!accepts(make_plan_data(illegal).diagnostics));
  const plan_data p = make_plan("legal", legal);
  CHECK(p.expected.send == send);
  CHECK(p.actions.actions.size() == actions);
}

TEST_CASE("the name of a plan lasts longer than the text that it was given as") {
  const auto named = [](int i) {
    return make_plan("a name too long to be stored in place " + std::to_string(i), legal);
  };
  const plan_data p = named(1), q = named(2);
  CHECK(p.name == "a name too long to be stored in place 1");
  CHECK(q.name == "a name too long to be stored in place 2");
}

TEST_CASE("stages of one rank are split by cost, as those of several are") {
  constexpr models::gpt2 large_head{.layers = 8, .hidden = 64, .heads = 4, .ffn = 256, .vocab = 4096};
  for (const parallel_dims& d : {parallel_dims{}, parallel_dims{.world = 2, .pp = 2}}) {
    const plan_data p =
        make_plan("stages", large_head, d, schedules::looped_bfs{2, 2}, recipe, clusters::cpu);
    REQUIRE(accepts(p.diagnostics));
    std::vector<costed_entry> stack;
    for (const layer_run& run : p.runs) {
      const layer_kind& k = p.kinds[static_cast<std::size_t>(run.kind)];
      stack.push_back({cost_of(k.ops, p.dims), run.count, k.repeated});
    }
    CHECK(p.blocks_of_stage == split_layers(stack, p.actions, {}));
    CHECK(p.blocks_of_stage.front() > p.blocks_of_stage.back());
  }
}

TEST_CASE("the command lines say what the compiler says") {
  const plan_data p = make_plan("illegal", illegal);
  std::string text;
  for (const diagnostic& d : p.diagnostics)
    text += (text.empty() ? "RC" : ". RC") + std::to_string(d.id) + ": " + std::string(d.text.view());
  CHECK(text == detail::why<illegal>.text);
  std::vector<int> ids;
  for (const diagnostic& d : p.diagnostics) ids.push_back(d.id);
  CHECK(ids == std::vector<int>{101, 220, 301, 201, 110});
}

TEST_CASE("a plan that leaves parts out has diagnostics alone") {
  static constexpr plan nothing{};
  static constexpr plan no_schedule_and_cluster{.model = gpt, .recipe = recipe};
  const plan_data p = make_plan("nothing", nothing), q = make_plan("q", no_schedule_and_cluster);
  CHECK(p.name == "nothing");
  CHECK(p.kinds.empty());
  const auto ids = [](const plan_data& data) {
    std::vector<int> out;
    for (const diagnostic& d : data.diagnostics) out.push_back(d.id);
    return out;
  };
  CHECK(ids(p) == std::vector<int>{230, 314, 231, 120});
  CHECK(ids(q) == std::vector<int>{314, 120});
}

TEST_CASE("a schedule is checked beside wrong layers") {
  const plan_data p = make_plan("two faults", gpt, {.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true},
                                backwards{}, training{.seq = 15, .global_batch = 1}, clusters::cpu);
  REQUIRE(p.diagnostics.size() == 2);
  CHECK(p.diagnostics[0].id == 202);
  CHECK(p.diagnostics[1].id == 304);
}

TEST_CASE("stages have the layers that stage_layers lists") {
  static constexpr plan listed{.model = gpt,
                               .dims = eight,
                               .schedule = schedules::one_f_one_b{.microbatches = 3},
                               .recipe = recipe,
                               .cluster = clusters::cpu,
                               .stage_layers = stage_layers{1, 4}};
  static_assert(valid<listed>);
  CHECK(make_plan("listed", listed).blocks_of_stage == std::vector<int>{1, 4});
  static constexpr auto too_few = [] {
    auto p = listed;
    p.stage_layers = {1, 3};
    return p;
  }();
  static_assert(!valid<too_few>);
}

TEST_CASE("a warning leaves a plan valid, and is told") {
  static constexpr plan spread{.model = gpt,
                               .dims = parallel_dims{.world = 4, .tp = 4},
                               .schedule = schedules::gpipe{1},
                               .recipe = recipe,
                               .cluster = cluster{2, 2, 0, 0}};
  static_assert(valid<spread>);
  const plan_data p = make_plan("spread", spread);
  REQUIRE(p.diagnostics.size() == 1);
  CHECK(p.diagnostics[0].id == 112);
  CHECK(p.diagnostics[0].warning);
  CHECK(p.kinds.size() == 3);
}

}  // namespace plan_test
