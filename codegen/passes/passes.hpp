// SPDX-License-Identifier: Apache-2.0
// The passes over a lowered plan, in the order in which they run. Each pass is one file and does one thing.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/mesh/regions.hpp>
#include <rankc/schedule/communicate.hpp>

#include <array>
#include <initializer_list>
#include <map>
#include <string>

namespace rankc::codegen {

/// A rank's index among the ranks along the dense axes that an axis joins, the outermost axis first.
inline int place_along(axis joined, const parallel_dims& d, const coord& at) {
  int place = 0;
  for (const axis_row& r : axis_rows)
    if (parts_of(joined).has(r.id)) place = place * ranks_along(d, r.id) + at[r.id];
  return place;
}
/// The rank's index among the ranks that shard sequences.
inline int cp_of(const parallel_dims& d, const coord& at) { return place_along(axis::cp, d, at); }
/// The rank's index among the ranks that have different sequences.
inline int dp_of(const parallel_dims& d, const coord& at) { return place_along(axis::batch, d, at); }

/// A rank's index in its group across an axis of either view.
inline int place_in_group(axis across, const parallel_dims& d, const coord& at) {
  const layout mesh(d);
  return mesh.groups(across).place(mesh.flat(at));
}
/// The rank's index among the ranks that shard each dense weight.
inline int shard_of(const parallel_dims& d, const coord& at) { return place_in_group(axis::fsdp, d, at); }
/// The rank's index among the ranks that have different experts of a layer.
inline int ep_of(const parallel_dims& d, const coord& at) { return place_in_group(axis::ep, d, at); }
/// The rank's index among the ranks that shard the features of each expert.
inline int etp_of(const parallel_dims& d, const coord& at) {
  return place_in_group(expert_region_axis, d, at);
}
/// The rank's index among the ranks that shard the weights of the same experts.
inline int expert_shard_of(const parallel_dims& d, const coord& at) {
  return place_in_group(axis::efsdp, d, at);
}

/// The rank of another pipeline coordinate with the same coordinates on the other axes.
inline int rank_at(const parallel_dims& d, int pp, const coord& at) {
  const layout mesh(d);
  return mesh.flat(at) + (pp - at[axis::pp]) * mesh.dense().find(axis::pp)->stride;
}

/// Assigns layers to stages, parameters to groups, and groups to regions. Makes the buckets of gradients and
/// the ranges of the optimizer.
void place_parameters(lowered&);

/// Places the gathered weights of layers, and decides which are gathered together.
void shard_parameters(lowered&);

/// Makes the lanes of each pipeline rank and the communicators, in one global order. A single rank has no
/// communicator.
void make_communicators(lowered&);

/// The words for a scaling of rotary positions: ", for 0.5 of a head, slowed by llama3 of factor 8"; empty
/// without scaling.
std::string scaling_words(const rope_scaling&);

/// The parameters of a layer's function, as its ops need them.
struct function_shape {
  bool weights, gradients, saved, halfway, work, x, y, dy, dx, loss, routers, accumulate;
  std::vector<int> inputs;            // indices of the step's inputs
  std::vector<int> accumulate_apart;  // flags of gradients that have a flag of their own
  std::vector<int> ropes;             // indices of the body's tables
  bool beside = false;                // takes the lane of ring messages
  bool during = false;                // takes the kind of step
};
function_shape shape_of(const body&, phase);
/// The flag that controls a node's sum: the index of a shared parameter, flag_of_experts or flag_of_others.
int find_flag(const body&, const node&);
/// True if a node adds to a gradient or to the loss; false if it overwrites it.
bool adds(const item&, const layer_call&, const body&, const node&);

/// True if a stage recomputes the values of its last layer in a separate item, which does not wait for the
/// gradient.
bool repeats_first(const lowered&, const stage_plan&);
/// The phases of a layer that run in a phase of its stage. Recomputation comes before backward, or before its
/// first half. For the stage's last layer it is a separate item.
std::vector<phase> phases_of(const stage_plan&, phase, int layer);
/// The same for an item. An item on the overlap lane recomputes the last layer too.
std::vector<phase> phases_of(const stage_plan&, const item&, int layer);

/// The size of a kept value of a layer, for one microbatch. Units: bytes.
inline std::size_t bytes_of(const body& b, kept what) {
  if (what == kept::saved) return b.saved_bytes;
  return what == kept::halfway ? b.halfway_bytes : b.y_bytes;
}

/// Makes the calls of each stage's layers, and the members of the stage's slots.
void bind_layers(lowered&);

/// Makes the values of a rank's step, with their lives.
void make_values(const lowered&, pipeline_rank&, const action_table&, const communication&, step&);

/// Lists the actions, messages and reductions of each pipeline rank as items in issue order.
void schedule_items(lowered&);

/// Places every byte of the arena.
void place_arena(lowered&);

/// Adds the fewest events that order items on different lanes wherever they touch the same bytes.
void order_streams(lowered&);

/// A wait for the last op on the item's lane before the item.
inline constexpr int before_item = -1;

/// Makes the ops of a pipeline rank, item by item, with the bytes that they access. A content is named by its
/// meaning (the saved values of microbatch 3, the gradient of a weight after microbatch 2), not by its
/// address. So the proof shows that the placement is right. Values are numbered from 0 within the pipeline
/// rank.
class flattener {
 public:
  flattener(const lowered&, const pipeline_rank&, const step&);
  op begin();
  /// The ops of an item. Their waits are indices within the item.
  std::vector<op> flatten(const item&);
  op end(bool train);
  /// The values of each message: those that its sender reads, and those that its receive writes.
  const std::map<int, std::vector<int>>& sent() const { return sent_; }
  const std::map<int, std::vector<int>>& received() const { return received_; }
  int values() const { return next_value_; }

