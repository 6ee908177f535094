// SPDX-License-Identifier: Apache-2.0
#include "repetitions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rankc/codegen/names.hpp>
#include <rankc/stages/layer_cost.hpp>
#include <rankc/stages/repeated_ops.hpp>

#include <utility>

#include "emit.hpp"

namespace rankc::codegen {

std::vector<repetition> repetitions(const lowered& l) {
  std::vector<repetition> all;
  const std::vector<layer_form> forms = forms_of(*l.plan);
  for (std::size_t f = 0; f < forms.size(); ++f) {
    if (!forms[f].recomputes) continue;
    const body& b = l.bodies[f];
    const trace& t = l.plan->kinds[b.kind].ops;
    repetition r{b.name, b.saved_bytes, b.halfway_bytes};
    layer_form kept = forms[f];
    kept.recomputes = false;
    r.without = lower_layer(*l.plan, kept, b.name, l.type, l.target).saved_bytes;
    for (const node& n : b.backward) {
      r.nodes += n.again;
      r.collectives += n.again && n.row->communicates();
    }
    r.flops = repeated_flops(t, b.setting.recompute);
    if (const double forward = forward_flops(t); forward > 0) r.share = r.flops / forward;
    all.push_back(r);
  }
  return all;
}

std::string repetitions_text(const lowered& l) {
  const recomputation& r = l.plan->recipe.recompute;
  if (!r.any()) return "";
  std::vector<std::string> what;
  for (const auto& [is, name] : {std::pair(r.full, "full"),
                                 {r.attention, "attention"},
                                 {r.activations, "activations"},
                                 {r.norms, "norms"}})
    if (is) what.emplace_back(name);
  std::string out =
      fmt::format("recomputation: {}, in {}\n", fmt::join(what, ", "),
                  r.every == 1 ? "every repeated layer" : fmt::format("one repeated layer of {}", r.every));
  for (const repetition& n : repetitions(l))
    out += fmt::format(
        "  {} keeps {} of a microbatch, not {}; backward repeats {} ops{}, {:.3g} FLOPs a token, {:.0f} % of "
        "forward's\n",
        n.layer, readable_bytes(n.kept), readable_bytes(n.without), n.nodes,
        n.collectives ? fmt::format(", {} of them collectives", n.collectives) : "", n.flops, 100 * n.share);
  return out + "\n";
}

}  // namespace rankc::codegen
