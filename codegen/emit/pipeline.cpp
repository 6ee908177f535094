// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/lanes.hpp"
#include "emit.hpp"
#include "step_times.hpp"

namespace rankc::codegen {

namespace {

std::string over(runtime::over o) { return "over::" + std::string(runtime::over_names[static_cast<int>(o)]); }

/// The order of one step of a pipeline rank.
class order_text {
 public:
  order_text(const lowered& l, const pipeline_rank& r, const std::vector<item>& items, const std::vector<int>& end_waits)
      : l_(l), r_(r), items_(items), end_waits_(end_waits) {}

  std::string run() {
    for (const item& i : items_) {
      paragraph(i);
      for (int w : i.waits) line("wait", {on(i.on), r_.events[items_[w].event]});
      statement(i);
      if (i.event >= 0) line("record", {on(i.on), r_.events[i.event]});
    }
    if (!end_waits_.empty()) out_ += "\n// Nothing is left under way.\n";
    for (int w : end_waits_) line("wait", {on(compute_lane), r_.events[items_[w].event]});
    return lanes() + out_;
  }

 private:
  const std::string& on(int lane) const { return r_.lanes[static_cast<std::size_t>(lane)].name; }

  std::string lanes() const {
    std::vector<std::string> names;
    for (const lane& each : r_.lanes) names.push_back(each.name);
    return fmt::format("const auto [{}] = r.lanes<{}>();\n\n", fmt::join(names, ", "), names.size());
  }

  void line(const std::string& function, const std::vector<std::string>& arguments) {
    out_ += call(function, arguments, 2) + "\n";
  }
  std::string message(int index) { return fmt::format("{{{}, \"{}\"}}", index, l_.messages[index].name); }

  std::string size(const item& i) { return i.bytes == r_.arena.boundary_bytes ? "boundary_bytes" : std::to_string(i.bytes); }

  /// What computes, as it is or next to what lane 0 does.
  void compute(const item& i, std::string text) {
    if (i.on != compute_lane) {
      for (std::size_t at = 0; at < text.size() && (at = text.find('\n', at) + 1) < text.size();) text.insert(at, "  ");
      text = fmt::format("act({}, \"{}\", [](const lane& on) {{\n  {}}});\n", on(i.on), i.name, text);
    }
    out_ += text;
  }

  std::string plus(const char* region, std::size_t elements) {
    return elements ? fmt::format("{} + {}", region, elements * l_.wide_bytes()) : region;
  }

  /// A blank line before what begins something, and the name of an action for errors and traces.
  void paragraph(const item& i) {
    const bool sends = i.what == item_kind::send, acts = i.what == item_kind::forward || i.what == item_kind::backward;
    std::string heading;
    if (acts || (i.what == item_kind::backward_layer && heading_ != i.name)) heading = i.name;
    else if (i.what == item_kind::receive) heading = "receive";
    else if (i.what == item_kind::update) heading = "optimizer";
    else if (i.what == item_kind::squares && heading_ != "norm") heading = "norm";
    else if (i.what == item_kind::reduce && heading_ != "reduce" && r_.buckets[i.bucket].after_layer < 0) heading = "reduce";
    else if (i.what == item_kind::reduce_loss) heading = "loss";
    if (heading.empty() || sends) return;
    if (!out_.empty() && !(heading == "receive" && heading_ == "receive")) out_ += "\n";
    heading_ = heading;
    if (heading != "receive" && !(r_.overlaps && i.on == overlap_lane)) line("begin", {on(compute_lane), "\"" + heading + "\""});
    if (i.what == item_kind::backward_layer) {
      const stage_plan& s = r_.stages[i.stage];
      out_ += fmt::format("constexpr {}::slot {} = {}::at_slot(slot_{}[{}]);\n", s.name, slot_name(r_, s), s.name, s.stage, i.slot);
    }
  }

