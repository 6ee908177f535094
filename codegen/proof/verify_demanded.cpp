// SPDX-License-Identifier: Apache-2.0
// Sums that a step of a model must name: a step that named none would have nothing to be followed.
#include "verify_schedule.hpp"

#include <algorithm>
#include <map>

namespace rankc::codegen::verifying {

namespace {

/// The kind of the sum that each trained parameter is updated by.
std::map<std::string, std::string> sums_of_parameters(const specification& model) {
  std::map<std::string, std::string> kinds;
  for (const specification::use& u : model.uses) {
    const auto& of = model.layers[static_cast<std::size_t>(u.layer)].parameters;
    for (std::size_t i = 0; i < of.size(); ++i)
      if (of[i].trainable) kinds[u.parameters[i]] = of[i].balances.any() ? "choices" : "gradient";
  }
  return kinds;
}

const total* find(const routine& r, const std::string& kind, const std::string& name) {
  const auto at = std::find_if(r.totals.begin(), r.totals.end(), [&](const total& t) {
    return t.kind == kind && (name.empty() || t.name == name);
  });
  return at == r.totals.end() ? nullptr : &*at;
}

bool has(const document& d, const std::string& kind, const std::string& name = "") {
  return std::any_of(d.workers.begin(), d.workers.end(), [&](const worker& w) {
    return find(d.routines[static_cast<std::size_t>(w.routine)], kind, name) != nullptr;
  });
}

/// A rank updates each weight that it holds by a sum, and reads the norm.
void check_rank(const document& d, int rank, const std::map<std::string, std::string>& kinds) {
  const routine& r = routine_of(d, rank);
  for (const instruction& i : r.instructions)
    for (std::size_t k = 0; i.kind == "begin" && k < std::min(i.holds.size(), i.writes.size()); ++k) {
      const auto of = kinds.find(i.holds[k].name);
      if (i.holds[k].kind != "weight" || of == kinds.end()) continue;
      const total* sum = find(r, of->second, of->first);
      if (!sum)
        refuse(
            "RC7281: certificate, rank {}: the rank holds {}, which is trained, and names no sum of its {}",
            rank, of->first, of->second);
      const std::pair bytes(i.writes[k].begin, i.writes[k].end);
      if (std::find(sum->updates.begin(), sum->updates.end(), bytes) == sum->updates.end())
        refuse("RC7282: certificate, rank {}: the sum of {} does not update bytes {} to {}, which hold it",
               rank, of->first, bytes.first, bytes.second);
      if (!find(r, "norm", ""))
        refuse("RC7283: certificate, rank {}: the rank trains {} and names no norm", rank, of->first);
    }
}

}  // namespace

void check_demanded(const document& d, const specification& model) {
  if (model.layers.empty()) return;
  const auto kinds = sums_of_parameters(model);
  if (!has(d, "loss")) refuse("RC7284: certificate: no rank of {} names the loss as a sum", d.step);
  if (d.step != "train") return;
  for (const auto& [name, kind] : kinds)
    if (!has(d, kind, name))
      refuse("RC7285: certificate: {} is trained, and no rank names a sum of its {}", name, kind);
  for (int r = 0; r < static_cast<int>(d.workers.size()); ++r) check_rank(d, r, kinds);
}

}  // namespace rankc::codegen::verifying
