// SPDX-License-Identifier: Apache-2.0
// The bytes that the ranks of a plan send each other in a step.
#pragma once
#include <rankc/cost_model/layer_time.hpp>
#include <rankc/memory/gather_order.hpp>
#include <rankc/memory/memory.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace rankc::cost_model {

/// The bytes that a rank sends in a step, in a ring or to each other rank. The loss and the norm, which are
/// one number each, are not counted.
/// Units: bytes.
/// Source: (n-1)/n of the elements for all_gather, reduce_scatter and exchanges, twice that for all_reduce
/// (Patarasuk and Yuan 2009).
struct traffic {
  double layers = 0;    // activations and their gradients, within layers
  double messages = 0;  // activations and their gradients, between stages
  double weights = 0, gradients = 0;
  constexpr double all() const { return layers + messages + weights + gradients; }
};

/// The bytes that a rank sends for a node.
constexpr double sent_by(const lowering::layer_program& l, const lowering::node& n,
                         const lowering::layer_setting& s) {
  const conversion by = n.row->converts;
  const double ranks = layout(s.dims).groups(n.over).size();
  const auto bytes = static_cast<double>(lowering::message_bytes(l, n, s));
  const bool is_part =
      by == conversion::all_gather || by == conversion::reduce_scatter || n.over == axis::etp;
  const bool is_sum =
      by == conversion::all_reduce || by == conversion::all_reduce_max || by == conversion::all_reduce_batch;
  if (n.row->is_shift()) return bytes;
  const double to_others = bytes * (ranks - 1);
  if (is_part) return to_others;
  return to_others * (is_sum ? 2 / ranks : 1 / ranks);
}
/// The bytes that a rank sends for the nodes of a phase.
constexpr double sent_of(const lowering::layer_program& l, const lowering::layer_setting& s,
                         lowering::phase does) {
  double all = 0;
  for (const lowering::node& n : l.calls(does))
    if (n.row->communicates()) all += sent_by(l, n, s);
  return all;
}

namespace detail {

/// Counts the bytes that the ranks of one pipeline coordinate send.
template <class Layers>
class traffic_counter {
 public:
  constexpr traffic_counter(const plan_data& plan, const Layers& layers, const lowering::layer_setting& s,
                            int rank)
      : t_(plan.actions),
        layers_(layers),
        forms_(forms_of_stages(plan)),
        s_(s),
        rank_(rank),
        is_summed_(weight_replicas(s.dims) > 1) {
    const std::size_t wide = s.bytes(lowering::element_kind::wide),
                      real = s.bytes(lowering::element_kind::real);
    sum_bytes_ = static_cast<double>(
        lowering::rounds_reductions(plan.recipe, s.dims, real, wide, s.trains) ? real : wide);
    turns_.emplace(s.dims, t_, evaluation_of(t_, s.dims), rank, says_unshard(t_));
    for (int stage = 0; stage < t_.stages(); ++stage)
      for (std::size_t i = 0; t_.has_stage(rank, stage) && i < forms(stage).size(); ++i)
        add(stage, forms(stage)[i]);
  }

  constexpr traffic count() const {
    traffic sent;
    for (int i = t_.begin[rank_]; i < t_.begin[rank_ + 1]; ++i)
      if (const action& a = t_.actions[i]; computes(a.kind)) {
        sent.layers += sent_in(a);
        sent.messages += handed_on(a);
      }
    sent.weights = reshards_after_layer(s_.dims) ? gathered_by_layers() : gathered_by_stages();
    if (s_.trains) sent.gradients = dealt_out() + summed();
    return sent;
  }

 private:
  using phase = lowering::phase;
  /// A layer of the rank.
  struct layer_use {
    int stage, form;
    std::size_t place;
  };
  /// A parameter of the rank, with its stage. Those that layers share are kept once.
  struct tensor {
    const lowering::layer_parameter* as;
    int stage;
  };

