// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/ops/cross_entropy.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/lanes.hpp"
#include "emit.hpp"
#include "rank_text.hpp"
#include "rank_head.hpp"
#include "step_times.hpp"
#include "../passes/input_text.hpp"

namespace rankc::codegen {

namespace {

std::string over(runtime::over o) { return "over::" + std::string(runtime::over_names[static_cast<int>(o)]); }

/// Emits the order of one step of a pipeline rank.
class order_text {
 public:
  order_text(const lowered& l, const pipeline_rank& r, const step& s)
      : l_(l), r_(r), step_(s), scope_(&s == &r.evaluate ? "evaluation::" : "") {
    for (int i = 0; i < static_cast<int>(s.items.size()); ++i) {
      if (is_forward(s.items[i])) last_forward_ = i;
      if (is_backward(s.items[i]) && first_backward_ < 0) first_backward_ = i;
    }
  }

  std::vector<statement> run() {
    add(lanes());
    begin_part();
    for (const item& i : step_.items) {
      paragraph(i);
      for (int w : i.waits) line("wait", {on(i.on), r_.events[step_.items[w].event]});
      issue(i);
      if (i.event >= 0) line("record", {on(i.on), r_.events[i.event]});
    }
    if (!step_.end_waits.empty()) {
      begin_part();
      add("// Nothing is left under way.");
    }
    for (int w : step_.end_waits) line("wait", {on(compute_lane), r_.events[step_.items[w].event]});
    return std::move(out_);
  }

 private:
  const std::string& on(int lane) const { return r_.lanes[static_cast<std::size_t>(lane)].name; }
  std::string lanes() const {
    std::vector<std::string> names;
    for (const lane& each : r_.lanes) names.push_back(each.name);
    return fmt::format("const auto [{}] = r.lanes<{}>();", fmt::join(names, ", "), names.size());
  }

  void add(std::string text) { out_.push_back({std::move(text), std::exchange(begins_part_, false)}); }
  /// Puts a blank line before the next statement.
  void begin_part() { begins_part_ = true; }
  void line(const std::string& function, const std::vector<std::string>& arguments) {
    add(call(function, arguments, 2));
  }
  std::string message(int index) { return fmt::format("{{{}, \"{}\"}}", index, l_.messages[index].name); }

  std::string name(const placed_value& v) { return scope_ + v.name; }

  /// The names, in the text of the order, of the lanes, inputs and values that the layers of a stage use.
  layer_surroundings surroundings(const item& i) {
    const stage_plan& s = r_.stages[i.stage];
    const auto between = [&](kept what, int stage) {
      const placed_value* v = step_.find(what, stage, i.microbatch);
      return v ? name(*v) : "";
    };
    const auto of_microbatch = [&](const std::string& input) {
      return fmt::format("{}_of({})", input, i.microbatch);
    };
    std::vector<std::string> inputs;
    for (const placed_input& each : r_.inputs) {
      const std::string input = text_of_input(each.is).formal;
      inputs.push_back(each.is.computed ? input : of_microbatch(input));
    }
    return {i.on == compute_lane ? on(i.on) : "on",
            &step_ == &r_.train ? "step::train" : "step::evaluate",
            i.on == compute_lane ? "ring" : "on",
            s.name + "::",
            slot_name(i),
            i.on == compute_lane ? "work" : "work_beside",
            std::move(inputs),
            of_microbatch("routers"),
            between(kept::activation, s.stage),
            between(kept::activation, s.stage + 1),
            between(kept::gradient, s.stage + 1),
            between(kept::gradient, s.stage),
            store_of(i.first),
            store_of(i.first_kept)};
  }
  static std::string store_of(bool first) { return first ? "store::overwrite" : "store::add"; }
  /// The name of the slot of a stage whose layers are called one by one.
  std::string slot_name(const item& i) const {
    if (l_.is_sharded() || l_.plan->recipe.counts_labels()) return "s_" + i.name;
    return r_.stages.size() > 1 ? fmt::format("s{}", r_.stages[i.stage].stage) : "s";
  }

