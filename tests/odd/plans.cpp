// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/from_csv.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "06_gated_attention.hpp"
#include "07_latent_attention.hpp"
#include "models.hpp"
#include "techniques.hpp"

namespace odd {

namespace {

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};

class list {
 public:
  template <class Model>
  void add(const char* family, const char* layout, const Model& model, const parallel_dims& dims,
           const auto& schedule, std::span<const int> stage_layers = {}) {
    const std::string name = std::string("odd_") + family + "_" + layout;
    out.push_back(
        {family, layout, make_plan(name, model, dims, schedule, recipe, clusters::cpu, stage_layers)});
  }
  /// On one rank, with one microbatch and with three.
  void add_one(const char* family, const auto& model) {
    add(family, "one", model, {}, schedules::gpipe{1});
    add(family, "three", model, {}, schedules::gpipe{3});
  }
  std::vector<split_plan> out;
};

constexpr parallel_dims tp2{.world = 2, .tp = 2}, pp2{.world = 2, .pp = 2}, pp3{.world = 3, .pp = 3},
    sp{.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true},
    eight{.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2}, six{.world = 6, .tp = 2, .pp = 3};
constexpr schedules::gpipe once{1};
constexpr schedules::one_f_one_b three{3};
constexpr schedules::zero_bubble_v v{3};

}  // namespace