 private:
  using content = std::array<int, 6>;
  struct place {
    std::size_t begin, bytes;
    content what;
    element_type type;
  };
  place resolve(const item&, const layer_call&, int value) const;
  place locate(const item&, const layer_call&, const actual&) const;
  place locate_of_rank(const item&, const layer_call&, const actual&) const;
  place of_microbatch(const placed_value&) const;
  /// The parts of a value between layers: rows, and the carried value behind them.
  std::vector<place> parts_of(const placed_value&) const;
  place handed(place all, std::size_t offset, std::size_t bytes) const;
  place parameter(int region, std::size_t index) const;
  /// A full parameter: its gathered weights, or its gradient before the reduce-scatter.
  place whole(int region, const gathering::part&) const;
  /// The rank's shard of a reduce-scattered gradient, before it is added to the sum that the rank keeps.
  place arrival(const gathering::part&) const;
  place scalar(int what, std::size_t at) const;
  place input(const named_input&, int microbatch) const;
  access read(const place&) const;
  access write(const place&);
  element_type type_of(element_kind) const;
  element_type real() const;
  element_type wide() const;
  /// Bytes between the parameters of a bucket. Its all-reduce covers them too.
  std::vector<place> paddings(const bucket&) const;
  /// Adds the reads of paddings in some ranges. The norm and the optimizer read them.
  void read_paddings(op&, const std::vector<range>&);
  /// Sets `replaces` of a write to the candidate that has the same bytes, if one has.
  static void set_replaced(access& written, const op&, const std::vector<int>& candidates);
  /// The sizes and the number in a kernel's call, in the order of its members.
  std::vector<double> given(const body&, const node&);
  op layer_op(const item&, const layer_call&, const node&);
  void layer_ops(const item&, int layer, std::vector<op>& out);
  void make_collective(op&, const item&, std::size_t data) const;
  op send_or_receive(const item&);
  op reduce_bucket(const item&);
  /// The all-gathers and reduce-scatters of a shard group and the additions of its gradients, one op for each
  /// tensor.
  std::vector<op> gather(const item&);
  std::vector<op> reduce_scatter(const item&);
  std::vector<op> add_sums(const item&);
  std::vector<box_range> chunks_of(std::int64_t first, std::int64_t rows, std::int64_t seq) const;
  op collective_of(const item&, collective_kind, const access& from, const access& to) const;
  op reduce_scalar(const item&, const place&);
  op sum_squares(const item&);
  op clear_loss(const item&);
  op count_labels(const item&);
  op skip_unlabeled(const item&);
  op update(const item&);
  /// An op on the parameters in some ranges, with a view and an access for each region that it reads or
  /// writes.
  op on_ranges(std::string name, const std::vector<range>&, const std::vector<int>& reads,
               const std::vector<int>& writes);
  /// All tensors that a step begins with and leaves to the next step.
  std::vector<std::pair<place, holding>> kept_tensors() const;
  /// The regions that hold a parameter from step to step.
  std::vector<int> kept_of(const placed_parameter&) const;
  std::vector<int> moments() const;  // the regions of the optimizer's moments
  std::size_t begin_of(int region) const;

  const lowered& l_;
  const pipeline_rank& r_;
  const step& step_;
  std::vector<int> kept_;           // the regions of a trained parameter
  std::map<content, int> current_;  // the current value of each content
  std::map<int, std::vector<int>> sent_, received_;
  std::map<const op_row*, std::vector<std::string>> symbols_;  // the sizes in calls of a row
  int next_value_ = 0;
};

}  // namespace rankc::codegen