  constexpr void add(int stage, int form) {
    const lowering::layer_turns::place at = turns_->next(stage);
    uses_.push_back({stage, form, at.weights});
    const auto gathered = lowering::lay_out(layer(form).parameters);
    for (int g = 0; g < lowering::n_groups; ++g)
      if (lowering::is_shared_out(static_cast<lowering::group>(g), s_.dims))
        turns_->take(at, gathered.size[g], false);
    for (const lowering::layer_parameter& w : layer(form).parameters) {
      if (w.shared) turns_->take(turns_->shared(), lowering::aligned_elements(w.stored()), false);
      const auto is_same = [&](const tensor& t) { return t.as->name == w.name; };
      if (!w.shared) tensors_.push_back({&w, stage});
      else if (std::none_of(shared_.begin(), shared_.end(), is_same)) shared_.push_back({&w, stage});
    }
  }

  constexpr const auto& layer(int form) const { return layers_[static_cast<std::size_t>(form)]; }
  constexpr const std::vector<int>& forms(int stage) const { return forms_[static_cast<std::size_t>(stage)]; }
  constexpr double real_bytes() const { return static_cast<double>(s_.bytes(lowering::element_kind::real)); }

  constexpr static phase phase_of(action_kind k) {
    if (k == action_kind::B) return phase::backward;
    if (k == action_kind::I) return phase::backward_input;
    return k == action_kind::W ? phase::backward_weight : phase::forward;
  }
  constexpr static bool repeats(phase p) { return p == phase::backward || p == phase::backward_input; }
  constexpr static bool sums(action_kind k) { return k == action_kind::B || k == action_kind::W; }

  constexpr double sent_in(const action& a) const {
    double all = 0;
    const phase p = phase_of(a.kind);
    for (int f : forms(a.stage))
      all += sent_of(layer(f), s_, p) + (repeats(p) ? sent_of(layer(f), s_, phase::recompute) : 0);
    return all;
  }

  /// The bytes of an action's result that are sent to another rank.
  constexpr double handed_on(const action& a) const {
    const bool on = a.kind == action_kind::F;
    const int to = a.stage + (on ? 1 : -1);
    if (a.kind == action_kind::W || to < 0 || to >= t_.stages() || t_.rank_of(to, a.microbatch) == rank_)
      return 0;
    return static_cast<double>(layer(forms(on ? to : a.stage).front()).x_bytes);
  }

  /// The number of actions of a stage on the rank whose kind `is` accepts.
  constexpr int count(int stage, auto is) const {
    int n = 0;
    for (int i = t_.begin[rank_]; i < t_.begin[rank_ + 1]; ++i)
      n += t_.actions[i].stage == stage && is(t_.actions[i].kind);
    return n;
  }

  /// The elements of a sharded weight that a rank sends: its shard, to each other rank.
  constexpr static double shares(const lowering::layer_parameter& w) {
    return static_cast<double>(w.shard()) * (w.shards - 1);
  }

  /// All-gathers at each UNSHARD, or once if the table has no UNSHARD. Weights that layers share are gathered
  /// once.
  constexpr double gathered_by_stages() const {
    const auto is_unshard = [](action_kind k) { return k == action_kind::unshard; };
    const bool said = says_unshard(t_);
    double all = 0;
    for (const tensor& t : tensors_) all += shares(*t.as) * (said ? count(t.stage, is_unshard) : 1);
    for (const tensor& t : shared_) all += shares(*t.as);
    return all * real_bytes();
  }

  constexpr double gathered_by_layers() const {
    const std::vector<std::size_t> begins = turns_->weights.begins();
    std::vector<lowering::gather_order::extent> memory;
    std::vector<double> bytes;
    std::vector<int> reads;
    for (const layer_use& use : uses_) {
      bytes.push_back(0);
      for (const lowering::layer_parameter& w : layer(use.form).parameters)
        bytes.back() += shares(w) * real_bytes();
      memory.push_back({begins[use.place], begins[use.place] + turns_->weights.size(use.place)});
    }
    for (int i = t_.begin[rank_]; i < t_.begin[rank_ + 1]; ++i) add_reads(t_.actions[i], bytes, reads);
    double all = 0;
    lowering::gather_order order(std::move(reads), std::move(memory), s_.dims.prefetch);
    while (!order.is_done())
      for (const int layer : order.next()) all += bytes[static_cast<std::size_t>(layer)];
    return all;
  }
  constexpr void add_reads(const action& a, const std::vector<double>& bytes, std::vector<int>& reads) const {
    if (!computes(a.kind)) return;
    const phase p = phase_of(a.kind);
    const std::size_t first = reads.size();
    for (std::size_t u = 0; u < uses_.size(); ++u) {
      const auto& l = layer(uses_[u].form);
      if (uses_[u].stage != a.stage || bytes[u] == 0 || l.calls(p).empty()) continue;
      if (l.uses(p, lowering::space::weight) ||
          (repeats(p) && l.uses(phase::recompute, lowering::space::weight)))
        reads.push_back(static_cast<int>(u));
    }
    if (p != phase::forward) std::reverse(reads.begin() + static_cast<std::ptrdiff_t>(first), reads.end());
  }