  /// Emits the calls of a computation, as they are or on the second stream.
  void compute(const item& i, const std::vector<std::string>& calls) {
    if (i.on == compute_lane) {
      for (const std::string& text : calls) add(text);
      return;
    }
    std::string body;
    for (const std::string& text : calls) body += indented(text, 2) + "\n";
    add(fmt::format("act({}, \"{}\", [](const lane& on) {{\n{}}});", on(i.on), i.name, body));
  }

  void run(int lane, const std::string& kernel, std::vector<std::string> members) {
    members.front() = "run(" + on(lane) + ", " + kernel + "{" + members.front();
    members.back() += "});";
    add(wrap(members, ",", "    ", 2));
  }
  void count_labels(const item& i) {
    const training& by = l_.plan->recipe;
    std::vector<std::string> members{".count = label_count",
                                     fmt::format(".targets = targets_of({})", i.microbatch)};
    if (by.token_weights)
      members.push_back(
          fmt::format(".weights = {}_of({})", text_of_input(inputs::weights).formal, i.microbatch));
    members.push_back(".into = " + store_of(i.first));
    run(i.on, kernels_.at(&ops::count_row(by)), std::move(members));
  }
  void sum(const item& i, const std::string& data, const std::string& call = "all_reduce") {
    run(i.on, call, {".over = " + over(i.over), ".data = " + data, ".site = " + message(i.message)});
  }

  void paragraph(const item& i) {
    head(i);
    if (!is_layer(i) || slot_of_ == i.name || !takes_slot(i.name)) return;
    slot_of_ = i.name;
    const stage_plan& s = r_.stages[i.stage];
    add(fmt::format("constexpr const {}::slot& {} = {}::slots[{}];", s.name, slot_name(i), s.name, i.slot));
  }
  static bool is_layer(const item& i) {
    return i.what == item_kind::forward_layer || i.what == item_kind::backward_layer;
  }
  /// Whether the layers of an action that runs layer by layer use its slot.
  bool takes_slot(const std::string& action) const {
    const auto takes = [&](const item& i) {
      const stage_plan& s = r_.stages[i.stage];
      bool any = false;
      for (const phase p : phases_of(s, i, i.layer))
        for (const actual& a : s.calls[static_cast<int>(p)][i.layer].given) any |= a.from == source::slot;
      return any;
    };
    return std::any_of(step_.items.begin(), step_.items.end(),
                       [&](const item& i) { return i.name == action && is_layer(i) && takes(i); });
  }
  /// Emits a blank line before a new group of lines, and the name of the action for errors and traces.
  void head(const item& i) {
    const bool moves = i.what == item_kind::send || i.what == item_kind::receive;
    if (i.what == item_kind::receive && heading_ != "receive") begin_part();
    if (i.what == item_kind::receive) heading_ = "receive";
    if (moves || i.action == heading_) return;
    if (goes_beside_backward(i)) {
      const std::string& reduced = i.bucket < 0 ? r_.gatherings[i.gathering].name : r_.buckets[i.bucket].name;
      if (reduced != reduced_) add(fmt::format("// {}: {}", i.action, reduced));
      reduced_ = reduced;
      return;
    }
    begin_part();
    part(i);
    heading_ = i.action;
    if (!(r_.overlaps && i.on == overlap_lane)) line("begin", {on(compute_lane), "\"" + i.action + "\""});
  }
  /// Whether the gradients of a layer are reduced while its stage's backward runs. They then stay under the
  /// heading of this backward.
  bool goes_beside_backward(const item& i) const {
    if (i.what != item_kind::reduce && i.what != item_kind::reduce_scatter && i.what != item_kind::add_sums)
      return false;
    const int stage = i.bucket < 0 ? r_.gatherings[i.gathering].stage : r_.buckets[i.bucket].stage;
    return std::any_of(step_.items.begin(), step_.items.end(), [&](const item& other) {
      return other.what == item_kind::backward_layer && other.stage == stage;
    });
  }
  /// The part of the pipeline's step that an item is in; empty if the step has no backward.
  std::string part_at(int item) const {
    if (first_backward_ < 0) return "";
    if (item > last_forward_) return "Cool-down: backwards";
    return item < first_backward_ ? "Warm-up: forwards" : "Steady state";
  }
  void part(const item& i) {
    if (!is_forward(i) && !is_backward(i)) return;
    const std::string now = part_at(static_cast<int>(&i - step_.items.data()));
    if (now != part_ && !now.empty()) add(fmt::format("// ---- {} ----", now));
    part_ = now;
  }
  static bool is_forward(const item& i) {
    return i.what == item_kind::forward || i.what == item_kind::forward_layer;
  }
  static bool is_backward(const item& i) {
    return i.what == item_kind::backward || i.what == item_kind::backward_layer;
  }

