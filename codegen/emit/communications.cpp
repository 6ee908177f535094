// SPDX-License-Identifier: Apache-2.0
#include "communications.hpp"

#include <rankc/ops/table.hpp>

#include <algorithm>
#include <tuple>

#include "../passes/lanes.hpp"
#include "../passes/passes.hpp"
#include "../passes/roles.hpp"
#include "emit.hpp"
#include "item_nodes.hpp"

namespace rankc::codegen {

namespace {

constexpr std::string_view forward = "forward", backward = "backward", at_end = "step";

/// The user's name of the axis; "tied" for pairs that hold the same weights.
std::string_view axis_name(runtime::over o) {
  switch (o) {
    case runtime::over::tp:
      return "tp";
    case runtime::over::dp:
      return "dp_replicate";
    case runtime::over::shard:
      return "dp_shard";
    case runtime::over::cp:
      return "cp";
    case runtime::over::ulysses:
      return "ulysses";
    case runtime::over::ep:
      return "ep";
    case runtime::over::etp:
      return "etp";
    case runtime::over::efsdp:
      return "efsdp";
    case runtime::over::tied:
      return "tied";
    case runtime::over::pp:
    case runtime::over::peer:
      break;
  }
  return "pp";
}

/// True if an item computes an action of a stage and reads the weights of `layer`; -1: any action of the
/// stage.
bool reads_weights(const lowered& l, const pipeline_rank& r, const item& i, int stage, int layer) {
  const bool computes = i.what == item_kind::forward || i.what == item_kind::forward_layer ||
                        i.what == item_kind::backward || i.what == item_kind::backward_layer;
  if (!computes || i.stage != stage || (layer >= 0 && i.layer >= 0 && i.layer != layer)) return false;
  if (layer < 0) return true;
  const stage_plan& s = r.stages[static_cast<std::size_t>(stage)];
  const body& b = l.bodies[static_cast<std::size_t>(s.layers[static_cast<std::size_t>(layer)].kind)];
  const std::vector<phase> phases = phases_of(s, i, layer);
  return std::any_of(phases.begin(), phases.end(), [&](phase p) { return b.uses(p, space::weight); });
}

/// The phase of an item. A gather for a layer belongs to the action that reads it, a gather for a stage to
/// the stage's next action.
std::string_view phase_of(const lowered& l, const pipeline_rank& r, const step& s, std::size_t index) {
  const item& i = s.items[index];
  switch (i.what) {
    case item_kind::forward:
    case item_kind::forward_layer:
      return forward;
    case item_kind::backward:
    case item_kind::backward_layer:
    case item_kind::reduce_scatter:
    case item_kind::reduce:
      return backward;
    case item_kind::send:
    case item_kind::receive:
      return s.values[static_cast<std::size_t>(i.data)].what == kept::gradient ? backward : forward;
    case item_kind::gather: {
      const gathering& of = r.gatherings[static_cast<std::size_t>(i.gathering)];
      for (std::size_t later = index + 1; of.stage >= 0 && later < s.items.size(); ++later)
        if (reads_weights(l, r, s.items[later], of.stage, l.reshards() ? of.layer : -1))
          return phase_of(l, r, s, later);
      return forward;
    }
    default:
      return at_end;
  }
}

/// A tensor that a rank communicates.
struct transfer {
  std::string_view kind;
  runtime::over over;
  bool is_wide = false, rounds = false;
  std::size_t bytes = 0;  // the rank's shard: input of an all_gather, output of a reduce_scatter
  int on = -1;            // a lane other than the item's
  bool is_index = false;
};

/// Visits the tensors that an item communicates, in order.
void each_part(const lowered& l, const pipeline_rank& r, const item& i, auto visit) {
  const auto of_shards = [&](std::string_view kind, const std::vector<gathering::part>& all, bool is_wide) {
    for (const gathering::part& p : all) {
      const std::size_t elements = r.parameters[static_cast<std::size_t>(p.parameter)].as.shard();
      visit(transfer{kind, i.over, is_wide, l.rounds(i),
                     elements * (is_wide ? l.wide_bytes() : l.real_bytes())});
    }
  };
  switch (i.what) {
    case item_kind::forward:
    case item_kind::backward:
    case item_kind::forward_layer:
    case item_kind::backward_layer:
      each_node(l, r, i, [&](const body& b, const layer_call&, const node& n) {
        if (n.row->communicates())
          visit(transfer{n.row->name, role_over(n.over), n.wide, false, b.message_bytes(n),
                         lane_of(r.lanes, n, i.on), n.row->converts >= conversion::share_offsets});
      });
      break;
    case item_kind::gather:
      of_shards("all_gather", r.gatherings[static_cast<std::size_t>(i.gathering)].parts, false);
      break;
    case item_kind::reduce_scatter:
      of_shards("reduce_scatter", r.gatherings[static_cast<std::size_t>(i.gathering)].trained, true);
      break;
    case item_kind::send:
      visit(transfer{"send", runtime::over::peer, false, false, i.bytes});
      break;
    case item_kind::receive:
      visit(transfer{"receive", runtime::over::peer, false, false, i.bytes});
      break;
    case item_kind::reduce:
    case item_kind::reduce_norm:
    case item_kind::reduce_loss:
    case item_kind::reduce_label_count:
      visit(transfer{"all_reduce", i.over, true, l.rounds(i),
                     l.messages[static_cast<std::size_t>(i.message)].bytes});
      break;
    default:
      break;
  }
}

}  // namespace

std::string communications::type_name() const { return is_index ? "i32" : name_of(type); }

double communications::sent() const {
  if (kind == "receive") return 0;
  const double bytes = static_cast<double>(elements) *
                       static_cast<double>(is_index ? sizeof(std::int32_t) : runtime::size_of(type));
  if (kind == "send" || kind.starts_with("shift")) return bytes;
  return (kind.starts_with("all_reduce") ? 2 : 1) * (ranks - 1) * bytes / ranks;
}

/// The position of a phase in a step.
static int order_of(std::string_view phase) {
  if (phase == forward) return 0;
  return phase == backward ? 1 : 2;
}

std::vector<communications> count_communications(const lowered& l, const pipeline_rank& r) {
  const step& s = l.trains() ? r.train : r.evaluate;
  const std::vector<int>& groups =
      l.communicator_of[static_cast<std::size_t>(rank_at(l.plan->dims, r.index, {}))];
  std::vector<communications> all;
  for (std::size_t i = 0; i < s.items.size(); ++i) {
    const item& issued = s.items[i];
    const bool go_together = issued.what == item_kind::gather || issued.what == item_kind::reduce_scatter;
    bool counted = false;
    each_part(l, r, issued, [&](const transfer& p) {
      const auto link = static_cast<std::size_t>(find_link(r, p.on < 0 ? issued.on : p.on, p.over));
      communications one{.phase = phase_of(l, r, s, i), .kind = p.kind, .axis = axis_name(p.over)};
      const dtype kept = p.is_wide && l.type == dtype::bf16 ? dtype::f32 : l.type;
      one.type = p.rounds ? dtype::bf16 : kept;
      one.is_index = p.is_index;
      one.ranks = l.communicators[static_cast<std::size_t>(groups[link])].members();
      const auto same = [&](const communications& c) {
        return std::tie(c.phase, c.kind, c.axis, c.type, c.is_index, c.ranks) ==
               std::tie(one.phase, one.kind, one.axis, one.type, one.is_index, one.ranks);
      };
      auto at = std::find_if(all.begin(), all.end(), same);
      if (at == all.end()) at = all.insert(all.end(), one);
      const bool in_parts =
          p.kind == "all_gather" || p.kind == "reduce_scatter" || p.over == runtime::over::etp;
      at->count += !(go_together && counted);
      ++at->tensors;
      at->elements +=
          static_cast<std::int64_t>(p.bytes / (p.is_index ? sizeof(std::int32_t) : runtime::size_of(kept))) *
          (in_parts ? one.ranks : 1);
      counted = true;
    });
  }
  const auto order = [](const communications& c) { return std::tuple(order_of(c.phase), c.axis, c.kind); };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return all;
}

}  // namespace rankc::codegen
