// SPDX-License-Identifier: Apache-2.0
#include "calls_of_step.hpp"

#include <rankc/cost_model/calibrations.hpp>
#include <rankc/cost_model/rank_time.hpp>
#include <rankc/cost_model/traffic.hpp>
#include <rankc/ops/cross_entropy.hpp>
#include <rankc/ops/memory.hpp>

#include <algorithm>
#include <numeric>

#include "../passes/lanes.hpp"
#include "../passes/passes.hpp"
#include "emit.hpp"
#include "item_nodes.hpp"

namespace rankc::codegen {

namespace {

using runtime::call_kind;

call_kind kind_of(const op_row& row) {
  switch (cost_model::work_of(row)) {
    case cost_model::work::product:
      return call_kind::product;
    case cost_model::work::attention:
      return call_kind::attention;
    case cost_model::work::communication:
      return call_kind::communication;
    case cost_model::work::pass:
    case cost_model::work::column_sum:
      break;
  }
  return call_kind::pass;
}

class call_counter {
 public:
  call_counter(const lowered& l, const pipeline_rank& r)
      : l_(l),
        r_(r),
        names_(name_kernels(l)),
        groups_(l.communicator_of[static_cast<std::size_t>(rank_at(l.plan->dims, r.index, {}))]) {
    for (const body& b : l.bodies) sizes_.emplace_back(b, b.setting);
    const cluster& machines = l.plan->machines;
    if (l.target != target::cuda || l.type != dtype::bf16) return;
    gpu_ = cost_model::find_speed(machines.gpu);
    if (l.plan->dims.world <= machines.ranks_per_node) link_ = machines.within_node;
  }

  std::vector<calls_of_step> count() && {
    for (const item& i : (l_.trains() ? r_.train : r_.evaluate).items) add(i);
    return std::move(all_);
  }

 private:
  void add(const item& i) {
    switch (i.what) {
      case item_kind::forward:
      case item_kind::backward:
      case item_kind::forward_layer:
      case item_kind::backward_layer:
        each_node(l_, r_, i, [&](const body& b, const layer_call& call, const node& n) {
          const cost_model::kernel_sizes& sizes = sizes_[static_cast<std::size_t>(&b - l_.bodies.data())];
          if (n.row->communicates())
            send(b.function(n),
                 cost_model::sent_by(b, n, b.setting) * sizes.sent(n, l_.plan->machines.ranks_per_node));
          else if (!n.is(ops::clear)) compute(n, sizes, adds(i, call, b, n));
        });
        break;
      case item_kind::send:
      case item_kind::receive:
        send(i.what == item_kind::send ? "send" : "receive", static_cast<double>(i.bytes));
        break;
      case item_kind::gather:
        send("gather_shards", shards(gathering_of(i).parts) * real() * others(i));
        break;
      case item_kind::reduce_scatter:
        send(name_of_sum(l_, i, "scatter_sums"), shards(gathering_of(i).trained) * sum_bytes(i) * others(i));
        break;
      case item_kind::add_sums:
        pass("add_sums", 3 * shards(gathering_of(i).trained) * wide());
        break;
      case item_kind::reduce:
      case item_kind::reduce_norm:
      case item_kind::reduce_label_count:
      case item_kind::reduce_loss: {
        const double elements =
            static_cast<double>(l_.messages[static_cast<std::size_t>(i.message)].bytes) / wide();
        send(name_of_sum(l_, i, "all_reduce"), 2 * elements * sum_bytes(i) * others(i) / (others(i) + 1));
        break;
      }
      case item_kind::clear_loss:
        break;  // a statement, not a call
      case item_kind::count_labels:
        count_labels();
        break;
      case item_kind::skip_unlabeled:
        pass(names_.at(&ops::skip_unlabeled), 2 * wide());
        break;
      case item_kind::squares:
        sweep("sum_squares", elements_of(r_.squares_of(i.squares)) * wide());
        break;
      case item_kind::update:
        sweep(l_.optimizer().name,
              elements_of(r_.updates) * cost_model::detail::updated_bytes(l_.state(), real(), wide()));
        break;
    }
  }

  void compute(const node& n, const cost_model::kernel_sizes& sizes, bool adds) {
    const call_kind kind = kind_of(*n.row);
    double bytes = sizes.bytes(n);
    for (std::size_t p = 0; p < n.ports.size() && !adds && n.accumulate == accumulation::after_first; ++p)
      if (n.row->ports[p].as == use::sum) bytes -= sizes.bytes(n, p) / 2;  // overwrites: no sum is read
    const double operations = kind == call_kind::pass ? 0 : sizes.operations(n);
    add({names_.at(n.row), kind, 1, operations, bytes, least_time(*n.row, operations, bytes)});
  }
  /// Units: seconds, at the GPU's peak rates; 0 if the GPU is unknown.
  double least_time(const op_row& row, double operations, double bytes) const {
    if (!gpu_) return 0;
    const double peak = gpu_->peak * (cost_model::takes_fp8(row) ? 2 : 1);
    return std::max(operations / peak, bytes / gpu_->memory);
  }
  void count_labels() {
    const training& by = l_.plan->recipe;
    const double of_token = sizeof(std::int32_t) + (by.token_weights ? wide() : 0);
    pass(names_.at(&ops::count_row(by)), static_cast<double>(l_.tokens()) * of_token);
  }
  void pass(std::string_view name, double bytes, call_kind kind = call_kind::pass) {
    add({std::string(name), kind, 1, 0, bytes, gpu_ ? bytes / gpu_->memory : 0});
  }
  void sweep(std::string_view name, double bytes) { pass(name, bytes, call_kind::optimizer); }
  void send(std::string_view name, double bytes) {
    add({std::string(name), call_kind::communication, 1, 0, bytes, gpu_ && link_ > 0 ? bytes / link_ : 0});
  }
  void add(const calls_of_step& one) {
    const auto at =
        std::find_if(all_.begin(), all_.end(), [&](const calls_of_step& c) { return c.name == one.name; });
    if (at == all_.end()) return all_.push_back(one);
    at->count += one.count;
    at->operations += one.operations;
    at->bytes += one.bytes;
    at->least += one.least;
  }

  double real() const { return static_cast<double>(l_.real_bytes()); }
  double wide() const { return static_cast<double>(l_.wide_bytes()); }
  double sum_bytes(const item& i) const { return l_.rounds(i) ? real() : wide(); }
  const gathering& gathering_of(const item& i) const {
    return r_.gatherings[static_cast<std::size_t>(i.gathering)];
  }
  double shards(const std::vector<gathering::part>& parts) const {
    return static_cast<double>(r_.shard_elements(parts));
  }
  /// The number of other ranks that an item communicates with.
  double others(const item& i) const {
    const auto link = static_cast<std::size_t>(find_link(r_, i.on, i.over));
    return l_.communicators[static_cast<std::size_t>(groups_[link])].members() - 1;
  }
  static double elements_of(const std::vector<range>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0,
                           [](double sum, const range& r) { return sum + static_cast<double>(r.count); });
  }

  const lowered& l_;
  const pipeline_rank& r_;
  const kernel_names names_;
  const std::vector<int>& groups_;               // communicators of the rank's links
  std::vector<cost_model::kernel_sizes> sizes_;  // one for each body
  const cost_model::gpu_speed* gpu_ = nullptr;
  double link_ = 0;  // bytes per second
  std::vector<calls_of_step> all_;
};

}  // namespace

std::vector<calls_of_step> count_calls(const lowered& l, const pipeline_rank& r) {
  return call_counter(l, r).count();
}

}  // namespace rankc::codegen
