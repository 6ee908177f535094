// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/codegen/names.hpp>

#include "listing.hpp"
#include "input_text.hpp"
#include "roles.hpp"

namespace rankc::codegen {

std::string scaling_words(const rope_scaling& s) {
  std::string words;
  if (s.share != 1) words = fmt::format(", for {} of a head", s.share);
  if (s.by == rope_scaling::none) return words;
  words += fmt::format(", slowed by {} of factor {}", name_of(s.by), s.factor);
  if (s.has_bounds())
    words += fmt::format(" between {} and {} turns in {} positions", s.low_freq_factor, s.high_freq_factor,
                         s.original_positions);
  return words;
}

namespace {

/// The words for kept values of a microbatch.
constexpr const char* words[]{"saved",      "output",   "gradient of the output",
                              "activation", "gradient", "halves of backward"};
const char* word(kept k) { return words[static_cast<int>(k)]; }

class rank_lister {
 public:
  rank_lister(const lowered& l, const pipeline_rank& r, listing& out) : l_(l), r_(r), out_(out) {}

  void run() {
    add("stages", [&] { stages(); });
    add("parameters", [&] { parameters(); });
    add("buckets", [&] { buckets(); });
    add("norm and update", [&] { ranges(); });
    add("lanes", [&] { lanes(); });
    add("calls", [&] { calls(); });
    for (const step* s : {&r_.train, &r_.evaluate}) {
      const std::string of = s == &r_.train ? "train" : "evaluate";
      add(of + " values", [&] { values(*s); });
      add(of + " items", [&] { items(*s); });
      if (r_.arena.bytes) add(of + " places", [&] { places(*s); });
    }
    add("pools", [&] { pools(); });
    if (r_.arena.bytes) add("arena", [&] { arena(); });
  }

 private:
  void add(const std::string& title, auto fill) {
    out_.push_back({fmt::format("pipeline rank {}: {}", r_.index, title), {}});
    fill();
  }
  template <class... T>
  void put(fmt::format_string<T...> text, T&&... with) {
    out_.back().lines.push_back(fmt::format(text, std::forward<T>(with)...));
  }

  void stages() {
    for (const stage_plan& s : r_.stages) {
      std::vector<std::string> layers;
      for (const layer_use& use : s.layers) layers.push_back(use.name);
      put("{}{}: {}", s.name, s.copy ? ", its second holder" : "", fmt::join(layers, " "));
    }
  }
  void parameters() {
    for (const placed_parameter& p : r_.parameters) {
      std::string notes;
      for (int d = 0; d < p.as.ndim; ++d)
        for (axis a : axes)
          if (p.as.shards_of_dim[d].over.has(a))
            notes += fmt::format(", dim {} sharded over {}", d, rankc::name(a));
      if (l_.is_sharded()) notes += fmt::format(", rows in shards of {}", p.as.shard_rows);
      if (p.copy) notes += ", copy";
      put("{:>10} {:<24} {} x {}{}", p.element, p.name, p.as.rows, p.as.cols, notes);
    }
    if (r_.trained_elements != r_.parameter_elements) put("{:>10} elements are trained", r_.trained_elements);
    if (r_.parameter_elements) put("{:>10} elements", r_.parameter_elements);
  }
  void buckets() {
    for (const bucket& b : r_.buckets)
      put("{}: elements {} + {}{}{}{}", b.name, b.first, b.count,
          b.over_region ? ", sum over " + std::string(rankc::name(region_axis)) : "",
          b.over_dp ? ", sum over dp" : "", b.tied ? ", sum with its copy" : "");
  }
  void ranges() {
    const auto list = [&](const char* what, const std::vector<range>& of) {
      for (const range& x : of)
        put("{}: elements {} + {}{}", what, x.first, x.count, x.decay ? ", with decay" : "");
    };
    list("norm of experts", r_.squares_of(norm_over::experts));
    list("norm of sharded gradients", r_.squares_of(norm_over::region));
    list("norm of whole gradients", r_.squares_of(norm_over::nothing));
    list("optimizer", r_.updates);
  }
  void lanes() {
    for (const lane& each : r_.lanes)
      if (each.peer < 0) put("{}", each.name);
      else put("{}, {} pipeline rank {}", each.name, each.sends ? "to" : "from", each.peer);
    for (const lane_link& k : r_.links)
      put("{} communicates over {}", r_.lanes[k.lane].name, role_name(k.over));
  }

