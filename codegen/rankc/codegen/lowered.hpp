// SPDX-License-Identifier: Apache-2.0
// A plan after lowering: the bodies of its layers, and for every pipeline coordinate its stages, parameters,
// arena and the items of a step in issue order. Ranks that differ only in dp and tp share all of this.
#pragma once
#include <rankc/codegen/body.hpp>
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>
#include <rankc/memory/optimizer_state.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

namespace rankc::codegen {

using rankc::lowering::optimizer_state;

/// A layer's use of a parameter that another layer shares.
struct shared_use {
  std::size_t element = 0;
  std::size_t gathered = 0, summed = 0;  // of what this layer reads, and sums into
  bool adds = false;                     // a later layer of this rank has written the gradient already
};

/// One use of a layer on a stage.
struct layer_use {
  int kind = 0;
  std::string name;              // "layers.2" or the kind's name, and of no other layer
  std::string id;                // in the generated text
  std::size_t base[n_groups]{};  // elements, in each region
  std::size_t gathered_base[n_groups]{},
      summed_base[n_groups]{};  // in what layers read, and sum into; the same, where ranks keep whole tensors
  std::vector<shared_use> shared = {};  // as group_layout has them
  bool adds_to_loss = false;            // another layer of this rank has begun the sum of the losses

  /// Where a parameter begins in each region. Units: elements.
  std::size_t element(const group_layout::place& p) const {
    return p.in == group::shared ? shared[p.offset].element : base[static_cast<int>(p.in)] + p.offset;
  }
  /// Where all of it begins in the region of what is gathered, and of whole gradients. Units: elements.
  std::size_t gathered(const group_layout::place& p) const {
    return p.in == group::shared ? shared[p.offset].gathered
                                 : gathered_base[static_cast<int>(p.in)] + p.offset;
  }
  std::size_t summed(const group_layout::place& p) const {
    return p.in == group::shared ? shared[p.offset].summed : summed_base[static_cast<int>(p.in)] + p.offset;
  }
  /// Whether the gradient of a parameter has been written by another layer before this one's first sum.
  bool adds_to(const group_layout::place& p) const { return p.in == group::shared && shared[p.offset].adds; }
};

/// What a layer's function takes, in this order.
/// What a flag of its own is of, beside parameters that layers share: all others, and those of the rank's own
/// experts.
inline constexpr int flag_of_others = -1, flag_of_experts = -2;

enum class formal {
  during,
  beside,
  weights,
  gradients,
  saved,
  halfway,
  work,
  rope,
  input,
  x,
  y,
  loss,
  routers,
  dy,
  dx,
  accumulate,
  accumulate_apart
};

/// What a stage's microbatch has in memory: of a layer, what it saves for backward, its result and the
/// gradient of that (none of these two of the stage's last layer); between stages, the activation and its
/// gradient.
enum class kept { saved, output, output_gradient, activation, gradient, halfway };
inline constexpr const char* kept_names[]{
    "saved",          "outputs of layers",        "gradients of outputs",
    "between stages", "gradients between stages", "between halves of backward"};

/// Where a layer's function is given something from.
enum class source {
  parameters,  // the layer's, in the region of weights or of gradients
  slot,        // the microbatch's: `what` of layer `index` of the stage
  boundary,    // the microbatch's: `what` before the stage, or after it (`index` 1)
  chain,       // one of two buffers for gradients between the layers of a stage
  // of the pipeline rank, the step's microbatch or the lane: the formal tells which. `index` is the rotary
  // table, or the input of the step
  rank,
  adds,       // false in the stage's first microbatch, or in each, where sums are dealt out
  adds_kept,  // false in the stage's first microbatch
  always,     // true
};
struct actual {
  formal as;
  source from;
  int index = 0;  // of a flag: what it is of
  kept what = kept::saved;
};

/// The call of a layer's function in one phase of its stage.
struct layer_call {
  int layer = 0;  // of the stage
  std::vector<actual> given;
  /// What is given for a formal.
  /// Errors: std::logic_error where nothing is.
  const actual& operator[](formal) const;
  /// Whether the sum into a shared parameter's gradient, into those of the rank's own experts, or into the
  /// others starts afresh.
  const actual& flag(int flag) const;
};

/// What a pipeline rank needs to hold of a stage.
struct stage_plan {
  struct member {
    kept what;
    int layer;
  };
  int stage = 0;
  std::string name;   // "stage_2"; its second holder's, where every stage is on two ranks: "stage_2_reversed"
  bool last = false;  // of the model
  bool copy = false;  // this is its second holder
  std::vector<layer_use> layers;
  std::vector<layer_call> calls[n_phases] = {};  // of each layer
  std::vector<member> members = {};  // of a slot: what one microbatch keeps from forward to backward
  std::vector<std::vector<std::size_t>> slots = {};  // where members lie in the arena
};

/// A parameter tensor of a pipeline rank.
struct placed_parameter {
  std::string name;
  layer_parameter as;
  std::size_t element = 0;
  bool copy = false;  // another rank holds the one that counts
};

/// Gradients that are reduced together: contiguous elements.
struct bucket {
  std::string name;
  std::string id;  // in the generated text
  std::size_t first = 0, count = 0;
  bool over_dp = false, over_region = false;
  bool tied = false;                 // with the rank that holds the same parameters
  int stage = -1, after_layer = -1;  // complete after this layer's last backward (-1: at the end of the step)
};

/// Parameters whose shards are gathered together, and whose gradients are dealt out together: those of a
/// layer, or one that layers share.
struct gathering {
  struct part {
    int parameter;
    std::size_t whole;  // first element, in the region of what is gathered, or of whole gradients
    std::size_t arriving =
        0;  // of the rank's shard of a sum, in the region where those arrive that are added to others
    bool operator==(const part&) const = default;
  };
  axis over = axis::fsdp;  // of the ranks that share them out
  std::string name;
  std::string id;              // in the generated text
  int stage = -1, layer = -1;  // of the rank; -1: of no layer alone
  std::size_t first = 0,
              last =
                  0;  // elements of the place that has what is gathered, which others may have at other times
  std::vector<part> parts = {}, trained = {};  // weights; gradients
};

/// Contiguous elements that the optimizer or the norm treats alike.
using runtime::range;

/// A rotary table of a pipeline rank, for all its layers that use such a one.
struct placed_rope {
  rope_use as;
  std::size_t where = 0, bytes = 0;
};

/// Equal places for values that are not needed at the same time.
struct pool {
  kept what;
  std::size_t unit;  // bytes
  int count = 0;
  std::size_t where = 0;
};

/// A value of a microbatch: its name, and how long it keeps its place.
struct placed_value {
  kept what;
  int stage = 0, microbatch = 0, layer = -1;
  std::string name = {};               // of what goes between stages: "x_1F0", "d_x_1B0"
  std::string lives = {};              // "1F0 .. 1B0"
  std::size_t bytes = 0, carried = 0;  // the size, and the part of carried values behind the rows
  int pool = 0;                        // of the rank's arena
  int first = 0, last = 0;             // actions of the table
  int place = 0;                       // in the pool
  std::size_t where = 0;               // in the arena
};

/// An input of the step on a pipeline rank: whether its layers read it, and where it begins in the arena.
struct placed_input {
  named_input is;
  bool read = false;
  std::size_t where = 0;
};

struct arena_plan {
  std::size_t weights = 0, gradients = 0, first_moment = 0, second_moment = 0, working_copy = 0, gathered = 0,
              full_gradients = 0, arriving = 0, loss = 0, norm = 0, chain[2]{}, work = 0, work_beside = 0,
              bytes = 0;
  std::size_t chain_bytes = 0, work_bytes = 0, work_beside_bytes = 0;
  std::size_t routers = 0, routers_bytes = 0;  // of what is kept of a microbatch's routers
  std::vector<pool> pools;
  std::vector<placed_rope> ropes;
  /// Index in `ropes` of the table for a use; their number where there is none.
  std::size_t find_rope(const rope_use& wanted) const {
    return static_cast<std::size_t>(
        std::find_if(ropes.begin(), ropes.end(), [&](const placed_rope& p) { return p.as == wanted; }) -
        ropes.begin());
  }
  int chains =
      0;  // gradients between the layers of a stage: two buffers in turn, one where there are two layers
};

enum class item_kind {
  receive,
  send,
  gather,
  forward,
  forward_layer,
  backward,
  backward_layer,
  reduce_scatter,
  add_sums,
  reduce,
  squares,
  reduce_norm,
  clear_loss,
  reduce_loss,
  update,
  count_labels,
  reduce_label_count,
  skip_unlabeled
};

/// The ranks over which the norm sums squares of a gradient, besides those that shard weights.
///   nothing  none
///   region   those of a tensor-parallel region, where each has another part
///   experts  also replicas or ranks of ep, which hold the same dense weights and other experts
enum class norm_over : unsigned char { nothing, region, experts };
inline constexpr int n_norm_over = 3;
inline constexpr const char* norm_over_names[]{"squares_whole", "squares_sharded", "squares_of_experts"};

/// One thing that a rank issues: a call of a stage, a message, a reduction.
struct item {
  item_kind what = item_kind::forward;
  phase does = phase::forward;  // of a stage or a layer; a backward may be one half
  int on = 0;                   // index into pipeline_rank::lanes
  std::string name;             // "1F0"; for messages "F0: stage 0 -> 1"
  std::string action;           // of the schedule, to which it belongs: "1STEP"
  int stage = 0;                // index into pipeline_rank::stages
  int microbatch = 0, layer = -1;
  int slot = -1;            // which of the stage's
  int data = -1;            // send, receive: the step's value
  bool first = false;       // first microbatch: gradients and loss start afresh
  bool first_kept = false;  // the same of gradients that are not dealt out
  int bucket = -1;
  int gathering = -1;
  runtime::over over = runtime::over::tp;
  int message = -1;
  std::size_t bytes = 0;                   // of a message between stages
  norm_over squares = norm_over::nothing;  // of which gradients
  std::vector<int> waits;                  // earlier items on other lanes
  int event = -1;                          // recorded after it: index into pipeline_rank::events
};

/// A lane of a pipeline rank, and a communicator of one of its lanes.
struct lane {
  std::string name;
  bool computes = false;
  int peer = -1;       // the pipeline rank with which it has messages; -1: it has none
  bool sends = false;  // to the peer; else it receives
};
struct lane_link {
  int lane;
  runtime::over over;
};

/// What a rank does in a step, in order, and the values that are made and used up in it.
struct step {
  std::vector<item> items;
  std::vector<int> end_waits;  // items that the end waits for
  std::vector<placed_value> values;
  std::map<std::array<int, 4>, int> index;  // of values, by what they are
  /// The value of a microbatch; null where it has none.
  const placed_value* find(kept what, int stage, int microbatch, int layer = -1) const {
    const auto at = index.find({static_cast<int>(what), stage, microbatch, layer});
    return at == index.end() ? nullptr : &values[at->second];
  }
};

struct pipeline_rank {
  int index = 0;
  std::vector<lane> lanes;
  std::vector<lane_link> links;
  std::vector<stage_plan> stages;
  std::vector<placed_parameter> parameters;
  std::size_t parameter_elements = 0, trained_elements = 0;  // those that are trained first
  std::size_t gathered_elements = 0, summed_elements = 0, arriving_elements = 0;
  std::vector<gathering> gatherings;  // none where the rank keeps whole tensors
  std::vector<bucket> buckets;
  /// Elements that the rank keeps of some parameters.
  std::size_t shard_elements(const std::vector<gathering::part>&) const;
  std::vector<range> squares[n_norm_over], updates;
  const std::vector<range>& squares_of(norm_over c) const { return squares[static_cast<int>(c)]; }
  arena_plan arena;
  std::vector<placed_input> inputs;  // in the order of the plan's list
  /// The input of this name; nullptr without such an input.
  const placed_input* find_input(std::string_view name) const {
    const auto at =
        std::find_if(inputs.begin(), inputs.end(), [&](const placed_input& i) { return i.is.name == name; });
    return at == inputs.end() ? nullptr : &*at;
  }
  bool reads(const named_input& i) const {
    const placed_input* const placed = find_input(i.name);
    return placed && placed->read;
  }
  bool overlaps = false;  // runs actions next to others, on a lane of their own
  step train, evaluate;
  std::vector<std::string> events;
};

struct message_site {
  std::string name;
  std::size_t bytes;
};

struct lowered {
  const plan_data* plan = nullptr;
  dtype type = dtype::f32;
  codegen::target target = codegen::target::host;
  std::uint64_t hash = 0;
  std::vector<body> bodies;                   // of each kind of layer
  std::vector<group_layout> groups;           // of each kind of layer: what a rank keeps
  std::vector<group_layout> gathered_groups;  // what layers read: the same, where ranks keep whole tensors
  std::vector<pipeline_rank> ranks;           // of each pipeline coordinate
  std::vector<message_site> messages;
  std::map<std::string, int> message_index;  // by name
  std::vector<std::array<int, 2>> tied;      // pairs of pipeline ranks that hold the same parameters
  std::vector<communicator> communicators;
  std::vector<std::vector<int>> communicator_of;  // per global rank, by the links of its pipeline coordinate

