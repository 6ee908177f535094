// SPDX-License-Identifier: Apache-2.0
// The program of all ranks, from the ops of each pipeline rank. Ranks that differ only in dp and tp run the
// same ops. In a large world some ranks stand for all.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// The largest world of which a program has every rank.
constexpr int all_of = 64;

/// True if a program has all ranks along an axis of the dense view. Pipeline ranks differ. Ranks in groups
/// that include cp have chunks of sequences, which are not contiguous. Ranks of ep exchange slots of experts.
bool has_all_along(axis a, const parallel_dims& d) {
  const axis_row& r = row(a);
  if (!spans_region(a) && r.shares != part::sequences) return true;
  const bool is_of_experts = holds_replicas(r) ? spreads_experts_over_replicas(d) : spreads_experts(d);
  const bool joins_cp = holds_replicas(r) ? replicates_over_cp(d) : d.cp_weights == cp_weights::shard;
  return is_of_experts || (r.shares == part::sequences && d.cp > 1 && joins_cp);
}

/// True if a program with all ranks along some axes, and two along each other axis, has this rank.
bool represents(const layout& mesh, const coord& at) {
  return std::all_of(mesh.dense().begin(), mesh.dense().end(), [&](const axis_extent& x) {
    return at[x.axis] < 2 || has_all_along(x.axis, mesh.dims());
  });
}

/// The ranks of a program: all, or those that represent them.
class representatives {
 public:
  explicit representatives(const lowered& l)
      : l_(l), local_(l.plan->dims.world, -1), communicator_(l.communicators.size(), -1) {
    const parallel_dims& d = l.plan->dims;
    for (int r = 0; r < d.world; ++r)
      if (const coord c = layout(d).at(r); d.world <= all_of || represents(layout(d), c)) {
        local_[r] = static_cast<int>(ranks_.size());
        ranks_.push_back(r);
      }
    if (d.world > all_of) {
      check_order();
      check_symmetry();
    }
  }

  const std::vector<int>& ranks() const { return ranks_; }
  bool some_stand_for_all() const { return static_cast<int>(ranks_.size()) < l_.plan->dims.world; }

  /// The axes of the world; empty if the program has all ranks.
  std::vector<listed_axis> mesh() const {
    std::vector<listed_axis> axes;
    if (!some_stand_for_all()) return axes;
    const layout world(l_.plan->dims);
    for (const axis_extent& x : world.dense()) {
      std::set<int> listed;
      for (int r : ranks_) listed.insert(x.index_of(r));
      axes.push_back({std::string(name(x.axis)), x.size, static_cast<int>(listed.size())});
    }
    return axes;
  }
  int local(int rank) const { return local_[rank]; }
  /// Index in the program of a communicator of the plan.
  int communicator(int index) const { return communicator_[index]; }

  /// The communicators that have a representative as a member.
  std::vector<codegen::communicator> communicators() {
    std::vector<codegen::communicator> kept;
    for (std::size_t c = 0; c < l_.communicators.size(); ++c) {
      codegen::communicator here{l_.communicators[c].name, {}, 0, is_on_one_pipeline_rank(c)};
      for (int r : l_.communicators[c].ranks)
        if (local_[r] >= 0) here.ranks.push_back(local_[r]);
      if (here.ranks.empty()) continue;
      if (some_stand_for_all()) here.size = static_cast<int>(l_.communicators[c].ranks.size());
      here.along = axes_left_out(c);
      communicator_[c] = static_cast<int>(kept.size());
      kept.push_back(std::move(here));
    }
    return kept;
  }