  // ---- calls of layers
  void calls() {
    for (const placed_input& i : r_.inputs)
      if (i.read) put("reads {}", text_of_input(i.is).read);
    for (const placed_rope& rope : r_.arena.ropes)
      put("rotary table: {} positions, dim {}, theta {}{}", rope.as.positions, rope.as.dim, rope.as.theta,
          scaling_words(rope.as.scaling));
    for (const stage_plan& s : r_.stages) {
      for (const stage_plan::member& m : s.members)
        put("{} keeps of a microbatch: {} of {}", s.name, word(m.what), s.layers[m.layer].name);
      for (int p = 0; p < n_phases; ++p)
        for (const layer_call& c : s.calls[p])
          if (!l_.bodies[s.layers[c.layer].kind].calls(static_cast<phase>(p)).empty())
            put("{}", call(s, p, c));
    }
  }
  std::string call(const stage_plan& s, int p, const layer_call& c) {
    std::vector<std::string> given;
    for (const actual& a : c.given) given.push_back(given_as(s, a));
    return fmt::format("{} {}: {}({})", s.name, phase_names[p], s.layers[c.layer].name,
                       fmt::join(given, ", "));
  }
  std::string given_as(const stage_plan& s, const actual& a) const {
    constexpr const char* formals[]{"during",
                                    "beside",
                                    "weights",
                                    "gradients",
                                    "saved",
                                    "halfway",
                                    "work",
                                    "rope",
                                    "",
                                    "x",
                                    "y",
                                    "loss",
                                    "routers",
                                    "dy",
                                    "dx",
                                    "accumulate",
                                    "accumulate_apart"};
    const std::string as = a.as == formal::input
                               ? text_of_input(r_.inputs[static_cast<std::size_t>(a.index)].is).formal
                               : formals[static_cast<int>(a.as)];
    switch (a.from) {
      case source::slot:
        return fmt::format("{}: {} of {}", as, word(a.what), s.layers[a.index].name);
      case source::boundary:
        return fmt::format("{}: {} the stage", as, a.index ? "after" : "before");
      case source::chain:
        return fmt::format("{}: chain {}", as, a.index);
      case source::adds:
      case source::adds_kept:
        return as + ": after the first microbatch";
      case source::always:
        return as + ": always";
      case source::parameters:
      case source::rank:
        return a.as == formal::rope ? fmt::format("{} {}", as, a.index) : as;
    }
    return as;
  }

  // ---- values and items of a step
  std::string name(const placed_value& v) const {
    if (!v.name.empty()) return v.name;
    const auto s = std::find_if(r_.stages.begin(), r_.stages.end(),
                                [&](const stage_plan& each) { return each.stage == v.stage; });
    return fmt::format("{} of {}, microbatch {}", word(v.what), s->layers[v.layer].name, v.microbatch);
  }
  void values(const step& s) {
    for (const placed_value& v : s.values) put("{}: {}, {} bytes", name(v), v.lives, v.bytes);
  }
  void items(const step& s) {
    for (const item& i : s.items) {
      const std::string& on = r_.lanes[i.on].name;
      for (int w : i.waits) put("{:<10}   waits for {}", on, r_.events[s.items[w].event]);
      put("{:<10} {}{}", on, text_of(i),
          i.action.empty() || i.action == i.name ? "" : fmt::format(", in {}", i.action));
      if (i.event >= 0) put("{:<10}   records {}", on, r_.events[i.event]);
    }
    for (int w : s.end_waits) put("the end waits for {}", r_.events[s.items[w].event]);
  }
  std::string text_of(const item& i) const {
    constexpr const char* kinds[]{"receive ", "send ", "gather "};
    if (i.does == phase::recompute)
      return fmt::format("{}, what {} repeats", i.name, r_.stages[i.stage].layers[i.layer].name);
    if (i.what == item_kind::forward_layer || i.what == item_kind::backward_layer)
      return fmt::format("{}, {}", i.name, r_.stages[i.stage].layers[i.layer].name);
    return (i.what <= item_kind::gather ? kinds[static_cast<int>(i.what)] : "") + i.name;
  }
  void places(const step& s) {
    for (const placed_value& v : s.values) put("{}: at {}", name(v), v.where);
    for (const item& i : s.items)
      if (i.slot >= 0) put("{}: slot {} of {}", text_of(i), i.slot, r_.stages[i.stage].name);
  }

