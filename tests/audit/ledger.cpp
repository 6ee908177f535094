// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include <stdexcept>

namespace audit {

namespace {

std::string kind_of(const formula& f) {
  for (const auto& [op, kind] : {std::pair("AR", "all_reduce"),
                                 {"ARmax", "all_reduce_max"},
                                 {"AG", "all_gather"},
                                 {"RS", "reduce_scatter"},
                                 {"A2A", "all_to_all"}})
    if (f.op == op) return kind;
  throw std::logic_error("a message is sent or received");
}

std::string phase_of(const formula& f) {
  if (f.phase == "fwd") return "forward";
  return f.phase == "bwd" ? "backward" : f.phase;
}

std::int64_t bytes_of(const std::string& type) {
  if (type == "f64") return 8;
  return type == "bf16" ? 2 : 4;
}

std::int64_t whole(const fraction& f) {
  if (f.under != 1) throw std::logic_error("a formula gives a part of an element");
  return f.over;
}

}  // namespace

void ledger::add(int id, fraction times, const with& w) {
  const formula& f = find(rows_, id);
  variables v = of_all_;
  for (const auto& [name, value] : w.given) v.insert_or_assign(name, value);
  std::string type = w.type;
  if (type.empty()) type = f.type == "act" || f.type == "param" ? types_.real : types_.wide;
  const fraction count =
      times * (f.count == ">=1" ? 1 : evaluate(f.count, v));  // ">=1": a norm, one call for each axis
  entry& e = all_[{w.phase.empty() ? phase_of(f) : w.phase, w.kind.empty() ? kind_of(f) : w.kind,
                   w.axis.empty() ? f.axis : w.axis, type}];
  e.count += whole(count);
  e.tensors += whole(count * w.tensors);
  e.elements += whole((f.op == "A2A" && f.technique == "CP" ? times : count) *
                      evaluate(f.elements, v));  // exchanges of heads: the formula counts all of them
  if (w.kind != "receive") e.sent = e.sent + times * bytes_of(type) * evaluate(f.sent, v);
}

}  // namespace audit
