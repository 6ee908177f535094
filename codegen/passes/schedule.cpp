// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <rankc/codegen/names.hpp>
#include <rankc/schedule/gather.hpp>

#include "gather_order.hpp"
#include "lanes.hpp"
#include "passes.hpp"
#include "roles.hpp"

namespace rankc::codegen {

namespace {

/// " over dp"
std::string over_axis(axis a) { return std::string(" over ") + role_name(role_over(a)); }

bool sums_gradients(const action& a) { return a.kind == action_kind::B || a.kind == action_kind::W; }

/// Builds the items of one pipeline rank, of a step or of an evaluation.
class builder {
 public:
  builder(lowered& l, pipeline_rank& r, const action_table& t, const communication& c, step& out)
      : l_(l), r_(r), t_(t), communication_(c), step_(out), out_(out.items) {
    make_values(l, r, t, c, out);
    if (l.reshards()) order_.emplace(l, r, t);
  }

  void run() {
    count_labels();
    if (l_.is_sharded() && !l_.reshards()) gather_ahead();
    each_step(
        t_, communication_, r_.index, [&](const message& m) { move(m, false); },
        [&](int i) {
          act(i);
          if (t_.actions[i].overlaps_next) act(i + 1);
        },
        [&](const message& m) { move(m, true); });
    action_ = "loss";
    if (t_.inference) reduce_loss();
  }

 private:
  void issue(item i) {
    i.action = action_;
    out_.push_back(std::move(i));
  }
  int local(int stage) const {
    for (std::size_t i = 0; i < r_.stages.size(); ++i)
      if (r_.stages[i].stage == stage) return static_cast<int>(i);
    return -1;
  }

  item base(int stage, int microbatch, item_kind what) const {
    item i;
    i.what = what;
    i.stage = local(stage);
    i.microbatch = microbatch;
    return i;
  }

  void move(const message& m, bool sending) {
    const action& made = t_.actions[m.producer];
    const action& used = t_.actions[m.consumer];
    item i =
        base((sending ? made : used).stage, made.microbatch, sending ? item_kind::send : item_kind::receive);
    i.on = find_lane(r_.lanes, sending ? m.to : m.from, sending);
    const bool gradient = made.kind != action_kind::F;
    i.name = std::string(gradient ? "B" : "F") + std::to_string(made.microbatch) + ": stage " +
             std::to_string(made.stage) + " -> " + std::to_string(used.stage);
    const placed_value* data = step_.find(gradient ? kept::gradient : kept::activation,
                                          std::max(made.stage, used.stage), made.microbatch);
    i.data = static_cast<int>(data - step_.values.data());
    i.bytes = data->bytes;
    i.message = l_.message(i.name, i.bytes);
    issue(i);
  }

  const action* begin() const { return t_.actions.data() + t_.begin[r_.index]; }
  const action* end() const { return t_.actions.data() + t_.begin[r_.index + 1]; }

  void act(int at) {
    const action& a = t_.actions[at];
    action_ = token(a);
    if (a.kind == action_kind::unshard && l_.is_sharded() && !l_.reshards()) gather(a.stage);
    if (computes(a.kind)) compute(at);
    if (a.kind == action_kind::reduce_grad) finish_gradients(at);
    if (a.kind == action_kind::step && !stepped_) finish_step();
  }

  /// Counts the labels of all microbatches, or sums their weights, over all ranks with tokens of the step, if
  /// the rank's loss needs the number.
  void count_labels() {
    if (!counts_labels()) return;
    action_ = "labels";
    const bool have_weights = l_.plan->recipe.token_weights;
    for (int m = 0; m < t_.microbatches; ++m) {
      item i;
      i.what = item_kind::count_labels;
      i.microbatch = m;
      i.first = m == 0;
      i.name = (have_weights ? "label weights of microbatch " : "labels of microbatch ") + std::to_string(m);
      issue(i);
    }
    for (const runtime::over role : roles_of_tokens(l_.plan->dims))
      sum_scalar(item_kind::reduce_label_count, role,
                 (have_weights ? "sum of label weights over " : "number of labels over ") +
                     std::string(role_name(role)));
  }
  bool counts_labels() const { return r_.reads(inputs::label_count); }
  /// Sums a number over ranks.
  void sum_scalar(item_kind what, runtime::over role, std::string name) {
    item i;
    i.what = what;
    i.on = lane_over(role);
    i.over = role;
    i.name = std::move(name);
    i.message = l_.message(i.name, l_.wide_bytes());
    issue(i);
  }