  void pools() {
    for (const pool& p : r_.arena.pools)
      put("{}, {} bytes each", kept_names[static_cast<int>(p.what)], p.unit);
  }
  void arena() {
    const arena_plan& a = r_.arena;
    const auto at = [&](std::string_view what, std::size_t where, std::size_t bytes) {
      if (bytes) put("{:>12} {}, {} bytes", where, what, bytes);
    };
    const optimizer_state kept = l_.state();
    const std::size_t n = r_.trained_elements;
    at("weights", a.weights, l_.weight_elements(r_) * kept.weight);
    at("gradients", a.gradients, l_.trains() ? n * l_.wide_bytes() : 0);
    at("first moments", a.first_moment, kept.moments > 0 ? n * kept.moment : 0);
    at("second moments", a.second_moment, kept.moments > 1 ? n * kept.moment : 0);
    at("working copy", a.working_copy, kept.working_copy ? r_.parameter_elements * l_.real_bytes() : 0);
    for (const placed_rope& rope : a.ropes) at("rotary table", rope.where, rope.bytes);
    for (const placed_input& i : r_.inputs)
      at(text_of_input(i.is).formal, i.where,
         i.read ? bytes_in_step(*l_.plan, i.is, l_.real_bytes(), l_.wide_bytes()) : 0);
    at("routers", a.routers, a.routers_bytes * static_cast<std::size_t>(l_.plan->actions.microbatches));
    at("loss", a.loss, l_.wide_bytes());
    at("norm", a.norm, l_.trains() ? l_.wide_bytes() : 0);
    for (const pool& p : a.pools)
      put("{:>12} {}, {} of {} bytes", p.where, kept_names[static_cast<int>(p.what)], p.count, p.unit);
    for (int c = 0; c < a.chains; ++c) at("chain", a.chain[c], a.chain_bytes);
    at("work", a.work, a.work_bytes);
    at("work beside", a.work_beside, a.work_beside_bytes);
    put("{:>12} bytes", a.bytes);
  }

  const lowered& l_;
  const pipeline_rank& r_;
  listing& out_;
};

std::string text_of(const std::vector<access>& accesses) {
  std::vector<std::string> all;
  for (const access& a : accesses)
    all.push_back(fmt::format("v{} {} + {}", a.value, a.begin, a.end - a.begin));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

listing list_ranks(const lowered& l) {
  listing all{{"messages", {}}, {"communicators", {}}};
  for (std::size_t m = 0; m < l.messages.size(); ++m)
    all[0].lines.push_back(fmt::format("{}: {}, {} bytes", m, l.messages[m].name, l.messages[m].bytes));
  for (const communicator& c : l.communicators)
    all[1].lines.push_back(fmt::format("{}: {}", c.name, fmt::join(c.ranks, " ")));
  for (const pipeline_rank& r : l.ranks) rank_lister(l, r, all).run();
  return all;
}

listing list_program(const lowered& l, const program& p) {
  listing all;
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    const std::vector<op>& ops = p.ranks[r].ops;
    const int number = p.number_of(static_cast<int>(r));
    const std::vector<lane>& lanes = l.ranks[layout(l.plan->dims).at(number)[axis::pp]].lanes;
    section& here = all.emplace_back(section{fmt::format("rank {}: {}", number, p.step), {}});
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const op& o = ops[i];
      here.lines.push_back(
          fmt::format("{:>5} {:<10} {}{}", i, lanes[o.stream].name, o.name,
                      o.waits.empty() ? "" : fmt::format(" after {}", fmt::join(o.waits, ", "))));
      if (!o.reads.empty()) here.lines.push_back("        reads " + text_of(o.reads));
      if (!o.writes.empty()) here.lines.push_back("        writes " + text_of(o.writes));
    }
  }
  return all;
}

}  // namespace rankc::codegen
