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

/// One layer's use of a parameter that it shares with another layer.
struct shared_use {
  std::size_t element = 0;
  std::size_t gathered = 0, summed = 0;  // offsets of the full weights and of the full gradient
  bool adds = false;                     // a later layer of this rank has written the gradient already
};

/// One use of a layer on a stage.
struct layer_use {
  int kind = 0;
  std::string name;              // "layers.2" or the kind's name; unique
  std::string id;                // identifier in the generated text
  std::size_t base[n_groups]{};  // offsets in each region, in elements
  // Offsets of the full weights that layers read, and of the full gradients that they add to. They equal
  // `base` if ranks keep whole tensors.
  std::size_t gathered_base[n_groups]{}, summed_base[n_groups]{};
  std::vector<shared_use> shared = {};  // in the order of group_layout::shared
  bool adds_to_loss = false;            // another layer of this rank has begun the sum of the losses

  /// Offset of a parameter in each region. Units: elements.
  std::size_t element(const group_layout::place& p) const {
    return p.in == group::shared ? shared[p.offset].element : base[static_cast<int>(p.in)] + p.offset;
  }
  /// Offsets of the full parameter among the gathered weights, and of its full gradient. Units: elements.
  std::size_t gathered(const group_layout::place& p) const {
    return p.in == group::shared ? shared[p.offset].gathered
                                 : gathered_base[static_cast<int>(p.in)] + p.offset;
  }
  std::size_t summed(const group_layout::place& p) const {
    return p.in == group::shared ? shared[p.offset].summed : summed_base[static_cast<int>(p.in)] + p.offset;
  }
  /// True if another layer writes the parameter's gradient before this layer first adds to it.
  bool adds_to(const group_layout::place& p) const { return p.in == group::shared && shared[p.offset].adds; }
};

/// The gradients that an accumulate flag controls, other than that of one shared parameter: all others, or
/// those of the rank's own experts.
inline constexpr int flag_of_others = -1, flag_of_experts = -2;

/// The parameters of a layer's function, in this order.
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

/// The values that a stage keeps in memory for a microbatch. For a layer: the values saved for backward, the
/// output and the gradient of the output; the stage's last layer has neither of the last two. Between stages:
/// the activation and its gradient.
enum class kept { saved, output, output_gradient, activation, gradient, halfway };
inline constexpr const char* kept_names[]{
    "saved",          "outputs of layers",        "gradients of outputs",
    "between stages", "gradients between stages", "between halves of backward"};

/// The origin of an argument of a layer's function.
enum class source {
  parameters,  // the layer's parameters, in the region of weights or of gradients
  slot,        // the microbatch's slot: `what` of layer `index` of the stage
  boundary,    // the microbatch's `what` before the stage, or after it (`index` 1)
  chain,       // one of two buffers for gradients between the layers of a stage
  // Belongs to the pipeline rank, the step's microbatch or the lane; the formal tells which. `index` is the
  // rotary table, or the input of the step.
  rank,
  adds,       // false in the stage's first microbatch; in all, if the plan reshards after each layer
  adds_kept,  // false in the stage's first microbatch
  always,     // true
};
struct actual {
  formal as;
  source from;
  int index = 0;  // of a flag: a shared parameter, flag_of_others or flag_of_experts
  kept what = kept::saved;
};

/// The call of a layer's function in one phase of its stage.
struct layer_call {
  int layer = 0;  // index in the stage
  std::vector<actual> given;
  /// The argument for a formal.
  /// Errors: std::logic_error if there is none.
  const actual& operator[](formal) const;
  /// The flag that decides whether a sum overwrites a gradient or adds to it. `flag`: a shared parameter,
  /// flag_of_experts or flag_of_others.
  /// Errors: std::logic_error if there is none.
  const actual& flag(int flag) const;
};

/// The layers, calls and memory of a stage on a pipeline rank.
struct stage_plan {
  struct member {
    kept what;
    int layer;
  };
  int stage = 0;
  std::string name;   // "stage_2"; "stage_2_reversed" for the second of two ranks that hold it
  bool last = false;  // the model's last stage
  bool copy = false;  // this rank is the second holder
  std::vector<layer_use> layers;
  std::vector<layer_call> calls[n_phases] = {};      // one for each layer
  std::vector<member> members = {};                  // of a slot: kept from forward to backward
  std::vector<std::vector<std::size_t>> slots = {};  // arena offset of each member, for each slot
};

/// A parameter tensor of a pipeline rank.
struct placed_parameter {
  std::string name;
  layer_parameter as;
  std::size_t element = 0;
  bool copy = false;  // another pipeline rank is the first holder of the parameter
};

/// Gradients that one all-reduce sums: contiguous elements.
struct bucket {
  std::string name;
  std::string id;  // identifier in the generated text
  std::size_t first = 0, count = 0;
  bool over_dp = false, over_region = false;
  bool tied = false;                 // also summed with the rank that holds the same parameters
  int stage = -1, after_layer = -1;  // complete after this layer's last backward (-1: at the end of the step)
};

