// SPDX-License-Identifier: Apache-2.0
#include "techniques.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/models/qwen3.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <algorithm>

namespace odd {

namespace {

using namespace rankc;

constexpr models::gpt2 gpt{.layers = 3, .hidden = 8, .heads = 2, .ffn = 12, .vocab = 16};
constexpr models::llama llama{.layers = 3, .hidden = 8, .heads = 4, .kv_heads = 2, .ffn = 12, .vocab = 16};
constexpr models::qwen3 qwen{.layers = 3,
                             .hidden = 8,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 6,
                             .ffn = 12,
                             .vocab = 16,
                             .norm_eps = 1e-3};
constexpr training recipe{.seq = 4, .global_batch = 24, .precision = f64};

/// A pipeline with two or three other techniques.
const techniques of_three_axes[]{
    {"one_f_one_b", "dp_replicate", "tp"},
    {"one_f_one_b", "dp_replicate", "after_layer"},
    {"one_f_one_b", "after_layer", "sequence_parallel", "recompute"},
    {"one_f_one_b", "dp_replicate", "after_step", "tp"},
    {"interleaved_one_f_one_b", "after_layer", "tp"},
    {"interleaved_one_f_one_b", "dp_replicate", "after_step"},
    {"interleaved_one_f_one_b", "dp_replicate", "sequence_parallel", "recompute"},
    {"interleaved_one_f_one_b", "after_stage", "tp"},
    {"zero_bubble_v", "after_stage", "sequence_parallel", "recompute"},
    {"zero_bubble_v", "after_layer", "sequence_parallel"},
    {"zero_bubble_v", "dp_replicate", "sequence_parallel", "recompute"},
    {"zero_bubble_v", "after_step", "tp", "recompute"},
    {"dual_pipe_v", "after_layer", "tp"},
    {"dual_pipe_v", "dp_replicate", "sequence_parallel"},
    {"dual_pipe_v", "after_step", "sequence_parallel", "recompute"}};

/// Sharded sequences with two or three other techniques.
const techniques of_sequences[]{{"cp", "dual_pipe_v", "tp"},
                                {"cp", "one_f_one_b", "sequence_parallel", "recompute"},
                                {"cp", "zero_bubble_v", "after_layer", "recompute"}};

class list {
 public:
  void add_one(const char* family) {
    add(family, "one", {}, schedules::gpipe{1}, recipe);
    add(family, "three", {}, schedules::gpipe{3}, recipe);
  }
  /// Add a plan. Models, ways of recomputation and numbers of prefetched layers alternate.
  void add(const techniques& t) {
    const auto has = [&](const char* name) { return t.count(name) > 0; };
    parallel_dims d{.world = infer};
    d.dp_replicate = has("dp_replicate") ? 2 : 1;
    for (const auto& [name, way] : {std::pair("after_layer", reshard::after_layer),
                                    {"after_stage", reshard::after_stage},
                                    {"after_step", reshard::after_step}})
      if (has(name)) {
        d.dp_shard = 2;
        d.reshard = way;
      }
    d.tp = has("tp") || has("sequence_parallel") ? 2 : 1;
    d.sequence_parallel = has("sequence_parallel");
    d.pp = std::any_of(t.begin(), t.end(), is_order) ? 2 : 1;
    if (has("cp")) {
      d.cp = 2;
      d.cp_weights = d.dp_shard > 1 ? cp_weights::shard : cp_weights::replicate;
    }
    d.world = d.dp_replicate * d.dp_shard * d.cp * d.tp * d.pp;
    const int turn = added_++;
    d.prefetch = turn % 3;
    training r = recipe;
    if (has("recompute"))
      r.recompute = turn / 2 % 2 ? recomputation{.full = true}
                                 : recomputation{.attention = true, .activations = true, .norms = true};
    constexpr const char* families[]{"gpt", "llama", "gpt", "qwen"};
    const char* family = families[turn % 4];
    std::string layout;
    for (const std::string& name : t) layout += (layout.empty() ? "" : "_and_") + name;
    if (has("one_f_one_b")) add(family, layout, d, schedules::one_f_one_b{3}, r);
    else if (has("interleaved_one_f_one_b"))
      add(family, layout, d, schedules::interleaved_one_f_one_b{2, 2}, r);
    else if (has("zero_bubble_v")) add(family, layout, d, schedules::zero_bubble_v{3}, r);
    else if (has("dual_pipe_v")) add(family, layout, d, schedules::dual_pipe_v{4}, r);
    else add(family, layout, d, schedules::gpipe{has("microbatches") ? 3 : 1}, r);
  }

  std::vector<split_plan> out;

 private:
  void add(const std::string& family, const std::string& layout, const parallel_dims& d, const auto& schedule,
           const training& r) {
    const std::string name = "odd_" + family + "_" + layout;
    const auto add_plan = [&](const auto& model) {
      out.push_back({family, layout, make_plan(name, model, d, schedule, r, clusters::cpu)});
    };
    if (family == "gpt") add_plan(gpt);
    else if (family == "llama") add_plan(llama);
    else add_plan(qwen);
  }
  int added_ = 0;
};

}  // namespace

bool is_order(const std::string& t) {
  return std::find(std::begin(order_names), std::end(order_names), t) != std::end(order_names);
}

bool go_together(const std::string& a, const std::string& b) {
  const auto are = [&](const char* x, const char* y) { return (a == x && b == y) || (a == y && b == x); };
  const bool is_pipeline = is_order(a) || is_order(b);
  return a != b && !(is_order(a) && is_order(b)) &&
         !(is_pipeline && (a == "microbatches" || b == "microbatches")) &&
         !(a.starts_with("after_") && b.starts_with("after_")) && !are("tp", "sequence_parallel");
}

std::vector<split_plan> plans_of_techniques() {
  list l;
  l.add_one("gpt");
  l.add_one("llama");
  l.add_one("qwen");
  techniques names(std::begin(order_names), std::end(order_names));
  names.insert(std::begin(other_names), std::end(other_names));
  names.erase("cp");
  for (const std::string& a : names) l.add(techniques{a});
  for (const std::string& a : names)
    for (const std::string& b : names)
      if (a < b && go_together(a, b)) l.add(techniques{a, b});
  for (const techniques& t : of_three_axes) l.add(t);
  l.add(techniques{"cp"});
  for (const std::string& other : names) l.add(techniques{"cp", other});
  for (const techniques& t : of_sequences) l.add(t);
  return l.out;
}

}  // namespace odd