  /// The ranges that the norm sums; none if the rank has no parameters.
  std::string squares(const item& i) {
    return r_.squares_of(i.squares).empty() ? "{}" : norm_over_names[static_cast<int>(i.squares)];
  }

  void issue(const item& i) {
    const stage_plan& s = r_.stages[i.stage];
    switch (i.what) {
      case item_kind::receive:
      case item_kind::send: {
        const placed_value& v = step_.values[i.data];
        run(i.on, i.what == item_kind::send ? "send" : "receive",
            {".data = " + name(v), ".site = " + message(i.message)});
        break;
      }
      case item_kind::forward:
      case item_kind::backward: {
        std::vector<std::string> calls;
        const int last = static_cast<int>(s.layers.size()) - 1;
        for (const phase p :
             i.does != phase::forward && repeats_first(l_, s) ? phases_of(s, i, last) : std::vector{i.does})
          calls.push_back(stage_call_text(r_, i, p, surroundings(i)));
        compute(i, calls);
        break;
      }
      case item_kind::gather:
        run(i.on, "gather_shards",
            {".over = " + over(i.over), ".to = gathered",
             std::string(".from = ") + (l_.has_working_copy() ? "working_copy" : "weights"),
             ".of = " + r_.gatherings[i.gathering].id + "_shards", ".site = " + message(i.message)});
        break;
      case item_kind::reduce_scatter:
        run(i.on, name_of_sum(l_, i, "scatter_sums"),
            {".over = " + over(i.over), std::string(".to = ") + (i.first ? "gradients" : "arriving"),
             ".from = full_gradients", ".of = " + sums_name(r_.gatherings[i.gathering]),
             ".site = " + message(i.message) + (i.first ? "" : ", .at = &shard_range::arriving")});
        break;
      case item_kind::add_sums:
        run(i.on, "add_sums",
            {".to = gradients", ".from = arriving", ".of = " + sums_name(r_.gatherings[i.gathering])});
        break;
      case item_kind::forward_layer:
      case item_kind::backward_layer: {
        std::vector<std::string> calls;
        for (const phase p : phases_of(s, i, i.layer))
          if (!l_.bodies[s.layers[i.layer].kind].calls(p).empty())
            calls.push_back(layer_call_text(l_, r_, s, i.layer, p, surroundings(i)));
        compute(i, calls);
        break;
      }
      case item_kind::reduce:
        sum(i, r_.buckets[i.bucket].id + "_gradients", name_of_sum(l_, i, "all_reduce"));
        break;
      case item_kind::reduce_norm:
        sum(i, "norm");
        break;
      case item_kind::clear_loss:
        line("clear<wide>", {on(i.on), "loss.where", "1"});
        break;
      case item_kind::reduce_loss:
        sum(i, "loss");
        break;
      case item_kind::count_labels:
        count_labels(i);
        break;
      case item_kind::reduce_label_count:
        sum(i, "label_count");
        break;
      case item_kind::skip_unlabeled:
        run(i.on, kernels_.at(&ops::skip_unlabeled),
            {".total = norm", ".count = label_count", ".into = store::add"});
        break;
      case item_kind::squares:
        run(i.on, "sum_squares",
            {".total = norm", ".gradients = gradients", ".of = " + squares(i),
             std::string(".into = store::") + (i.first ? "overwrite" : "add")});
        break;
      case item_kind::update:
        run(i.on, std::string(l_.optimizer().name), members_of_update());
        break;
    }
  }