  /// The ranges that are summed; none where the rank has no parameters.
  std::string squares(const item& i) {
    const std::vector<range>& ranges = i.sharded ? r_.squares_sharded : r_.squares_whole;
    return ranges.empty() ? "{}" : i.sharded ? "squares_sharded" : "squares_whole";
  }

  void statement(const item& i) {
    const stage_plan& s = r_.stages[i.stage];
    switch (i.what) {
      case item_kind::receive: {
        const auto at = surroundings_of(r_, i);
        line("receive", {on(i.on), message(i.message), i.backward_traffic ? at.dy : at.x, size(i)});
        break;
      }
      case item_kind::send: {
        const auto at = surroundings_of(r_, i);
        line("send", {on(i.on), message(i.message), i.backward_traffic ? at.dx : at.y, size(i)});
        break;
      }
      case item_kind::forward:
      case item_kind::backward: compute(i, stage_call(l_, r_, i) + "\n"); break;
      case item_kind::backward_layer: {
        std::string text = layer_call(l_, r_, s, i.layer, i.does, surroundings_of(r_, i));
        for (std::size_t at = 0; (at = text.find("\n  ", at)) != text.npos; ++at) text.erase(at + 1, 2);
        compute(i, text.substr(2));
        break;
      }
      case item_kind::reduce: {
        const bucket& b = r_.buckets[i.bucket];
        line("all_reduce<" + wide_name(l_) + ">", {on(i.on), over(i.over), message(i.message),
                                  plus("gradients", b.first), std::to_string(b.count)});
        break;
      }
      case item_kind::squares:
        line("sum_squares<real>", {on(i.on), "norm", "gradients", squares(i), i.first ? "false" : "true"});
        break;
      case item_kind::reduce_norm:
        line("all_reduce<" + wide_name(l_) + ">", {on(i.on), over(i.over), message(i.message), "norm", "1"});
        break;
      case item_kind::reduce_loss:
        line("all_reduce<" + wide_name(l_) + ">", {on(i.on), over(i.over), message(i.message), "loss", "1"});
        break;
      case item_kind::update:
        line("adamw<real>", {on(i.on), "weights", "gradients", "first_moment", "second_moment", "norm", "updates"});
        break;
    }
  }

  const lowered& l_;
  const pipeline_rank& r_;
  const std::vector<item>& items_;
  const std::vector<int>& end_waits_;
  std::string out_, heading_;
};

std::string function(const std::string& head, const std::string& body) {
  std::string out = head + "\n";
  for (std::size_t at = 0, end; at < body.size(); at = end + 1) {
    end = body.find('\n', at);
    out += (end > at ? "  " : "") + body.substr(at, end - at) + "\n";
  }
  return out + "}\n";
}

}  // namespace

std::string emit_pipeline(const lowered& l, const pipeline_rank& r) {
  std::vector<std::string> actions, events;
  const action_table& t = l.plan->actions;
  for (int i = t.begin[r.index]; i < t.begin[r.index + 1]; i += t.actions[i].overlaps_next ? 2 : 1) actions.push_back(item_token(t, i));
  for (std::size_t e = 0; e < r.events.size(); ++e) events.push_back(fmt::format("{}{{{}}}", r.events[e], e));
  std::string includes;
  for (const stage_plan& s : r.stages) includes += fmt::format("#include \"{}.hpp\"\n", s.name);
  return fill(templates::program_pipeline_hpp,
              {{"version", version}, {"plan", l.plan->name}, {"plan_id", identifier(l.plan->name)},
               {"pipeline", std::to_string(r.index)}, {"pp", std::to_string(l.plan->dims.pp)},
               {"row", "//   " + wrap(actions, "", "//   ")}, {"includes", includes},
               {"events", events.empty() ? "" : "\nconstexpr event " + wrap(events, ",", "    ") + ";"},
               {"train", l.trains() ? function("inline void train(rank& r) {", order_text(l, r, r.train, r.train_end_waits).run()) : ""},
               {"evaluate", function("inline void evaluate(rank& r) {", order_text(l, r, r.evaluate, r.evaluate_end_waits).run())}});
}

}  // namespace rankc::codegen
