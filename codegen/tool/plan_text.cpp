// SPDX-License-Identifier: Apache-2.0
#include "plan_request.hpp"

#include <iterator>

namespace rankc::tool {

std::string text_of(const plan_choice& c) {
  std::string out;
  for (const named_degree& a : all_degrees)
    if (c.dims.*a.degree > 1 && a.degree != &parallel_dims::ulysses)
      out += fmt::format("{}{} {}", out.empty() ? "" : " x ", a.name, c.dims.*a.degree);
  if (out.empty()) out = "one rank";
  out += fmt::format(", {} of {} microbatch{}", c.schedule.name, c.microbatches,
                     c.microbatches == 1 ? "" : "es");
  if (c.schedule.has_free_stages()) out += fmt::format(" on {} stages a rank", c.schedule.stages_per_rank);
  if (weight_shards(c.dims) > 1 && !reshards_after_layer(c.dims)) out += ", weights gathered once";
  if (c.recompute.full) return out + ", repeating layers";
  return c.recompute.any() ? out + ", repeating activations and norms" : out;
}

std::string text_of(const plan_request& r) {
  return fmt::format("{} on {} GPU{} {} of {:.4g} GB", r.model.empty() ? "a model" : r.model, r.of.gpus,
                     r.of.gpus == 1 ? "" : "s", r.of.gpu->name,
                     static_cast<double>(r.of.machines.memory) / 1e9);
}

std::string_view name_of(const recomputation& by) {
  for (std::size_t i = 0; i < std::size(plan_search::recomputations); ++i)
    if (by == plan_search::recomputations[i]) return recompute_names[i];
  return "some";
}

}  // namespace rankc::tool