  std::vector<std::string> members_of_update() const {
    const bool trains_all = l_.weight_elements(r_) == r_.trained_elements;
    std::vector<std::string> all{std::string(".weights = ") + (trains_all ? "weights" : "trained_weights"),
                                 ".gradients = gradients"};
    for (const moment& m : l_.plan->recipe.optimizer.moments())
      all.push_back(fmt::format(".{} = {}", m.name, m.name));
    all.insert(all.end(), {".norm = norm", ".of = updates"});
    return all;
  }

  const lowered& l_;
  const pipeline_rank& r_;
  const step& step_;
  const kernel_names kernels_ = name_kernels(l_);
  const std::string scope_;                      // the namespace of the values' names
  int last_forward_ = -1, first_backward_ = -1;  // items
  std::string reduced_;                          // the last gathering or bucket reduced during a backward
  std::string slot_of_;                          // the last action that ran layer by layer
  std::string heading_, part_;
  bool begins_part_ = false;
  std::vector<statement> out_;
};

/// "constexpr numbered_events<0, 16> after_0F{20};": a family of events, which have numbers in a row.
std::string event_array(const families::group& of) {
  std::size_t known = 0;
  while (of.all[known] == nullptr) ++known;
  std::vector<std::string> ranges;
  for (std::size_t d = 0; d < of.count.size(); ++d)
    ranges.push_back(fmt::format("{}, {}", of.first[d], of.count[d]));
  return fmt::format("constexpr numbered_events<{}> {}{{{}}};\n", fmt::join(ranges, ", "), of.name,
                     std::stol(of.all[known]->value) - static_cast<long>(known));
}

/// The events and the quoted texts of a rank.
std::string events_text(const rolled_rank& text) {
  std::vector<std::string> single;
  std::string out;
  for (const families::group& g : text.of.groups_of(text.event_constants)) {
    if (g.count.empty()) single.push_back(fmt::format("{}{{{}}}", g.name, g.all.front()->value));
    else out += event_array(g);
  }
  if (!single.empty()) out = "constexpr event " + wrap(single, ",", "    ") + ";\n" + out;
  out += text.of.declare_texts();
  if (out.empty()) return out;
  out.pop_back();
  return "\n" + out;
}

}  // namespace

std::vector<statement> order_of(const lowered& l, const pipeline_rank& r, const step& s) {
  return order_text(l, r, s).run();
}

std::string emit_pipeline(const lowered& l, const pipeline_rank& r, const rolled_rank& text) {
  std::vector<std::string> actions;
  const action_table& t = l.plan->actions;
  for (int i = t.begin[r.index]; i < t.begin[r.index + 1]; i += t.actions[i].overlaps_next ? 2 : 1)
    actions.push_back(item_token(t, i));
  std::string includes;
  for (const stage_plan& s : r.stages) includes += fmt::format("#include \"{}.hpp\"\n", s.name);
  return fill(templates::program_pipeline_hpp,
              {{"version", version},
               {"plan", std::string(l.plan->name)},
               {"plan_id", identifier(l.plan->name)},
               {"pipeline", std::to_string(r.index)},
               {"pp", std::to_string(l.plan->dims.pp)},
               {"head", rank_head(l, r)},
               {"row", "//   " + wrap(actions, "", "//   ")},
               {"includes", includes},
               {"events", events_text(text)},
               {"train", l.trains() ? function_text(text.train, text.of) : ""},
               {"evaluate", function_text(text.evaluate, text.of)}});
}

}  // namespace rankc::codegen