/// A shard group: parameters that are all-gathered together, and whose gradients are reduce-scattered
/// together. They belong to one layer, or are one parameter that layers share.
struct gathering {
  struct part {
    int parameter;
    std::size_t whole;  // first element of the full tensor among gathered weights, or of its full gradient
    // First element of the rank's scattered gradient, in the region for sums that are added to earlier ones.
    std::size_t arriving = 0;
    bool operator==(const part&) const = default;
  };
  axis over = axis::fsdp;  // the ranks that shard them
  std::string name;
  std::string id;              // identifier in the generated text
  int stage = -1, layer = -1;  // indices on the rank; -1: of no single layer
  // Elements [first, last) of the buffer for gathered weights. Other groups may use them at other times.
  std::size_t first = 0, last = 0;
  std::vector<part> parts = {}, trained = {};  // all weights; those with gradients
};

/// Contiguous elements that the optimizer or the norm treats alike.
using runtime::range;

/// A rotary table of a pipeline rank. All layers with the same use share it.
struct placed_rope {
  rope_use as;
  std::size_t where = 0, bytes = 0;
};

/// Places of one size. Values that are not needed at the same time share a place.
struct pool {
  kept what;
  std::size_t unit;  // bytes
  int count = 0;
  std::size_t where = 0;
};

/// A value of a microbatch: its name, its lifetime and its place.
struct placed_value {
  kept what;
  int stage = 0, microbatch = 0, layer = -1;
  std::string name = {};               // of a value between stages: "x_1F0", "d_x_1B0"
  std::string lives = {};              // "1F0 .. 1B0"
  std::size_t bytes = 0, carried = 0;  // size of the value; size of its carried part behind the rows
  int pool = 0;                        // index in the rank's arena
  int first = 0, last = 0;             // indices into the action table
  int place = 0;                       // index in the pool
  std::size_t where = 0;               // offset in the arena
};

/// An input of the step on a pipeline rank. `read`: the rank's layers read it. `where`: its offset in the
/// arena.
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
  std::size_t routers = 0, routers_bytes = 0;  // router statistics: offset; bytes for each microbatch
  std::vector<pool> pools;
  std::vector<placed_rope> ropes;
  /// Index in `ropes` of the table for a use; ropes.size() if there is none.
  std::size_t find_rope(const rope_use& wanted) const {
    return static_cast<std::size_t>(
        std::find_if(ropes.begin(), ropes.end(), [&](const placed_rope& p) { return p.as == wanted; }) -
        ropes.begin());
  }
  // Buffers for gradients between the layers of a stage: two alternate; a stage of two layers needs one.
  int chains = 0;
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

/// The ranks over which the norm sums the squares of a gradient, in addition to the ranks that shard weights.
///   nothing  none
///   region   the ranks of a tensor-parallel region, each with a different part
///   experts  also replicas or ranks of ep, which hold the same dense weights and different experts
enum class norm_over : unsigned char { nothing, region, experts };
inline constexpr int n_norm_over = 3;
inline constexpr const char* norm_over_names[]{"squares_whole", "squares_sharded", "squares_of_experts"};

/// An entry of a rank's issue list: a call of a stage, a message or a reduction.
struct item {
  item_kind what = item_kind::forward;
  phase does = phase::forward;  // phase of a stage or a layer; may be half a backward
  int on = 0;                   // index into pipeline_rank::lanes
  std::string name;             // "1F0"; for messages "F0: stage 0 -> 1"
  std::string action;           // the schedule's action that it belongs to: "1STEP"
  int stage = 0;                // index into pipeline_rank::stages
  int microbatch = 0, layer = -1;
  int slot = -1;            // index of the stage's slot
  int data = -1;            // send, receive: index of the step's value
  bool first = false;       // first microbatch: gradients and loss are overwritten
  bool first_kept = false;  // the same for gradients that are not reduce-scattered
  int bucket = -1;
  int gathering = -1;
  runtime::over over = runtime::over::tp;
  int message = -1;
  std::size_t bytes = 0;                   // of a message between stages
  norm_over squares = norm_over::nothing;  // the gradients whose squares are summed
  std::vector<int> waits;                  // earlier items on other lanes
  int event = -1;                          // recorded after it: index into pipeline_rank::events
};

/// A lane of a pipeline rank: one stream.
struct lane {
  std::string name;
  bool computes = false;
  int peer = -1;       // the pipeline rank at the other end of its messages; -1: none
  bool sends = false;  // sends to the peer; false: receives from it
};
/// A communicator of a lane.
struct lane_link {
  int lane;
  runtime::over over;
};