  /// Gathers the weights of all stages at the start of the step, in the order of the stages' first actions,
  /// if the schedule has no UNSHARD.
  void gather_ahead() {
    if (std::any_of(begin(), end(), [](const action& a) { return a.kind == action_kind::unshard; })) return;
    std::set<int> stages;
    for (const action* a = begin(); a != end(); ++a)
      if (computes(a->kind) && stages.insert(a->stage).second) gather(a->stage);
  }
  /// Gathers the weights of a stage; with the first stage also the weights that layers share.
  void gather(int stage) {
    action_ = token({action_kind::unshard, stage, 0});
    arriving_.insert(stage);
    for (std::size_t g = 0; g < r_.gatherings.size(); ++g)
      if (const gathering& of = r_.gatherings[g];
          of.stage == local(stage) || (of.stage < 0 && !shared_gathered_))
        gather_one(g);
    shared_gathered_ = true;
  }
  void gather_one(std::size_t g) {
    const gathering& of = r_.gatherings[g];
    item i;
    i.what = item_kind::gather;
    i.on = gather_lane(r_.lanes);
    i.over = role_over(of.over);
    i.gathering = static_cast<int>(g);
    i.name = "weights of " + of.name;
    i.bytes = r_.shard_elements(of.parts) * l_.real_bytes();
    i.message = l_.message(i.name, i.bytes);
    issue(i);
  }

  /// Reduce-scatters the gradients of a shard group. A parameter's first result becomes its sum. Each later
  /// result needs an item that adds it to the sum; that item is appended to `to_add`.
  void deal_out(std::size_t g, std::vector<item>& to_add) {
    const gathering& of = r_.gatherings[g];
    if (of.trained.empty()) return;
    item i;
    i.what = item_kind::reduce_scatter;
    i.over = role_over(of.over);
    i.on = lane_over(i.over);
    i.gathering = static_cast<int>(g);
    i.first = dealt_.insert(of.trained.front().parameter).second;
    i.name = "gradients of " + of.name + over_axis(of.over);
    i.bytes = r_.shard_elements(of.trained) * l_.wide_bytes();
    i.message = l_.message(i.name, i.bytes);
    issue(i);
    if (i.first) return;
    i.what = item_kind::add_sums;
    i.on = compute_lane;
    i.name = "gradients of " + of.name;
    i.message = -1;
    to_add.push_back(i);
  }

  /// True if a stage's gradients are reduced as soon as action `at` has run. Each layer's gradients are then
  /// reduced as soon as they are complete. A REDUCE_GRAD of another stage in between may be delayed, unless
  /// the schedule is bidirectional: then the other rank of the stage keeps the order.
  bool reduces_after(int at) const {
    const int stage = t_.actions[at].stage, end = t_.begin[r_.index + 1];
    if (!sums_gradients(t_.actions[at])) return false;
    int next = at + 1;
    if (t_.actions[at].overlaps_next) {
      if (sums_gradients(t_.actions[next]) && t_.actions[next].stage == stage) return false;
      ++next;
    }
    const auto is_reduction = [&] { return next < end && t_.actions[next].kind == action_kind::reduce_grad; };
    while (!t_.bidirectional() && is_reduction() && t_.actions[next].stage != stage) ++next;
    return is_reduction() && t_.actions[next].stage == stage &&
           (l_.is_sharded() || std::any_of(r_.buckets.begin(), r_.buckets.end(),
                                           [&](const bucket& b) { return b.stage == local(stage); }));
  }

  void compute(int at) {
    const action& a = t_.actions[at];
    item i = base(a.stage, a.microbatch, a.kind == action_kind::F ? item_kind::forward : item_kind::backward);
    i.does = phase_of(a.kind);
    i.name = token(a);
    if (a.overlaps_next) i.on = overlap_lane;
    if (a.kind != action_kind::I) i.first = i.first_kept = begun_.insert({a.stage, sums_gradients(a)}).second;
    const bool reduces = reduces_after(at);
    if (reduces || l_.reshards() || arriving_.erase(a.stage) || awaits_label_count(i))
      return by_layers(i, a, reduces);
    recompute(i);
    issue(i);
  }