  /// Index of a message site, made on first use; `find_message` throws if there is none.
  int message(const std::string& name, std::size_t bytes);
  int find_message(const std::string& name) const;
  /// Bytes of an activation, and of an element of a region, of a statistic and of the loss: f32 where that is
  /// bf16.
  std::size_t real_bytes() const { return runtime::size_of(type); }
  std::size_t wide_bytes() const { return std::max<std::size_t>(real_bytes(), 4); }
  /// Token ids of a microbatch on a rank.
  std::size_t tokens() const {
    return static_cast<std::size_t>(plan->rows) * (plan->recipe.seq / plan->dims.cp);
  }
  /// Whether the plan trains; else it has forwards alone.
  bool trains() const { return !plan->actions.inference; }
  /// Whether losses of several pipeline ranks are summed.
  bool sums_losses_over_pp() const {
    return plan->dims.pp > 1 && std::any_of(plan->kinds.begin(), plan->kinds.end(),
                                            [](const layer_kind& k) { return !k.ops.side_losses.empty(); });
  }
  /// Whether the schedule has backwards in two halves.
  bool splits_backward() const { return uses(action_kind::I) || uses(action_kind::W); }
  bool uses(action_kind k) const {
    return std::any_of(plan->actions.actions.begin(), plan->actions.actions.end(),
                       [&](const action& a) { return a.kind == k; });
  }
  bool uses(action_kind k, int stage) const {
    return std::any_of(plan->actions.actions.begin(), plan->actions.actions.end(),
                       [&](const action& a) { return a.kind == k && a.stage == stage; });
  }
  /// The bytes that the optimizer keeps of each weight, and its row.
  optimizer_state state() const {
    return rankc::lowering::state_of(plan->recipe, real_bytes(), wide_bytes(), trains());
  }
  const optimizer_row& optimizer() const { return *plan->recipe.optimizer.row; }
  /// Whether layers read the weights from a rounded copy.
  bool has_working_copy() const { return state().working_copy; }
  /// Elements of a rank's region of weights: what is not trained lies in the copy alone, where there is one.
  std::size_t weight_elements(const pipeline_rank& r) const {
    return has_working_copy() ? r.trained_elements : r.parameter_elements;
  }
  /// Of programs in bf16: whether the weights themselves are.
  bool has_bf16_weights() const { return state().weight < wide_bytes(); }
  bool has_bf16_moments() const { return state().moments > 0 && plan->recipe.moments == bf16; }
  /// Whether an item sums gradients over dp, and sends them in bf16.
  bool rounds(const item& i) const {
    const bool sums_gradients = i.what == item_kind::reduce || i.what == item_kind::reduce_scatter;
    return sums_gradients && rounds_reductions() &&
           (i.over == runtime::over::dp || i.over == runtime::over::shard || i.over == runtime::over::efsdp);
  }
  bool rounds_reductions() const {
    return rankc::lowering::rounds_reductions(plan->recipe, plan->dims, real_bytes(), wide_bytes(), trains());
  }
  /// Whether each rank keeps a shard of every parameter, and gathers the others' for its layers.
  bool is_sharded() const { return shards_weights(plan->dims); }
  /// Whether gathered weights and whole gradients are there from step to step of a layer alone.
  bool reshards() const { return reshards_after_layer(plan->dims); }
};

/// An upper bound of a rank's GPU memory outside of the arena, for every launch; 0 on the host.
/// Units: bytes. Source: rankc/contract/device_memory.hpp.
std::size_t bytes_beside_arena(const lowered&, const pipeline_rank&);

/// All passes, in order. The plan must be valid. The watcher, if there is one, sees each pass.
lowered lower(const plan_data&, dtype, target = target::host, watcher* = nullptr);

inline const char* name_of(target t) { return t == target::cuda ? "cuda" : "host"; }

/// The programs of all ranks, for the proof.
program expand_train(const lowered&);
program expand_evaluate(const lowered&);

/// The model that these programs are of, before any pass. The plan must be valid.
specification specify(const plan_data&);

}  // namespace rankc::codegen
