// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "lanes.hpp"
#include "passes.hpp"
#include "roles.hpp"

namespace rankc::codegen {

namespace {

using clock = std::vector<int>;  // per lane, the last item known to have ended

/// The arena, cut into cells that every access covers wholly or not at all.
class cells {
 public:
  cells(const std::vector<std::vector<op>>& items, int lanes) : lanes_(static_cast<std::size_t>(lanes)) {
    for (const auto& ops : items)
      for (const op& o : ops)
        for (const auto* side : {&o.reads, &o.writes})
          for (const access& a : *side) {
            cuts_.push_back(a.begin);
            cuts_.push_back(a.end);
          }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    writer_.assign(cuts_.size(), -1);
    readers_.assign(cuts_.size() * lanes_, -1);
  }
  struct state {
    int& writer;
    std::span<int> readers;  // by lane
  };
  void each(const access& a, auto visit) {
    for (auto i =
             static_cast<std::size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), a.begin) - cuts_.begin());
         cuts_[i] < a.end; ++i)
      visit(state{writer_[i], std::span(readers_).subspan(i * lanes_, lanes_)});
  }

 private:
  std::vector<std::size_t> cuts_;
  std::size_t lanes_;
  std::vector<int> writer_, readers_;  // (cells), (cells, lanes)
};

/// "x_1F0_received", "after_1F0", "layers_3_over_dp".
std::string event_name(const item& i, const pipeline_rank& r, const step& s) {
  const auto layer = [&](int n) { return r.stages[i.stage].layers[n].id; };
  switch (i.what) {
    case item_kind::receive:
      return s.values[i.data].name + "_received";
    case item_kind::send:
      return s.values[i.data].name + "_sent";
    case item_kind::forward:
    case item_kind::backward:
      return (i.does == phase::recompute ? "before_" : "after_") + i.name;
    case item_kind::forward_layer:
    case item_kind::backward_layer:
      return "after_" + i.name + "_" + layer(i.layer);
    case item_kind::gather:
      return r.gatherings[i.gathering].id + "_gathered";
    case item_kind::reduce_scatter:
      return r.gatherings[i.gathering].id + "_over_" + role_name(i.over);
    case item_kind::add_sums:
      return r.gatherings[i.gathering].id + "_added";
    case item_kind::reduce:
      return r.buckets[i.bucket].id + "_over_" + role_name(i.over);
    case item_kind::reduce_loss:
      return "loss_over_" + std::string(role_name(i.over));
    case item_kind::count_labels:
      return "labels_counted";
    case item_kind::reduce_label_count:
      return "label_count_over_" + std::string(role_name(i.over));
    default:
      return "norm_ready";
  }
}

/// For each lane, the last item that an item must follow. Such items wrote the bytes that its ops access, or
/// read the bytes that its ops write.
clock needed_by(const std::vector<op>& ops, cells& memory, const std::vector<item>& items, clock need) {
  const auto after = [&](int item_index) {
    if (item_index < 0) return;
    const int its = items[item_index].on;
    need[its] = std::max(need[its], item_index);
  };
  for (const op& o : ops) {
    for (const access& a : o.reads) memory.each(a, [&](cells::state c) { after(c.writer); });
    for (const access& a : o.writes)
      memory.each(a, [&](cells::state c) {
        after(c.writer);
        for (int reader : c.readers) after(reader);
      });
  }
  return need;
}

/// Records the accesses of an item's ops.
void touch(const std::vector<op>& ops, cells& memory, int item_index, int on) {
  for (const op& o : ops) {
    for (const access& a : o.reads) memory.each(a, [&](cells::state c) { c.readers[on] = item_index; });
    for (const access& a : o.writes)
      memory.each(a, [&](cells::state c) {
        c.writer = item_index;
        std::fill(c.readers.begin(), c.readers.end(), -1);
      });
  }
}

void order(const lowered& l, pipeline_rank& r, step& s, bool train) {
  std::vector<item>& items = s.items;
  flattener f(l, r, s);
  std::vector<std::vector<op>> ops;
  f.begin();
  for (const item& i : items) ops.push_back(f.flatten(i));
  ops.push_back({f.end(train)});
  const int lanes = static_cast<int>(r.lanes.size());
  cells memory(ops, lanes);

  const clock none(r.lanes.size(), -1);
  std::vector<clock> ended(ops.size()), at(r.lanes.size(), none);
  clock last = none;

  std::vector<int>& end_waits = s.end_waits;
  for (std::size_t n = 0; n < ops.size(); ++n) {
    const bool is_end = n == items.size();
    const int on = is_end ? compute_lane : items[n].on;
    const clock need = is_end ? last : needed_by(ops[n], memory, items, none);  // the end follows every lane

    // The latest item first: waiting for it implies the items that it has waited for.
    clock& known = at[on];
    std::vector<int> candidates(need.begin(), need.end());
    std::sort(candidates.rbegin(), candidates.rend());
    for (int w : candidates) {
      if (w < 0) continue;
      const int its = items[w].on;
      if (its == on || known[its] >= w) continue;
      (is_end ? end_waits : items[n].waits).push_back(w);
      for (int i = 0; i < lanes; ++i) known[i] = std::max(known[i], ended[w][i]);
    }
    if (is_end) break;
    known[on] = static_cast<int>(n);
    last[on] = static_cast<int>(n);
    ended[n] = known;
    touch(ops[n], memory, static_cast<int>(n), on);
  }
}

/// Visits each item of a step that an item or the end waits for, in the order of the waits.
void each_awaited(step& s, auto visit) {
  for (const item& i : s.items)
    for (int w : i.waits) visit(s.items[w]);
  for (int w : s.end_waits) visit(s.items[w]);
}

/// The event names of items in several actions.
std::set<std::string> repeated_names(pipeline_rank& r) {
  std::set<std::string> repeated;
  for (step* s : {&r.train, &r.evaluate}) {
    std::map<std::string, std::string> action_of;
    each_awaited(*s, [&](const item& i) {
      const std::string name = event_name(i, r, *s);
      if (action_of.emplace(name, i.action).first->second != i.action) repeated.insert(name);
    });
  }
  return repeated;
}

/// Gives each awaited item a separate event. The names of `repeated` events end with their action. Items with
/// the same event name get numbered events.
void record_events(pipeline_rank& r, step& s, const std::set<std::string>& repeated) {
  std::set<int> used;
  std::map<std::string, int> index_of, last_of;  // events by name; how often a name was used
  for (const std::string& name : r.events) index_of.emplace(name, static_cast<int>(index_of.size()));
  each_awaited(s, [&](item& i) {
    if (i.event >= 0) return;
    std::string base = event_name(i, r, s);
    if (repeated.contains(base)) base += "_in_" + i.action;
    while (i.event < 0) {
      const int n = ++last_of[base];
      const std::string name = n == 1 ? base : base + "_" + std::to_string(n);
      const auto [known, is_new] = index_of.emplace(name, static_cast<int>(r.events.size()));
      if (is_new) r.events.push_back(name);
      if (used.insert(known->second).second) i.event = known->second;
    }
  });
}

}  // namespace

void order_streams(lowered& l) {
  for (pipeline_rank& r : l.ranks) {
    for (step* s : {&r.train, &r.evaluate}) order(l, r, *s, s == &r.train);
    const std::set<std::string> repeated = repeated_names(r);
    for (step* s : {&r.train, &r.evaluate}) record_events(r, *s, repeated);
  }
}

}  // namespace rankc::codegen
