// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include "plan_request.hpp"
#include "search.hpp"

namespace rankc::tool {

namespace {

/// The ranks on the axes of tensor parallelism: "4x2" on two axes, "8" on the only axis.
std::string both(const published_model::problem& q, int tp1, int tp2) {
  return q.by == published_model::strategy::tp1d ? fmt::format("{}", tp1) : fmt::format("{}x{}", tp1, tp2);
}

constexpr std::string_view heading =
    "   seconds       GB     dp      tp     pp    mbs   nb   domain tp dp pp   compute  memory    tp    dp   "
    " pp  bubble\n";

std::string row(const published_model::problem& q, const published_model::plan& p) {
  const published_model::step_cost c = published_model::cost_of_step(q.on, q.by, p, q.global_batch);
  const std::string nb = q.by == published_model::strategy::tp2d ? fmt::format("{}", p.nb) : "";
  const std::string domain = fmt::format("{} {} {}", both(q, p.nv_tp1, p.nv_tp2), p.nv_dp, p.nv_pp);
  return fmt::format(
      "{:>10.4f} {:>8.1f} {:>6} {:>7} {:>6} {:>6} {:>4} {:>17}  {:>6.1f}% {:>6.1f}% {:>4.1f}% {:>4.1f}% "
      "{:>4.1f}% {:>5.1f}%\n",
      c.t, c.mem, p.dp, both(q, p.tp1, p.tp2), p.pp, p.mbs, nb, domain, 100 * c.comp_frac, 100 * c.mem_frac,
      100 * c.tp_comm_frac, 100 * c.dp_comm_frac, 100 * c.pp_comm_frac, 100 * c.bubble_frac);
}

/// The best plan of the same problem by the other form of the model, if it is another plan.
std::string other_best(published_model::problem q, const std::vector<published_model::ranked_plan>& top) {
  const bool was_faithful = !q.on.fix.norm_width;
  q.on.fix = was_faithful ? published_model::corrected : published_model::faithful;
  const published_model::ranked_plan best = published_model::fastest(q);
  const bool any = best.t != published_model::ranked_plan{}.t;
  if (any ? !top.empty() && top[0].plan == best.plan : top.empty()) return "";
  return fmt::format("\nbest with the model's known defects {}:\n",
                     was_faithful ? "corrected" : "as they are") +
         (any ? row(q, best.plan) : "no plan fits\n");
}

}  // namespace

int show_search(const json& line, std::ostream& out, std::ostream& errors, bool on_terminal) {
  if (asks_rankc(line)) return show_plans(line, out, errors, on_terminal);
  report said;
  const search_request r = read_search(line, said);
  print(said, errors);
  if (!accepts(said)) return 1;
  const published_model::problem& q = r.of;
  const published_model::search_result found = published_model::search(q, static_cast<std::size_t>(r.top));
  out << fmt::format("{}, {}, {} GPUs {} in domains of {}, {} sequences: {} plans, {} in {} GB\n",
                     r.model.empty() ? "model" : r.model, strategies[static_cast<std::size_t>(q.by)], q.gpus,
                     q.on.gpu.name, q.on.gpu.nvlink_size, q.global_batch, found.candidates, found.feasible,
                     q.on.gpu.hbm_capacity);
  if (!found.top.empty()) out << heading;
  for (const published_model::ranked_plan& best : found.top) out << row(q, best.plan);
  out << other_best(q, found.top);
  return 0;
}

}  // namespace rankc::tool