 private:
  /// The axes of the mesh along which a communicator has members that are not in the program.
  std::vector<int> axes_left_out(std::size_t index) const {
    const std::vector<listed_axis> axes = mesh();
    const std::vector<int>& ranks = l_.communicators[index].ranks;
    std::vector<int> along;
    const layout world(l_.plan->dims);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const axis_extent& x = world.dense().begin()[i];
      const bool spans = std::any_of(ranks.begin(), ranks.end(),
                                     [&](int r) { return x.index_of(r) != x.index_of(ranks.front()); });
      if (spans && axes[i].listed < axes[i].size) along.push_back(static_cast<int>(i));
    }
    return along;
  }

  /// True if all members are of one pipeline rank. The runtime registers their arenas as one window.
  bool is_on_one_pipeline_rank(std::size_t index) const {
    const layout mesh(l_.plan->dims);
    const std::vector<int>& ranks = l_.communicators[index].ranks;
    return std::all_of(ranks.begin(), ranks.end(),
                       [&](int r) { return mesh.at(r)[axis::pp] == mesh.at(ranks.front())[axis::pp]; });
  }

  /// The positions of a communicator's members relative to the first, in the order of its list: the distance
  /// along each axis, and the pipeline rank.
  std::vector<std::array<int, listed_axes.size()>> shape_of(int index) const {
    const layout mesh(l_.plan->dims);
    const std::vector<int>& ranks = l_.communicators[index].ranks;
    const coord first = mesh.at(ranks.front());
    std::vector<std::array<int, listed_axes.size()>> out;
    for (int member : ranks) {
      const coord c = mesh.at(member);
      int* along = out.emplace_back().data();
      for (const axis_extent& x : mesh.dense())
        *along++ = x.axis == axis::pp ? c[x.axis] : c[x.axis] - first[x.axis];
    }
    return out;
  }

  bool has(int index, int rank) const {
    const std::vector<int>& ranks = l_.communicators[index].ranks;
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }

  /// The rank of the same pipeline coordinate that a rank must be like. If ranks exchange slots of experts,
  /// the program has all ranks of one copy of the experts, and each rank must be like its counterpart in the
  /// first copy.
  int likened(int rank) const {
    const parallel_dims& d = l_.plan->dims;
    const coord at = layout(d).at(rank);
    if (!spreads_experts(d)) return layout(d).flat(coord(along<axis::pp>(at[axis::pp])));
    if (spreads_experts_over_replicas(d)) return rank;
    return rank - at[axis::dp_replicate] * layout(d).dense().find(axis::dp_replicate)->stride;
  }

  /// Checks that members are listed by rank: a member's index is then the index of its shard.
  void check_order() const {
    for (std::size_t c = 0; c < l_.communicators.size(); ++c) {
      const std::vector<int>& ranks = l_.communicators[c].ranks;
      if (is_on_one_pipeline_rank(c) && !std::is_sorted(ranks.begin(), ranks.end()))
        throw std::logic_error(fmt::format(
            "communicator \"{}\" does not list its members in the order of their ranks, so that some ranks "
            "cannot stand for others",
            l_.communicators[c].name));
    }
  }

  /// Checks that a shift along one of these axes maps every rank's communicators to those of another rank,
  /// member by member. A property of the representatives then holds for all ranks.
  void check_symmetry() const {
    const parallel_dims& d = l_.plan->dims;
    for (int r = 0; r < d.world; ++r) {
      const int first = likened(r);
      const pipeline_rank& of_pipeline = l_.ranks[layout(d).at(r)[axis::pp]];
      for (std::size_t k = 0; k < of_pipeline.links.size(); ++k) {
        const int own = l_.communicator_of[r].at(k), of_first = l_.communicator_of[first].at(k);
        const bool is_alike =
            own < 0 ? of_first < 0 : of_first >= 0 && has(own, r) && shape_of(own) == shape_of(of_first);
        if (!is_alike)
          throw std::logic_error(fmt::format(
              "rank {} is not like rank {} in its {} communicator, so that it cannot stand for it", first, r,
              runtime::over_names[static_cast<int>(of_pipeline.links[k].over)]));
      }
    }
  }

  const lowered& l_;
  std::vector<int> ranks_, local_, communicator_;
};

/// The ops of a pipeline rank.
struct flat_rank {
  std::vector<op> ops;
  std::map<int, std::vector<int>> sent, received;
  int values;
};

flat_rank flatten(const lowered& l, const pipeline_rank& r, bool train) {
  const step& s = train ? r.train : r.evaluate;
  flattener f(l, r, s);
  std::vector<op> all{f.begin()};
  std::vector<int> last_op;
  for (const item& i : s.items) {
    std::vector<op> ops = f.flatten(i);
    const int base = static_cast<int>(all.size());
    const auto on_lane = [&](const op& o) { return o.stream == i.on; };
    const int before =
        base - 1 - static_cast<int>(std::find_if(all.rbegin(), all.rend(), on_lane) - all.rbegin());
    for (op& o : ops)
      for (int& w : o.waits) w = w == before_item ? before : base + w;
    for (op& o : ops) {  // ring messages before the first op on the item's lane wait as that op does
      for (int w : i.waits) o.waits.push_back(last_op[w]);
      if (on_lane(o)) break;
    }
    std::move(ops.begin(), ops.end(), std::back_inserter(all));
    last_op.push_back(static_cast<int>(all.size()) - 1);
  }
  all.push_back(f.end(train));
  for (int w : s.end_waits) all.back().waits.push_back(last_op[w]);
  return {std::move(all), f.sent(), f.received(), f.values()};
}

/// Rows of a parameter before those that a rank keeps. `expert_rows`: above 0 for experts.
std::int64_t rows_before(const parallel_dims& d, const coord& at, std::int64_t expert_rows,
                         std::int64_t kept) {
  return expert_rows > 0 ? ep_of(d, at) * expert_rows + expert_shard_of(d, at) * kept
                         : shard_of(d, at) * kept;
}

