// SPDX-License-Identifier: Apache-2.0
#include "communications.hpp"

#include <algorithm>
#include <tuple>

#include "../passes/passes.hpp"

namespace rankc::codegen {

namespace {

constexpr std::string_view forward = "forward", backward = "backward", at_end = "step";

std::size_t bytes_of(element_type t) {
  constexpr std::size_t bytes[]{1, 4, 2, 4, 8};
  return bytes[static_cast<int>(t)];
}

/// What users call the axis; of pairs that hold the same weights, that.
std::string_view axis_name(runtime::over o) {
  switch (o) {
    case runtime::over::tp:
      return "tp";
    case runtime::over::dp:
      return "dp_replicate";
    case runtime::over::shard:
      return "dp_shard";
    case runtime::over::tied:
      return "tied";
    case runtime::over::pp:
    case runtime::over::peer:
      break;
  }
  return "pp";
}

/// The phase that an item is of. Weights that layers take turns to gather are of the phase of the next layer.
std::string_view phase_of(const lowered& l, const step& s, std::size_t index) {
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
    case item_kind::gather:
      return l.reshards() ? phase_of(l, s, index + 1) : forward;
    default:
      return at_end;
  }
}

std::string_view kind_of(const op& o) {
  return o.kind == op_kind::send      ? "send"
         : o.kind == op_kind::receive ? "receive"
                                      : collective_kind_names[static_cast<int>(o.does)];
}

/// Elements of the whole tensor, of which a rank gives an all_gather, or gets of a reduce_scatter, a part.
std::size_t elements_of(const op& o, element_type type, int ranks) {
  const bool in_parts = o.does == collective_kind::all_gather || o.does == collective_kind::reduce_scatter;
  return o.bytes / bytes_of(type) * (o.kind == op_kind::collective && in_parts ? static_cast<std::size_t>(ranks) : 1);
}

}  // namespace

double communications::sent() const {
  if (kind == "receive") return 0;
  const double bytes = static_cast<double>(elements) * static_cast<double>(bytes_of(type));
  if (kind == "send") return bytes;
  return (kind.starts_with("all_reduce") ? 2 : 1) * (ranks - 1) * bytes / ranks;
}

std::vector<communications> count_communications(const lowered& l, const pipeline_rank& r) {
  const step& s = l.trains() ? r.train : r.evaluate;
  const std::vector<int>& groups = l.communicator_of[static_cast<std::size_t>(rank_at(l.plan->dims, r.index, {}))];
  std::vector<communications> all;
  flattener f(l, r, s);
  f.begin();
  for (std::size_t i = 0; i < s.items.size(); ++i) {
    const bool go_together = s.items[i].what == item_kind::gather || s.items[i].what == item_kind::reduce_scatter;
    bool counted = false;
    for (const op& o : f.flatten(s.items[i])) {
      if (o.communicator < 0) continue;
      const auto link = static_cast<std::size_t>(o.communicator);
      const element_type type = (o.reads.empty() ? o.writes : o.reads).front().type;
      communications one{
          .phase = phase_of(l, s, i), .kind = kind_of(o), .axis = axis_name(r.links[link].over), .type = type};
      one.ranks = l.communicators[static_cast<std::size_t>(groups[link])].members();
      const auto same = [&](const communications& c) {
        return std::tie(c.phase, c.kind, c.axis, c.type, c.ranks) ==
               std::tie(one.phase, one.kind, one.axis, one.type, one.ranks);
      };
      auto at = std::find_if(all.begin(), all.end(), same);
      if (at == all.end()) at = all.insert(all.end(), one);
      at->count += !(go_together && counted);
      ++at->tensors;
      at->elements += static_cast<std::int64_t>(elements_of(o, type, one.ranks));
      counted = true;
    }
  }
  const auto order = [](const communications& c) {
    return std::tuple(c.phase == forward ? 0 : c.phase == backward ? 1 : 2, c.axis, c.kind);
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return all;
}

}  // namespace rankc::codegen