  /// True if only the last layer of an item waits for the number of labels, which ranks are still summing.
  bool awaits_label_count(const item& i) const {
    return i.what == item_kind::forward && i.first && i.on == compute_lane && r_.stages[i.stage].last &&
           counts_labels() && !roles_of_tokens(l_.plan->dims).empty();
  }

  /// Issues the recomputation of the stage's last layer as a separate item, since it does not wait for the
  /// gradient. On the overlap lane it is part of the backward item.
  void recompute(item i) {
    const stage_plan& s = r_.stages[i.stage];
    const bool goes_back = i.does == phase::backward || i.does == phase::backward_input;
    if (!goes_back || i.on != compute_lane || !repeats_first(l_, s)) return;
    i.does = phase::recompute;
    i.layer = static_cast<int>(s.layers.size()) - 1;
    issue(std::move(i));
  }

  /// Issues an action layer by layer. Each layer waits for its own weights only. Its gradients are reduced
  /// while the next layer runs.
  void by_layers(item i, const action& a, bool reduces) {
    const bool sums = sums_gradients(a), deals = sums && l_.is_sharded() && (l_.reshards() || reduces);
    i.what = i.what == item_kind::forward ? item_kind::forward_layer : item_kind::backward_layer;
    if (sums && l_.reshards()) i.first = true;  // the buffer has held gradients of other layers
    if (reduces) reduced_.insert(a.stage);
    const std::string computed = action_, reduced = token({action_kind::reduce_grad, a.stage, 0});
    std::vector<item> to_add;
    int done = -1;
    const auto finish = [&] {  // the layer before, once its gradients have arrived
      for (const item& each : std::exchange(to_add, {})) issue(each);
      for (std::size_t b = 0; reduces && b < r_.buckets.size(); ++b)
        if (r_.buckets[b].after_layer == done && r_.buckets[b].stage == i.stage) reduce(static_cast<int>(b));
    };
    for (const int layer : layers_in(l_, r_.stages[i.stage], i.does)) {
      action_ = computed;
      i.layer = layer;
      if (order_)
        for (std::size_t g : order_->next(i.stage, layer, i.does)) gather_one(g);
      if (layer + 1 == static_cast<int>(r_.stages[i.stage].layers.size())) recompute(i);
      issue(i);
      if (reduces) action_ = reduced;
      if (l_.reshards() && done >= 0) finish();
      done = layer;
      if (deals)
        for (std::size_t g : gathered_for(r_, i.stage, layer)) deal_out(g, to_add);
      if (!l_.reshards()) finish();
    }
    if (l_.reshards()) finish();
    action_ = computed;
  }

  /// A REDUCE_GRAD: reduces the gradients of its stage, unless they were reduced layer by layer. The rank's
  /// last one also reduces the gradients that belong to no single stage.
  void finish_gradients(int at) {
    const int stage = t_.actions[at].stage, end = t_.begin[r_.index + 1];
    if (!reduced_.count(stage) && !l_.reshards()) deal_out_of(local(stage));
    if (!reduced_.count(stage))
      for (std::size_t b = r_.buckets.size(); b-- > 0;)  // the last layer first, as backward goes
        if (r_.buckets[b].stage == local(stage)) reduce(static_cast<int>(b));
    for (int later = at + 1; later < end; ++later)
      if (t_.actions[later].kind == action_kind::reduce_grad) return;
    if (!l_.reshards()) deal_out_of(-1);
    for (std::size_t b = 0; b < r_.buckets.size(); ++b)
      if (r_.buckets[b].stage < 0) reduce(static_cast<int>(b));
  }
  void deal_out_of(int stage) {
    std::vector<item> none;
    for (std::size_t g = r_.gatherings.size(); g-- > 0;)
      if (r_.gatherings[g].stage == stage) deal_out(g, none);
  }

  void reduce(int b) {
    const bucket& k = r_.buckets[b];
    const auto over = [&](runtime::over group, const std::string& text) {
      item i;
      i.what = item_kind::reduce;
      i.on = lane_over(group);
      i.bucket = b;
      i.over = group;
      i.name = "gradients of " + k.name + text;
      i.bytes = k.count * l_.wide_bytes();
      i.message = l_.message(i.name, i.bytes);
      issue(i);
    };
    if (k.over_region) over(role_over(region_axis), over_axis(region_axis));
    if (k.over_dp) over(role_over(axis::replicas), over_axis(axis::replicas));
    if (k.tied)
      over(runtime::over::tied,
           t_.bidirectional() ? " between the two ranks of a stage" : " between first and last stage");
  }