/// The input of the step that a rank holds.
named_input input_of(const holding& h, const plan_data& plan) {
  if (h.kind == holding_kind::starts) return inputs::starts;
  if (h.kind != holding_kind::input) return inputs::tokens;
  return plan.inputs.at(static_cast<std::size_t>(find_input(plan.inputs, h.name)));
}

/// Sets the rows of an input that a rank holds, from those of the first rank.
void place_input(holding& h, const named_input& of, const plan_data& plan, const coord& at) {
  if (of.extent == input_extent::step) return;
  const parallel_dims& d = plan.dims;
  const bool of_tokens = of.extent == input_extent::token;
  for (std::size_t i = 0; i < h.box.size(); ++i) {
    box_range& b = h.box[i];
    b.first += std::int64_t{dp_of(d, at)} * plan.rows * (of_tokens ? plan.recipe.seq : 1);
    if (of.whole_sequences) continue;
    const bool from_back = of_tokens && i % 2 == 1;  // chunks alternate: front, back
    b.first += (from_back ? -1 : 1) * cp_of(d, at) * b.count;
  }
}

/// Sets the offsets of a rank's shards, from those of rank 1 of the region axis, or of ep.
void place_shards(op& o, const plan_data& plan, const coord& at) {
  const parallel_dims& d = plan.dims;
  for (view& v : o.views)
    v.first = v.first * (std::exchange(v.of_experts, false) ? ep_of(d, at) : at[region_axis]) +
              std::exchange(v.next_first, 0) * (cp_of(d, at) / std::exchange(v.alike, 1));
  for (holding& h : o.holds) {
    if (is_input(h.kind)) {
      place_input(h, input_of(h, plan), plan, at);
      continue;
    }
    for (std::size_t i = 0; i < h.box.size(); ++i) {
      box_range& b = h.box[i];
      if (h.kind == holding_kind::rotary) {
        b.first += (i % 2 == 0 ? 1 : -1) * cp_of(d, at) * b.count;  // chunks alternate: front, back
        continue;
      }
      b.first *= h.expert_rows > 0 ? etp_of(d, at) : at[region_axis];
      if (!h.name.empty() && i == 0) b.first += rows_before(d, at, h.expert_rows, b.count);  // of a parameter
    }
  }
}

program expand_all(const lowered& l, bool train) {
  const parallel_dims& d = l.plan->dims;
  representatives chosen(l);
  const char* step = train ? "train" : "evaluate";
  std::size_t lanes = 0;
  for (const pipeline_rank& r : l.ranks) lanes = std::max(lanes, r.lanes.size());
  program p{std::string(l.plan->name),
            l.hash,
            static_cast<int>(lanes),
            chosen.communicators(),
            {},
            d.world,
            step,
            {l.target == target::host, l.plan->recipe.deterministic},
            chosen.mesh()};

  std::vector<flat_rank> of_rank;
  int stride = 0;
  for (const pipeline_rank& r : l.ranks)
    stride = std::max(stride, of_rank.emplace_back(flatten(l, r, train)).values);
  std::map<int, int> sender;  // the pipeline rank that sends each message
  for (std::size_t r = 0; r < of_rank.size(); ++r)
    for (const auto& [message, values] : of_rank[r].sent) sender[message] = static_cast<int>(r);

  for (int r : chosen.ranks()) {
    const coord at = layout(d).at(r);
    const flat_rank& x = of_rank[at[axis::pp]];
    std::vector<int> name_of(x.values);
    for (int v = 0; v < x.values; ++v) name_of[v] = chosen.local(r) * stride + v;
    for (const auto& [message, values] : x.received) {
      const int from = sender.at(message);
      for (std::size_t part = 0; part < values.size(); ++part)
        name_of[values[part]] =
            chosen.local(rank_at(d, from, at)) * stride + of_rank[from].sent.at(message).at(part);
    }
    rank_program out{x.ops, l.ranks[at[axis::pp]].arena.bytes, r, at[axis::pp]};
    const auto communicator_of = [&](int link, const std::string& what) {
      const int index = l.communicator_of[r].at(static_cast<std::size_t>(link));
      if (index < 0) throw std::logic_error(fmt::format("rank {} has no communicator for \"{}\"", r, what));
      return chosen.communicator(index);
    };
    for (op& o : out.ops) {
      for (access& a : o.reads) a.value = name_of[a.value];
      for (access& a : o.writes) a.value = name_of[a.value];
      place_shards(o, *l.plan, at);
      if (o.communicator < 0) continue;
      o.communicator = communicator_of(o.communicator, o.name);
      if (o.kind != op_kind::collective)
        for (int member : p.communicators[o.communicator].ranks)
          if (member != chosen.local(r)) o.peer = member;
    }
    p.ranks.push_back(std::move(out));
  }
  return p;
}

}  // namespace

program expand_train(const lowered& l) { return expand_all(l, true); }
program expand_evaluate(const lowered& l) { return expand_all(l, false); }

}  // namespace rankc::codegen
