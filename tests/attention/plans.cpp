// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "models.hpp"

namespace attention_family {

namespace {

constexpr training recipe{.seq = 16, .global_batch = 12, .precision = f64},
    packed{.seq = 16, .global_batch = 12, .precision = f64, .end_of_document = 3};
constexpr training of_oracle{.seq = 32, .global_batch = 4, .precision = f64};
constexpr training of_small_oracle{.seq = 16, .global_batch = 4, .precision = f64};
constexpr schedules::gpipe once{1};
constexpr schedules::one_f_one_b three{3};
constexpr auto ring = cp_attention::ring;

// A rank of cp=4 has chunks of two tokens. A ring with a window of three tokens has no step for the opposite
// rank. With a window of one token, a rank attends to its keys alone.
constexpr alternating local{.first = {.window = 5}, .second = {}},
    narrow{.first = {.window = 3, .scale = 0.8}, .second = {.window = 1}},
    capped{.first = {.window = 6, .softcap = 0.5}, .second = {.softcap = 0.3, .scale = 1.25}},
    sunk{.first = {.window = 5, .sinks = true}, .second = {.sinks = true}},
    values{.first = {.window = 5, .value_dim = 2}, .second = {.value_dim = 6}},
    sunk_values{.first = {.window = 6, .softcap = 0.5, .sinks = true, .value_dim = 6},
                .second = {.scale = 1.25, .sinks = true, .value_dim = 2}};
constexpr small_oracle oracle_of_sinks{.first = {.window = 5, .sinks = true}, .second = {.sinks = true}},
    oracle_of_values{.first = {.window = 5, .value_dim = 2}, .second = {.value_dim = 6}};

}  // namespace

std::vector<split_plan> plans() {
  plan_list l("attention", recipe);
  l.add("local", "one", local, {}, once);
  l.add("local", "three", local, {}, three);
  l.add("local", "tp", local, {.world = 2, .tp = 2}, once);
  l.add("local", "sp", local, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
  l.add("local", "gathered", local, {.world = 2, .cp = 2}, once);
  l.add("local", "gathered_by_four", local, {.world = 4, .cp = 4}, three);
  l.add("local", "ring", local, {.world = 2, .cp = 2, .cp_attention = ring}, three);
  l.add("local", "ulysses", local, {.world = 2, .cp = 2, .ulysses = 2}, once);
  l.add("local", "pairs", local, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  l.add("local", "shards", local, {.world = 4, .dp_shard = 4}, once);
  l.add("local", "pp", local, {.world = 4, .dp_shard = 2, .pp = 2}, three);

  l.add("narrow", "one", narrow, {}, once);
  l.add("narrow", "gathered", narrow, {.world = 2, .cp = 2}, three);
  l.add("narrow", "ring_of_four", narrow, {.world = 4, .cp = 4, .cp_attention = ring}, once);
  l.add("narrow", "again", narrow, {.world = 2, .cp = 2, .cp_attention = ring}, three,
        again(recipe, {.attention = true}));
  l.add("narrow", "zbv", narrow, {.world = 2, .pp = 2}, schedules::zero_bubble_v{3},
        again(recipe, {.full = true}));

  l.add("capped", "one", capped, {}, once);
  l.add("capped", "gathered_tp", capped, {.world = 4, .cp = 2, .tp = 2}, once);
  l.add("capped", "ring_sp", capped,
        {.world = 4, .cp = 2, .tp = 2, .sequence_parallel = true, .cp_attention = ring}, three);
  l.add("capped", "dual_pipe_v", capped, {.world = 2, .pp = 2}, schedules::dual_pipe_v{6});

  l.add("packed", "one", capped, {}, once, packed);
  l.add("packed", "gathered", capped, {.world = 2, .cp = 2}, three, packed);
  l.add("packed", "ring", capped, {.world = 2, .cp = 2, .cp_attention = ring}, once, packed);
  l.add("packed", "ulysses", capped, {.world = 2, .cp = 2, .ulysses = 2}, three, packed);

  l.add("sunk", "one", sunk, {}, once);
  l.add("sunk", "tp", sunk, {.world = 2, .tp = 2}, three);
  l.add("sunk", "sp", sunk, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
  l.add("sunk", "gathered", sunk, {.world = 4, .cp = 2, .tp = 2}, once);
  l.add("sunk", "ring", sunk, {.world = 4, .cp = 4, .cp_attention = ring}, once);
  l.add("sunk", "ulysses", sunk, {.world = 2, .cp = 2, .ulysses = 2}, three);
  l.add("sunk", "ulysses_tp", sunk, {.world = 4, .cp = 2, .tp = 2, .ulysses = 2}, once);
  l.add("sunk", "pairs", sunk, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  l.add("sunk", "shards", sunk, {.world = 4, .dp_shard = 4}, once);
  l.add("sunk", "pp", sunk, {.world = 4, .dp_shard = 2, .pp = 2}, three);
  l.add("sunk", "zbv", sunk, {.world = 2, .pp = 2}, schedules::zero_bubble_v{3},
        again(recipe, {.attention = true}));
  l.add("sunk", "dual_pipe_v", sunk, {.world = 2, .pp = 2}, schedules::dual_pipe_v{6});

  l.add("sunk_packed", "one", sunk, {}, once, packed);
  l.add("sunk_packed", "gathered", sunk, {.world = 2, .cp = 2}, three, packed);
  l.add("sunk_packed", "ring", sunk, {.world = 2, .cp = 2, .cp_attention = ring}, once, packed);
  l.add("sunk_packed", "ulysses", sunk, {.world = 2, .cp = 2, .ulysses = 2}, three, packed);

  l.add("sunk_oracle", "one", oracle_of_sinks, {}, once, of_small_oracle);
  l.add("sunk_oracle", "gathered_tp", oracle_of_sinks, {.world = 4, .cp = 2, .tp = 2}, once, of_small_oracle);
  l.add("sunk_oracle", "ring", oracle_of_sinks, {.world = 2, .cp = 2, .cp_attention = ring},
        schedules::gpipe{2}, of_small_oracle);
  l.add("sunk_oracle", "ulysses", oracle_of_sinks, {.world = 2, .cp = 2, .ulysses = 2}, once,
        of_small_oracle);

  l.add("values", "one", values, {}, once);
  l.add("values", "sp", values, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
  l.add("values", "gathered", values, {.world = 2, .cp = 2}, once);
  l.add("values", "ring", values, {.world = 4, .cp = 4, .cp_attention = ring}, three);
  l.add("values", "ulysses", values, {.world = 2, .cp = 2, .ulysses = 2}, once);
  l.add("values", "pairs", values, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  l.add("values", "pp", values, {.world = 4, .dp_shard = 2, .pp = 2}, three);

  l.add("values_packed", "one", sunk_values, {}, once, packed);
  l.add("values_packed", "gathered_tp", sunk_values, {.world = 4, .cp = 2, .tp = 2}, three, packed);
  l.add("values_packed", "ring", sunk_values, {.world = 2, .cp = 2, .cp_attention = ring}, once, packed);
  l.add("values_packed", "ulysses", sunk_values, {.world = 2, .cp = 2, .ulysses = 2}, three, packed);

  l.add("values_oracle", "one", oracle_of_values, {}, once, of_small_oracle);
  l.add("values_oracle", "gathered_tp", oracle_of_values, {.world = 4, .cp = 2, .tp = 2}, once,
        of_small_oracle);
  l.add("values_oracle", "ring", oracle_of_values, {.world = 2, .cp = 2, .cp_attention = ring},
        schedules::gpipe{2}, of_small_oracle);
  l.add("values_oracle", "ulysses", oracle_of_values, {.world = 2, .cp = 2, .ulysses = 2}, once,
        of_small_oracle);

  l.add("windows_oracle", "one", windows_oracle{}, {}, once, of_small_oracle);
  l.add("windows_oracle", "ring_of_four", windows_oracle{}, {.world = 4, .cp = 4, .cp_attention = ring}, once,
        of_small_oracle);
  l.add("windows_oracle", "ring_of_eight", windows_oracle{}, {.world = 8, .cp = 8, .cp_attention = ring},
        once, of_small_oracle);
  l.add("windows_oracle", "again", windows_oracle{}, {.world = 4, .cp = 4, .cp_attention = ring},
        schedules::gpipe{2}, again(of_small_oracle, {.attention = true}));

  l.add("mistral", "one", mistral{}, {}, once, of_oracle);
  l.add("mistral", "gathered_tp", mistral{}, {.world = 4, .cp = 2, .tp = 2}, once, of_oracle);
  l.add("mistral", "ring", mistral{}, {.world = 4, .cp = 4, .cp_attention = ring}, once, of_oracle);
  l.add("mistral", "shards", mistral{}, {.world = 2, .dp_shard = 2}, schedules::gpipe{2}, of_oracle);
  return l.out;
}

plan_data plan_of_window(int window) {
  const alternating model{.first = {.window = window}, .second = {.window = window}, .head_dim = 64};
  return make_plan("time", model, parallel_dims{}, once, training{.seq = 32768, .global_batch = 1},
                   clusters::h200<1>);
}

}  // namespace attention_family