  /// The rank's first STEP: the loss, the global norm, the optimizer.
  void finish_step() {
    stepped_ = true;
    reduce_loss();
    bool counts = false;  // the norm has begun
    const auto square = [&](norm_over c, const char* name) {
      item i;
      i.what = item_kind::squares;
      i.name = name;
      i.squares = c;
      i.first = !std::exchange(counts, true);
      issue(i);
    };
    const auto sum = [&](axis over) {
      sum_scalar(item_kind::reduce_norm, role_over(over), "gradient norm" + over_axis(over));
    };
    if (!r_.squares_of(norm_over::experts).empty()) {
      square(norm_over::experts, "norm of experts");
      sum(repeats_tokens(l_.plan->dims) ? axis::ep : axis::replicas);
    }
    if (!r_.squares_of(norm_over::region).empty()) square(norm_over::region, "norm of sharded gradients");
    if (counts && region_ranks(l_.plan->dims) > 1) sum(region_axis);
    const bool any = counts || !r_.squares_of(norm_over::nothing).empty();
    if (!r_.squares_of(norm_over::nothing).empty() || !counts)
      square(norm_over::nothing, "norm of whole gradients");
    if (weight_shards(l_.plan->dims) > 1 && any) sum(axis::fsdp);
    skip_unlabeled();
    if (l_.plan->dims.pp > 1) sum(axis::pp);
    if (r_.updates.empty()) return;
    item i;
    i.what = item_kind::update;
    i.name = "optimizer";
    issue(i);
  }

  /// If the step has no labels, or only labels of weight 0, the pipeline rank of the last stage adds minus
  /// infinity to the norm. The sum over pp then makes every rank skip the step.
  void skip_unlabeled() {
    const bool tells = std::any_of(r_.stages.begin(), r_.stages.end(),
                                   [](const stage_plan& s) { return s.last && !s.copy; });
    if (!tells || !counts_labels()) return;
    item i;
    i.what = item_kind::skip_unlabeled;
    i.name = "no labels";
    issue(i);
  }

  bool has_losses(const pipeline_rank& r) const {
    return std::any_of(r.stages.begin(), r.stages.end(), [&](const stage_plan& s) {
      return std::any_of(s.layers.begin(), s.layers.end(), [&](const layer_use& use) {
        return l_.bodies[use.kind].uses(phase::forward, space::loss);
      });
    });
  }

  void reduce_loss() {
    const bool over_pp = l_.sums_losses_over_pp();
    if (!r_.stages.back().last && !over_pp) return;
    if (over_pp && !has_losses(r_)) {
      item none;
      none.what = item_kind::clear_loss;
      none.name = "no loss";
      issue(none);
    }
    const auto over = [&](runtime::over group, const std::string& name) {
      sum_scalar(item_kind::reduce_loss, group, name);
    };
    for (const runtime::over role : roles_of_tokens(l_.plan->dims))
      over(role, std::string("loss over ") + role_name(role));
    if (over_pp) over(role_over(axis::pp), "loss" + over_axis(axis::pp));
    else if (t_.bidirectional()) over(runtime::over::tied, "loss of both directions");
  }

  lowered& l_;
  pipeline_rank& r_;
  const action_table& t_;
  const communication& communication_;
  step& step_;
  std::vector<item>& out_;
  std::set<std::pair<int, bool>> begun_;  // stages that have run forward (false), or summed gradients (true)
  std::set<int> arriving_;                // stages whose weights are being gathered, until their first action
  std::set<int> reduced_;                 // stages whose gradients are reduced layer by layer
  std::optional<layer_gathers> order_;    // set if weights are gathered for each layer
  std::set<int> dealt_;                   // parameters whose gradients have been reduce-scattered
  bool shared_gathered_ = false, stepped_ = false;
  std::string action_;  // the current one
};

}  // namespace

void schedule_items(lowered& l) {
  const action_table &all = l.plan->actions, forwards = evaluation_of(all, l.plan->dims);
  const communication messages = communicate(all, l.plan->expected),
                      forward_messages = communicate(forwards, l.plan->expected);
  for (pipeline_rank& r : l.ranks) {
    if (l.trains()) builder(l, r, all, messages, r.train).run();
    builder(l, r, forwards, forward_messages, r.evaluate).run();
  }
}

}  // namespace rankc::codegen