  /// Reduce-scatters of the gradients of sharded weights: in each backward, or at each stage's REDUCE_GRAD.
  constexpr double dealt_out() const {
    double all = 0;
    const bool by_layers = reshards_after_layer(s_.dims);
    const auto deals = [&](action_kind k) { return by_layers ? sums(k) : k == action_kind::reduce_grad; };
    for (const layer_use& use : uses_)
      for (const lowering::layer_parameter& w : layer(use.form).parameters)
        if (w.trainable && (by_layers || !w.shared)) all += shares(w) * count(use.stage, deals);
    for (const tensor& t : shared_)
      if (t.as->trainable && !by_layers) all += shares(*t.as);
    return all * sum_bytes_;
  }

  /// Reductions of gradients over ranks that hold the same weights.
  constexpr double summed() const {
    const auto is_reduction = [](action_kind k) { return k == action_kind::reduce_grad; };
    double all = 0;
    for (const tensor& t : tensors_)
      all += summed(t) * (t.as->sum_over_region ? 1 : count(t.stage, is_reduction));
    for (const tensor& t : shared_) all += summed(t);
    return all;
  }
  constexpr double summed(const tensor& t) const {
    if (!t.as->trainable) return 0;
    const auto elements = static_cast<double>(lowering::aligned_elements(t.as->shard()));
    const double wide = elements * static_cast<double>(s_.bytes(lowering::element_kind::wide)),
                 replicas = weight_replicas(s_.dims), region = region_ranks(s_.dims);
    double all = 0;
    if (t.as->sum_over_region) all += 2 * (region - 1) / region * wide;
    if (is_summed_ && !t.as->differs_over_replicas)
      all += 2 * (replicas - 1) / replicas * elements * sum_bytes_;
    return is_tied(t) ? all + wide : all;
  }
  /// True if another pipeline rank also holds the weight.
  constexpr bool is_tied(const tensor& t) const {
    if (t_.bidirectional()) return true;
    if (!t.as->shared) return false;
    for (int stage = 0; stage < t_.stages(); ++stage)
      for (std::size_t i = 0; !t_.has_stage(rank_, stage) && i < forms(stage).size(); ++i)
        for (const lowering::layer_parameter& w : layer(forms(stage)[i]).parameters)
          if (w.shared && w.name == t.as->name) return true;
    return false;
  }

  const action_table& t_;
  const Layers& layers_;
  const std::vector<std::vector<int>> forms_;
  const lowering::layer_setting& s_;
  const int rank_;
  const bool is_summed_;
  double sum_bytes_ = 0;  // bytes of one gradient element in reductions over dp
  std::optional<lowering::layer_turns> turns_;
  std::vector<layer_use> uses_;
  std::vector<tensor> tensors_, shared_;
};

}  // namespace detail

/// The traffic of the ranks of each pipeline coordinate. The plan must break no rule.
/// Shapes: `layers`: each of the plan's forms, lowered.
constexpr std::vector<traffic> traffic_of(const plan_data& plan, const auto& layers,
                                          const lowering::layer_setting& s) {
  std::vector<traffic> all;
  for (int rank = 0; rank < plan.dims.pp; ++rank)
    all.push_back(detail::traffic_counter(plan, layers, s, rank).count());
  return all;
}

}  // namespace rankc::cost_model