/// A rank's items of a step in issue order, and the values that the step makes and uses up.
struct step {
  std::vector<item> items;
  std::vector<int> end_waits;  // items that the end op waits for
  std::vector<placed_value> values;
  std::map<std::array<int, 4>, int> index;  // index in `values` by kind, stage, microbatch and layer
  /// The value of a microbatch; null if there is none.
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
  std::size_t parameter_elements = 0, trained_elements = 0;  // trained parameters come first
  std::size_t gathered_elements = 0, summed_elements = 0, arriving_elements = 0;
  std::vector<gathering> gatherings;  // empty if the rank keeps whole tensors
  std::vector<bucket> buckets;
  /// The number of elements that the rank keeps of some parameters.
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
  bool overlaps = false;  // runs actions concurrently with others, on the overlap lane
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
  std::vector<body> bodies;          // one for each form of layer
  std::vector<group_layout> groups;  // one for each form: the tensors or shards that a rank keeps
  // The full tensors that layers read. They equal `groups` if ranks keep whole tensors.
  std::vector<group_layout> gathered_groups;
  std::vector<pipeline_rank> ranks;  // one for each pipeline coordinate
  std::vector<message_site> messages;
  std::map<std::string, int> message_index;  // by name
  std::vector<std::array<int, 2>> tied;      // pairs of pipeline ranks that hold the same parameters
  std::vector<communicator> communicators;
  // For each global rank, in the order of its pipeline coordinate's links.
  std::vector<std::vector<int>> communicator_of;

  /// Index of a message site. `message` makes the site on first use; `find_message` throws if there is none.
  int message(const std::string& name, std::size_t bytes);
  int find_message(const std::string& name) const;
  /// Bytes of an element: `real` for activations, `wide` for regions, statistics and the loss. The wide type
  /// is f32 if the real type is bf16.
  std::size_t real_bytes() const { return runtime::size_of(type); }
  std::size_t wide_bytes() const { return std::max<std::size_t>(real_bytes(), 4); }
  /// The number of tokens of a microbatch on a rank.
  std::size_t tokens() const {
    return static_cast<std::size_t>(plan->rows) * (plan->recipe.seq / plan->dims.cp);
  }
  /// True if the plan trains; otherwise its schedule has forwards only.
  bool trains() const { return !plan->actions.inference; }
  /// True if losses of several pipeline ranks are summed.
  bool sums_losses_over_pp() const {
    return plan->dims.pp > 1 && std::any_of(plan->kinds.begin(), plan->kinds.end(),
                                            [](const layer_kind& k) { return !k.ops.side_losses.empty(); });
  }
  /// True if the schedule splits backward into two halves.
  bool splits_backward() const { return uses(action_kind::I) || uses(action_kind::W); }
  bool uses(action_kind k) const {
    return std::any_of(plan->actions.actions.begin(), plan->actions.actions.end(),
                       [&](const action& a) { return a.kind == k; });
  }
  bool uses(action_kind k, int stage) const {
    return std::any_of(plan->actions.actions.begin(), plan->actions.actions.end(),
                       [&](const action& a) { return a.kind == k && a.stage == stage; });
  }
  /// The bytes that the optimizer keeps for each weight; and the optimizer's row.
  optimizer_state state() const {
    return rankc::lowering::state_of(plan->recipe, real_bytes(), wide_bytes(), trains());
  }
  const optimizer_row& optimizer() const { return *plan->recipe.optimizer.row; }
  /// True if layers read the weights from a rounded copy.
  bool has_working_copy() const { return state().working_copy; }
  /// Elements of a rank's region of weights. If there is a working copy, it alone holds the weights that are
  /// not trained.
  std::size_t weight_elements(const pipeline_rank& r) const {
    return has_working_copy() ? r.trained_elements : r.parameter_elements;
  }
  /// For programs in bf16: true if the optimizer's weights are in bf16 too.
  bool has_bf16_weights() const { return state().weight < wide_bytes(); }
  bool has_bf16_moments() const { return state().moments > 0 && plan->recipe.moments == bf16; }
  /// True if an item sums gradients over data-parallel ranks and sends them in bf16.
  bool rounds(const item& i) const {
    const bool sums_gradients = i.what == item_kind::reduce || i.what == item_kind::reduce_scatter;
    return sums_gradients && rounds_reductions() &&
           (i.over == runtime::over::dp || i.over == runtime::over::shard || i.over == runtime::over::efsdp);
  }
  bool rounds_reductions() const {
    return rankc::lowering::rounds_reductions(plan->recipe, plan->dims, real_bytes(), wide_bytes(), trains());
  }
  /// True if each rank keeps a shard of every parameter and all-gathers the full weights for its layers.
  bool is_sharded() const { return shards_weights(plan->dims); }
  /// True if gathered weights and full gradients are freed after each layer.
  bool reshards() const { return reshards_after_layer(plan->dims); }
};

/// An upper bound of a rank's GPU memory outside the arena, for every way to launch; 0 on the host.
/// Units: bytes. Source: rankc/contract/device_memory.hpp.
std::size_t bytes_beside_arena(const lowered&, const pipeline_rank&);

/// Runs all passes in order. The plan must be valid. The watcher, if there is one, sees each pass.
lowered lower(const plan_data&, dtype, target = target::host, watcher* = nullptr);

inline const char* name_of(target t) { return t == target::cuda ? "cuda" : "host"; }

/// The programs of all ranks, for the proof.
program expand_train(const lowered&);
program expand_evaluate(const lowered&);

/// The model that these programs must compute, before any pass. The plan must be valid.
specification specify(const plan_data&);

}  // namespace rankc::codegen
