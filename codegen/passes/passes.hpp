// SPDX-License-Identifier: Apache-2.0
// The passes over a lowered plan, in the order in which they run. Each is one file and does one thing.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/mesh/regions.hpp>
#include <rankc/schedule/communicate.hpp>

#include <array>
#include <initializer_list>
#include <map>
#include <string>

namespace rankc::codegen {

/// A rank's place among those along the axes of the dense view that an axis joins, outermost first.
inline int place_along(axis joined, const parallel_dims& d, const coord& at) {
  int place = 0;
  for (const axis_row& r : axis_rows)
    if (parts_of(joined).has(r.id)) place = place * ranks_along(d, r.id) + at[r.id];
  return place;
}
/// Its place among the ranks that share sequences.
inline int cp_of(const parallel_dims& d, const coord& at) { return place_along(axis::cp, d, at); }
/// Its place among the ranks that have sequences of their own.
inline int dp_of(const parallel_dims& d, const coord& at) { return place_along(axis::batch, d, at); }

/// A rank's place in its group across an axis of either view.
inline int place_in_group(axis across, const parallel_dims& d, const coord& at) {
  const layout mesh(d);
  return mesh.groups(across).place(mesh.flat(at));
}
/// Its place among the ranks that shard each dense weight.
inline int shard_of(const parallel_dims& d, const coord& at) { return place_in_group(axis::fsdp, d, at); }
/// Its place among the ranks that have different experts of a layer.
inline int ep_of(const parallel_dims& d, const coord& at) { return place_in_group(axis::ep, d, at); }
/// Its place among the ranks that shard the features of each expert.
inline int etp_of(const parallel_dims& d, const coord& at) {
  return place_in_group(expert_region_axis, d, at);
}
/// Its place among the ranks that shard the weights of the same experts.
inline int expert_shard_of(const parallel_dims& d, const coord& at) {
  return place_in_group(axis::efsdp, d, at);
}

/// The rank of another pipeline coordinate at the same place on the other axes.
inline int rank_at(const parallel_dims& d, int pp, const coord& at) {
  const layout mesh(d);
  return mesh.flat(at) + (pp - at[axis::pp]) * mesh.dense().find(axis::pp)->stride;
}

/// Layers to stages, parameters to groups, groups to regions; buckets of gradients and ranges of the
/// optimizer.
void place_parameters(lowered&);

/// Where the weights that ranks share out are gathered for the layers, and what is gathered together.
void shard_parameters(lowered&);

/// The lanes of each pipeline rank, and the groups of ranks that communicate, in one global order; none of a
/// single rank.
void make_communicators(lowered&);

/// ", slowed by llama3 of factor 8"; empty where nothing is.
std::string scaling_words(const rope_scaling&);

/// What a layer's function takes, as its ops need it.
struct function_shape {
  bool weights, gradients, saved, halfway, work, x, y, dy, dx, loss, routers, accumulate;
  std::vector<int> inputs;            // of the step, by their indices
  std::vector<int> accumulate_apart;  // into gradients with a flag of their own
  std::vector<int> ropes;             // of the body's tables
  bool beside = false;                // the lane of what goes around a ring
  bool during = false;                // which step it is
};
function_shape shape_of(const body&, phase);
/// The flag by which a node sums: of a parameter that another layer shares its index.
int find_flag(const body&, const node&);
/// Whether a node adds to a gradient or to the loss, or overwrites it.
bool adds(const item&, const layer_call&, const body&, const node&);

/// Whether a stage repeats what its last layer needs for backward: in an item by itself, which does not wait
/// for the gradient.
bool repeats_first(const lowered&, const stage_plan&);
/// The phases of a stage's layer that are called for one of the stage's: backward, or its first half, comes
/// after what it repeats, but for that of the last layer.
std::vector<phase> phases_of(const stage_plan&, phase, int layer);
/// The same for an item. One that runs beside another has the last layer's too.
std::vector<phase> phases_of(const stage_plan&, const item&, int layer);

/// The size of what a microbatch keeps of a layer. Units: bytes.
inline std::size_t bytes_of(const body& b, kept what) {
  if (what == kept::saved) return b.saved_bytes;
  return what == kept::halfway ? b.halfway_bytes : b.y_bytes;
}

/// The calls of each stage's layers, and what a slot of the stage has.
void bind_layers(lowered&);

/// The values of a rank's step, with their lives.
void make_values(const lowered&, pipeline_rank&, const action_table&, const communication&, step&);

/// The actions of each pipeline rank, its messages and its reductions, as items in issue order.
void schedule_items(lowered&);

/// Every byte of the arena.
void place_arena(lowered&);

/// The fewest events that order items on different lanes wherever they touch the same bytes.
void order_streams(lowered&);

/// An op of an item that waits for what its rank has on the item's lane before the item.
inline constexpr int before_item = -1;

/// The ops of a pipeline rank, item by item, with the bytes that they touch. Contents are named by what they
/// are (the saved values of microbatch 3, the gradient of a weight after microbatch 2), not by where they are
/// placed: that is what makes the proof a proof of the placement. Values are numbered from 0 within the
/// pipeline rank.
class flattener {
 public:
  flattener(const lowered&, const pipeline_rank&, const step&);
  op begin();
  /// They wait for one another by their places in the item.
  std::vector<op> flatten(const item&);
  op end(bool train);
  /// The values that a message carries, as its sender knows them; or those that a receive writes.
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
  /// All of a parameter, gathered or to be dealt out.
  place whole(int region, const gathering::part&) const;
  /// What a rank gets of a sum that is dealt out, before it is added to what it keeps.
  place arrival(const gathering::part&) const;
  place scalar(int what, std::size_t at) const;
  place input(const named_input&, int microbatch) const;
  access read(const place&) const;
  access write(const place&);
  element_type type_of(element_kind) const;
  element_type real() const;
  element_type wide() const;
  /// Bytes between the parameters of a bucket, which its reduction covers too.
  std::vector<place> paddings(const bucket&) const;
  /// What the norm and the optimizer read of them.
  void read_paddings(op&, const std::vector<range>&);
  /// One of the reads that a write may be made over, if it has these bytes.
  static void set_replaced(access& written, const op&, const std::vector<int>& candidates);
  /// The sizes and the number that a kernel's call names, in the order of its members.
  std::vector<double> given(const body&, const node&);
  op layer_op(const item&, const layer_call&, const node&);
  void layer_ops(const item&, int layer, std::vector<op>& out);
  void make_collective(op&, const item&, std::size_t data) const;
  op send_or_receive(const item&);
  op reduce_bucket(const item&);
  /// A gathering, and the sums of gradients that are dealt out, tensor by tensor.
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
  /// Views with the regions' names, and accesses, of the parameters in some ranges.
  op on_ranges(std::string name, const std::vector<range>&, const std::vector<int>& reads,
               const std::vector<int>& writes);
  /// All that a step begins with and leaves to the next.
  std::vector<std::pair<place, holding>> kept_tensors() const;
  /// The regions that hold a parameter from step to step.
  std::vector<int> kept_of(const placed_parameter&) const;
  std::vector<int> moments() const;  // regions of those that the optimizer keeps
  std::size_t begin_of(int region) const;

  const lowered& l_;
  const pipeline_rank& r_;
  const step& step_;
  std::vector<int> kept_;           // those of what is trained
  std::map<content, int> current_;  // the value that each content has now
  std::map<int, std::vector<int>> sent_, received_;
  std::map<const op_row*, std::vector<std::string>> symbols_;  // that calls of a row name
  int next_value_ = 0;
};

}  // namespace rankc::codegen