std::vector<split_plan> plans() {
  namespace g = models;
  list l;

  const auto norms = make(repeat{4, norm_twice{}});
  l.add_one("norm_twice", norms);
  l.add("norm_twice", "zbv", norms, pp2, v);
  const auto matrices = make(repeat{4, matrix_thrice{}});
  l.add_one("matrix_thrice", matrices);
  l.add("matrix_thrice", "zbv", matrices, pp2, v);

  const auto own_op = make(repeat{4, silu_mlp{}});
  l.add_one("own_op", own_op);
  l.add("own_op", "tp2", own_op, tp2, once);
  l.add("own_op", "zbv", own_op, {.world = 4, .tp = 2, .pp = 2}, v);

  const auto add_split = [&](const char* family, const auto& model) {
    l.add_one(family, model);
    l.add(family, "tp2", model, tp2, once);
    l.add(family, "sp", model, sp, three);
    l.add(family, "zbv", model, {.world = 4, .tp = 2, .pp = 2}, v);
    l.add(family, "shards", model, {.world = 2, .dp_shard = 2}, three);
    l.add(family, "padded", model, {.world = 3, .dp_shard = 3, .reshard = reshard::after_step}, once);
    l.add(family, "shards_zbv", model, {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_step},
          v);
  };
  add_split("products", make(mlp{"mlp"}, repeat{4, products{}}));
  add_split("head_norms", make(repeat{4, head_norms{}}));
  add_split("softmax", make(mlp{"mlp"}, repeat{4, softmax_gate{}}));
  add_split("parts", make(repeat{4, parts{}}));
  add_split("parted_products", make(repeat{4, parted_products{}}));
  l.add("head_norms", "hsdp", make(repeat{4, head_norms{}}),
        {.world = 8, .dp_replicate = 2, .dp_shard = 2, .tp = 2, .sequence_parallel = true}, three);
  l.add("head_norms", "prefetch_0", make(repeat{4, head_norms{}}), {.world = 2, .dp_shard = 2, .prefetch = 0},
        three);
  l.add("head_norms", "shards_bfs", make(repeat{4, head_norms{}}),
        {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_stage, .prefetch = 0},
        schedules::looped_bfs{3, 2});
  add_split("gated", plans::gated_llama{.layers = 4, .hidden = 12, .heads = 2, .ffn = 10, .vocab = 32});
  add_split("latent", plans::latent_gpt{.layers = 4,
                                        .hidden = 12,
                                        .heads = 2,
                                        .plain = 3,
                                        .turned = 4,
                                        .of_q = 5,
                                        .of_kv = 4,
                                        .ffn = 10,
                                        .vocab = 32});

  // Weights sharded over cp alone; and chunks of one token on four cp ranks, with dp shards in addition.
  l.add("gated", "cp_shards",
        plans::gated_llama{.layers = 4, .hidden = 12, .heads = 2, .ffn = 10, .vocab = 32},
        {.world = 2, .cp = 2}, three);
  l.add("latent", "cp",
        plans::latent_gpt{.layers = 4,
                          .hidden = 12,
                          .heads = 2,
                          .plain = 3,
                          .turned = 4,
                          .of_q = 5,
                          .of_kv = 4,
                          .ffn = 10,
                          .vocab = 32},
        {.world = 8, .dp_shard = 2, .cp = 4, .cp_weights = cp_weights::replicate}, three);
  l.add("latent", "prefetch_2",
        plans::latent_gpt{.layers = 4,
                          .hidden = 12,
                          .heads = 2,
                          .plain = 3,
                          .turned = 4,
                          .of_q = 5,
                          .of_kv = 4,
                          .ffn = 10,
                          .vocab = 32},
        {.world = 3, .dp_shard = 3, .prefetch = 2}, once);
  l.add("matrix_thrice", "shards_stages", matrices,
        {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_stage},
        schedules::interleaved_one_f_one_b{2, 2});

  // Norms at the end of each half of a block, alone or together with those at its beginning.
  const auto add_norms = [&](const char* family, const g::block_setting& setting, g::activation by) {
    const auto model = make(repeat{4, g::block{{.hidden = hidden,
                                                .heads = heads,
                                                .kv_heads = heads,
                                                .of = setting,
                                                .theta = 10,
                                                .qkv_biases = true},
                                               ffn,
                                               by}});
    l.add_one(family, model);
    l.add(family, "sp", model, sp, three);
    l.add(family, "zbv", model, {.world = 4, .tp = 2, .pp = 2}, v);
  };
  // With a small eps, a step of finite differences changes the tiny inputs of these norms too much.
  add_norms("norms_after", {.layers = 4, .norm_eps = 0.02, .norms = g::norm_place::after},
            g::activation::swiglu);
  add_norms("norms_both",
            {.layers = 4,
             .norm_eps = 0.02,
             .norm = g::norm_kind::layer,
             .biases = true,
             .norms = g::norm_place::both},
            g::activation::gelu);

  const auto bases = make(
      repeat{2, attention_layer{"near", 10}},
      repeat{
          1,
          attention_layer{.name = "far", .theta = 10, .scaling = {.by = rope_scaling::linear, .factor = 4}}},
      repeat{1, attention_layer{
                    .name = "by_turns",
                    .theta = 10,
                    .scaling = {.by = rope_scaling::llama3, .factor = 8, .original_positions = 16}}});
  l.add_one("rope_bases", bases);
  l.add("rope_bases", "pp2", bases, pp2, three);
  l.add("rope_bases", "zbv", bases, {.world = 4, .tp = 2, .pp = 2}, v);
  const auto attentions = make(repeat{2, two_attentions{}}, repeat{2, attention_layer{"window", 10, 2}});
  l.add_one("attentions", attentions);
  l.add("attentions", "sp", attentions, sp, three);

  const auto apart = make(repeat{2, weights_apart{}});
  l.add_one("apart", apart);
  l.add("apart", "tp2", apart, tp2, once);

  const auto dims = make(repeat{2, two_ffn{}});
  l.add_one("equal_dims", dims);
  l.add("equal_dims", "tp2", dims, tp2, once);
  const auto layers = make(repeat{2, mlp{"mlp"}}, mlp{"mlp", narrow_ffn}, repeat{2, mlp{"mlp", narrow_ffn}},
                           mlp{"mlp", ffn, "g2", "u2", "d2"}, mlp{"layers.0", ffn, "g3", "u3", "d3"});
  l.add_one("equal_layers", layers);
  l.add("equal_layers", "eight", layers, eight, three);
  const auto names = make(repeat{2, mlp{"my-block", {"up-dim", 20}, "int", "a.b", "a_b"}},
                          repeat{1, mlp{"x", {"tp", 16}, "parameters", "w", "r"}},
                          mlp{"7b", {"class", 20}, "double", "loss", "y"},
                          mlp{"weights", {"linear", 20}, "place", "ids", "work"},
                          mlp{"d_weights", {"x", 20}, "real", "at", "norm1"});
  l.add_one("names", names);
  l.add("names", "eight", names, eight, three);

  const auto sharded = make(repeat{3, only_sharded{}});
  l.add_one("only_sharded", sharded);
  l.add("only_sharded", "six", sharded, six, once);
  const auto whole = make(repeat{3, only_whole{}});
  l.add_one("only_whole", whole);
  l.add("only_whole", "six", whole, six, three);
  const auto none = make(repeat{4, no_parameters{}});
  l.add_one("no_parameters", none);
  l.add("no_parameters", "pp4", none, {.world = 8, .tp = 2, .pp = 4}, three);
  l.add("no_parameters", "zbv", none, pp2, v);

  const auto handed = make(repeat{2, identity{}}, only_bias{}, repeat{2, only_bias{}}, identity{},
                           repeat{2, bare_attention{}});
  l.add_one("handed_on", handed);
  l.add("handed_on", "pp3", handed, pp3, three);
  l.add("handed_on", "zbv", handed, {.world = 4, .dp_replicate = 2, .pp = 2}, v);
  const auto summed = make(repeat{2, sums{}});
  l.add_one("sums", summed);
  l.add("sums", "tp2", summed, tp2, three);

  const auto uneven = make(repeat{3, mlp{"mlp"}});
  l.add_one("three_stages", uneven);
  l.add("three_stages", "on_two", uneven, pp2, schedules::from_csv<"0F0, 2F0, 2B0, 0B0\n1F0, 1B0">{});
  constexpr int listed[]{1, 1, 1};
  l.add("three_stages", "listed", uneven, pp2, schedules::from_csv<"0F0, 2F0, 2B0, 0B0\n1F0, 1B0">{}, listed);
  l.add("three_stages", "halves", uneven, pp2,
        schedules::from_csv<"0F0, 0F1, 0I0, 0W0, 0I1, 0W1\n1F0, 1I0, 1W0, 1F1, 1I1, 1W1">{});

  // Embedding or head alone on a stage, where that is best and where the plan asks for it.
  const auto few = make(repeat{2, mlp{"mlp"}});
  constexpr int head_alone[]{2, 0}, embedding_alone[]{0, 2};
  l.add_one("ends_alone", few);
  l.add("ends_alone", "head", few, pp2, three, head_alone);
  l.add("ends_alone", "embedding", few, pp2, three, embedding_alone);
  l.add("ends_alone", "both", few, {.world = 8, .tp = 2, .pp = 4}, three);
  l.add("ends_alone", "zbv", few, {.world = 4, .tp = 2, .pp = 2}, v);
  l.add("ends_alone", "loop", few, pp2, schedules::interleaved_one_f_one_b{4, 2});
  l.add("ends_alone", "dual", few, {.world = 4, .tp = 2, .pp = 2}, schedules::dual_pipe{4}, head_alone);
  const auto prime = make(repeat{5, mlp{"mlp"}});
  l.add_one("prime", prime);
  l.add("prime", "pp3", prime, pp3, three);
  l.add("prime", "zbv", prime, pp2, v);
  l.add("prime", "loop", prime, pp2, schedules::interleaved_one_f_one_b{4, 2});

  const auto turns = make(pattern{5, mlp{"mlp"}, norm_twice{}});
  l.add_one("turns", turns);
  l.add("turns", "zbv", turns, pp2, v);
  l.add("turns", "eight", turns, eight, three);

  const dim broad{"broad", 30}, slim{"slim", 6};
  const auto widths =
      make_bare(g::embedding{table, true}, repeat{2, residual{hidden}}, project{"out", hidden, broad},
                repeat{2, residual{broad}}, project{"in", broad, slim}, repeat{2, residual{slim}},
                project{"back", slim, hidden}, scaled_head{1});
  l.add_one("widths", widths);
  l.add("widths", "pp3", widths, pp3, three);
  l.add("widths", "loop", widths, {.world = 6, .dp_replicate = 2, .pp = 3},
        schedules::interleaved_one_f_one_b{3, 2});

  const auto scaled = make_bare(g::embedding{table, true}, repeat{2, mlp{"mlp"}}, scaled_head{2.5});
  l.add_one("scaled", scaled);
  l.add("scaled", "eight", scaled, eight, three);
  l.add_one("unscaled", make_bare(g::embedding{table, true}, repeat{2, mlp{"mlp"}}, scaled_head{1}));
  const auto alone = make_bare(g::embedding{table, true}, mlp{"mlp"}, scaled_head{1});
  l.add_one("no_repeat", alone);
  l.add("no_repeat", "sp", alone, sp, three);
  const auto shared = make(tied_between{}, repeat{2, mlp{"mlp"}});
  l.add_one("tied_thrice", shared);
  l.add("tied_thrice", "pp2", shared, {.world = 4, .tp = 2, .pp = 2}, three);
  const auto halves = make_bare(g::embedding{table, true}, first_norm{}, repeat{4, mlp{"mlp"}}, second_norm{},
                                scaled_head{1});
  l.add_one("tied_gain", halves);
  l.add("tied_gain", "pp2", halves, pp2, three);
  l.add("tied_gain", "zbv", halves, pp2, v);
  const auto crossed = make_bare(
      g::embedding{table, true}, gained{"gained", gain_of("a")}, gained{"gained", gain_of("b")},
      repeat{2, mlp{"mlp"}}, gained{"second", gain_of("b")}, gained{"first", gain_of("a")}, scaled_head{1});
  l.add_one("crossed_ties", crossed);
  l.add("crossed_ties", "pp2", crossed, pp2, three);
  const auto matrix = make_bare(g::embedding{table, true}, tied_matrix{"a", "back_a", "bias_a"},
                                repeat{2, mlp{"mlp"}}, tied_matrix{"b", "back_b", "bias_b"}, scaled_head{1});
  l.add_one("tied_matrix", matrix);
  l.add("tied_matrix", "pp2", matrix, pp2, three);

  const parameter_handle square{"square", {hidden, dim{"hidden", 12}}, {}, initial::normal, 0.3};
  const parameter_handle shift{"shift", {hidden}, {}, initial::zeros};
  const parameter_handle other_shift{"other_shift", {hidden}, {}, initial::zeros};
  const auto add_over_pp = [&](const char* family, const auto& model) {
    l.add_one(family, model);
    l.add(family, "pp2", model, pp2, three);
    l.add(family, "eight", model, eight, three);
    l.add(family, "zbv", model, {.world = 4, .tp = 2, .pp = 2}, v);
  };
  add_over_pp("two_ties", make(gained{"low", gain_of("own")}, repeat{4, mlp{"mlp"}}, tied_between{},
                               gained{"high", gain_of("own")}));
  add_over_pp("three_ties", make(three_ties{"low", gain_of("own"), shift, square}, repeat{4, mlp{"mlp"}},
                                 three_ties{"high", gain_of("own"), shift, square, true}));
  // Each layer shares a different parameter with each of the others.
  add_over_pp("web_of_ties", make(three_ties{"low", gain_of("own"), shift, square}, repeat{4, mlp{"mlp"}},
                                  three_ties{"high", gain_of("own"), other_shift, square, true},
                                  three_ties{"top", gain_of("its_own"), other_shift, square}));

  const auto adapted = make_bare(frozen_embedding{token_table(vocab, hidden, "frozen_wte")},
                                 repeat{4, low_rank{}}, scaled_head{1});
  add_over_pp("frozen", adapted);
  l.add("frozen", "sp", adapted, sp, three);
  add_over_pp("frozen_tie", make(frozen_norms{"low", "frozen_g1", "frozen_s1", gain_of("frozen_gain")},
                                 repeat{4, low_rank{}},
                                 frozen_norms{"high", "frozen_g2", "frozen_s2", gain_of("frozen_gain")}));

  const auto losses = make(repeat{4, supervised{}});
  add_over_pp("side_losses", losses);
  l.add("side_losses", "sp", losses, sp, three);
  l.add("side_losses", "dual", losses, {.world = 4, .tp = 2, .pp = 2}, schedules::dual_pipe{4});
  const auto penalties =
      make_bare(g::embedding{table, true}, penalised{}, repeat{4, mlp{"mlp"}}, penalised_head{});
  add_over_pp("penalties", penalties);
  l.add("penalties", "pp3", penalties, {.world = 6, .dp_replicate = 2, .pp = 3}, three);
  l.add("penalties", "loop", penalties, pp2, schedules::interleaved_one_f_one_b{4, 2});

  for (split_plan& p : plans_of_techniques()) l.out.push_back(std::move(p));
  return l.out;
}

}  // namespace odd
