// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/names.hpp>

#include <stdexcept>
#include <string_view>

#include "passes/input_text.hpp"
#include "passes/passes.hpp"
#include "passes/roles.hpp"
#include "passes/watcher.hpp"

namespace rankc::codegen {

int lowered::message(const std::string& name, std::size_t bytes) {
  const auto [at, is_new] = message_index.try_emplace(name, static_cast<int>(messages.size()));
  if (is_new) messages.push_back({name, bytes});
  else if (messages[at->second].bytes != bytes)
    throw std::logic_error("two messages of different sizes are named '" + name + "'");
  return at->second;
}

int lowered::find_message(const std::string& name) const {
  const auto at = message_index.find(name);
  if (at == message_index.end()) throw std::logic_error("no message is named '" + name + "'");
  return at->second;
}

namespace {

/// FNV-1a over everything that two ranks must agree on: calls, messages, waits and places.
class fingerprint {
 public:
  void add(std::string_view s) {
    for (unsigned char c : s) step(c);
    step(0);
  }
  void add(std::uint64_t n) {
    for (int i = 0; i < 8; ++i) step(static_cast<unsigned char>(n >> 8 * i));
  }
  std::uint64_t value() const { return h_; }

 private:
  void step(unsigned char c) { h_ = (h_ ^ c) * 0x100000001B3ull; }
  std::uint64_t h_ = 0xCBF29CE484222325ull;
};

void add(fingerprint& f, std::initializer_list<std::int64_t> numbers) {
  for (std::int64_t n : numbers) f.add(static_cast<std::uint64_t>(n));
}

/// The number of a value's memory in the hash. Programs without declared inputs keep the hash of older
/// versions.
int number_of(const value& v, const plan_data& plan) {
  constexpr int of_loss = 12, of_routers = 13;
  if (v.where == space::input) return text_of_input(plan.inputs[static_cast<std::size_t>(v.of)]).in_hash;
  if (v.where == space::loss) return of_loss;
  return v.where == space::routers ? of_routers : static_cast<int>(v.where);
}

/// The index of a value in its memory. Each built-in input has a separate memory.
int index_of(const operand& o, const value& v, const plan_data& plan) {
  const bool is_own = v.where == space::saved || v.where == space::halfway || v.where == space::temp;
  if (is_own) return o.at.value;
  const bool is_of_language =
      v.where == space::input &&
      text_of_input(plan.inputs[static_cast<std::size_t>(v.of)]).held != holding_kind::input;
  return is_of_language ? 0 : v.of;
}

void add(fingerprint& f, const plan_data& plan, const body& b, const node& n) {
  f.add(b.function(n));
  add(f, {static_cast<int>(n.accumulate), n.for_weights, n.wide});
  for (const bool written : {true, false})
    each_operand(b, n, written, [&](const operand& o) {
      const value& v = b.at(o);
      add(f, {number_of(v, plan), index_of(o, v, plan), static_cast<std::int64_t>(o.at.offset), o.implied});
    });
  for (const port_use& u : n.ports) {
    if (u.shape < 0) continue;
    const local_shape& s = b.shape(u);
    for (int d = 0; d < s.ndim; ++d) add(f, {s.dims[d].count, s.dims[d].unit});
    add(f, {s.stride.width()});
  }
  f.add(fmt::format("{} {} {}", n.rows, n.seq, n.number));
  if (const attention_setting& s = n.attention; !s.is_plain())
    f.add(fmt::format("{}", fmt::join(s.numbers(), " ")));
  if (!n.row->communicates()) return;
  f.add(b.message(n));
  add(f, {static_cast<int>(role_over(n.over)), b.part(n).elements(), n.slab,
          n.row->converts == conversion::all_reduce_max});
}

void add(fingerprint& f, const item& i) {
  f.add(i.name);
  add(f, {static_cast<int>(i.what), static_cast<int>(i.does), static_cast<int>(i.on), i.stage, i.microbatch,
          i.layer, i.slot, i.data, i.first, i.bucket, static_cast<int>(i.over), i.message,
          static_cast<std::int64_t>(i.bytes), static_cast<int>(i.squares), i.event});
  for (int w : i.waits) add(f, {w});
}

std::uint64_t hash_of(const lowered& l) {
  fingerprint f;
  f.add(static_cast<std::uint64_t>(l.type));
  f.add(std::string(l.optimizer().name));
  add(f, {l.has_bf16_weights(), l.has_bf16_moments(), l.plan->recipe.rounding == stochastic,
          l.rounds_reductions()});
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const node& n : *list) add(f, *l.plan, b, n);
  for (const named_input& i : l.plan->inputs)
    if (text_of_input(i).held == holding_kind::input) f.add(i.name);
  if (l.plan->recipe.has_documents()) add(f, {l.plan->recipe.end_of_document});
  if (l.plan->recipe.ignores_labels()) add(f, {l.plan->recipe.ignored_label});
  if (l.plan->recipe.ignore_across_documents) f.add("ignore_across_documents");
  if (l.plan->recipe.token_weights) f.add("token_weights");
  for (const message_site& m : l.messages) {
    f.add(m.name);
    f.add(m.bytes);
  }
  for (const communicator& c : l.communicators) {
    f.add(c.name);
    for (int r : c.ranks) add(f, {r});
  }
  for (const auto& of_rank : l.communicator_of)
    for (int c : of_rank) add(f, {c});
  for (const pipeline_rank& r : l.ranks) {
    f.add(r.arena.bytes);
    for (const placed_rope& rope : r.arena.ropes)
      f.add(scaling_words(rope.as.scaling));  // the base is in the ops' numbers
    for (const placed_parameter& p : r.parameters) {
      f.add(p.name);
      add(f, {static_cast<std::int64_t>(p.element), p.copy});
    }
    for (const step* s : {&r.train, &r.evaluate}) {
      for (const placed_value& v : s->values)
        add(f,
            {static_cast<int>(v.what), v.stage, v.microbatch, v.layer, static_cast<std::int64_t>(v.where)});
      for (const item& i : s->items) add(f, i);
    }
  }
  return f.value();
}

/// Makes a site for each message within the layers.
void number_messages(lowered& l) {
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const node& n : *list)
        if (n.row->communicates()) l.message(b.message(n), b.message_bytes(n));
}

