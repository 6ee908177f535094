// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/lowered.hpp>

#include <stdexcept>
#include <string_view>

#include "passes/passes.hpp"

namespace rankc::codegen {

int lowered::message(const std::string& name, std::size_t bytes) {
  const auto [at, is_new] = message_index.try_emplace(name, static_cast<int>(messages.size()));
  if (is_new) messages.push_back({name, bytes});
  return at->second;
}

int lowered::find_message(const std::string& name) const {
  const auto at = message_index.find(name);
  if (at == message_index.end()) throw std::logic_error("no message is named '" + name + "'");
  return at->second;
}

namespace {

/// FNV-1a over everything that two ranks must agree on: what is called, sent and waited for, and where.
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

std::uint64_t hash_of(const lowered& l) {
  fingerprint f;
  f.add(static_cast<std::uint64_t>(l.type));
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const kernel& k : *list) {
        f.add(k.function);
        for (const extent& e : k.sizes) f.add(e.text), f.add(static_cast<std::uint64_t>(e.value));
      }
  for (const message_site& m : l.messages) f.add(m.name), f.add(m.bytes);
  for (const communicator& c : l.communicators) {
    f.add(c.name);
    for (int r : c.ranks) f.add(static_cast<std::uint64_t>(r));
  }
  for (const pipeline_rank& r : l.ranks) {
    f.add(r.arena.bytes);
    for (const auto* items : {&r.train, &r.evaluate})
      for (const item& i : *items) {
        f.add(i.name);
        for (int w : i.waits) f.add(static_cast<std::uint64_t>(w));
      }
  }
  return f.value();
}

}  // namespace

lowered lower(const plan_data& plan, dtype type, target target) {
  if (!accepts(plan.diagnostics)) throw std::logic_error("a plan with broken rules cannot be lowered");
  lowered l;
  l.plan = &plan;
  l.type = type;
  l.target = target;
  for (const layer_kind& k : plan.kinds) l.bodies.push_back(lower_layer(k, plan, type, target, l.splits_backward()));
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const kernel& k : *list)
        if (k.collective_) l.message(k.collective_->name, k.collective_->bytes);
  place_parameters(l);
  make_communicators(l);
  schedule_items(l);
  place_arena(l);
  order_streams(l);
  l.hash = hash_of(l);
  return l;
}

}  // namespace rankc::codegen