struct rank_pass {
  const char* name;
  void (*run)(lowered&);
};
constexpr rank_pass rank_passes[]{
    {"number_messages", number_messages},   {"place_parameters", place_parameters},
    {"shard_parameters", shard_parameters}, {"make_communicators", make_communicators},
    {"bind_layers", bind_layers},           {"schedule_items", schedule_items},
    {"place_arena", place_arena},           {"order_streams", order_streams}};

}  // namespace

std::vector<std::string> names_of_rank_passes() {
  std::vector<std::string> names;
  for (const rank_pass& p : rank_passes) names.emplace_back(p.name);
  return names;
}

lowered lower(const plan_data& plan, dtype type, target target, watcher* w) {
  if (!accepts(plan.diagnostics)) throw std::logic_error("a plan with broken rules cannot be lowered");
  lowered l;
  l.plan = &plan;
  l.type = type;
  l.target = target;
  name_scope ids;
  layer_form first;  // form of the kind
  for (const layer_form& form : forms_of(plan)) {
    const std::string name(plan.kinds[static_cast<std::size_t>(form.kind)].name);
    const bool is_other_form = !l.bodies.empty() && static_cast<int>(l.bodies.back().kind) == form.kind;
    if (!is_other_form) first = form;
    const std::string id = ids.take(name + (form.recomputes != first.recomputes ? "_recomputed" : "") +
                                    (form.gives_dx != first.gives_dx ? "_without_dx" : ""));
    const bool is_first =
        std::none_of(l.bodies.begin(), l.bodies.end(), [&](const body& b) { return b.name == name; });
    l.bodies.push_back(lower_layer(plan, form, is_first ? name : id, type, target, w));
    l.bodies.back().id = id;
  }
  for (const rank_pass& p : rank_passes) {
    if (w) w->over_ranks(p.name, false, l);
    p.run(l);
    if (w) w->over_ranks(p.name, true, l);
  }
  l.hash = hash_of(l);
  return l;
}

}  // namespace rankc::codegen
