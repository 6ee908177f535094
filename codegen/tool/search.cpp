// SPDX-License-Identifier: Apache-2.0
#include "plan_request.hpp"
#include "search.hpp"

namespace rankc::tool {

namespace {

json to_json(const published_model::problem& q, const published_model::plan& p) {
  if (q.by == published_model::strategy::tp1d)
    return {{"dp", p.dp},        {"tp", p.tp1},      {"pp", p.pp},      {"mbs", p.mbs},
            {"nv_tp", p.nv_tp1}, {"nv_dp", p.nv_dp}, {"nv_pp", p.nv_pp}};
  json out{{"dp", p.dp}, {"tp", p.tp1 * p.tp2}, {"tp1", p.tp1}, {"tp2", p.tp2}, {"pp", p.pp}, {"mbs", p.mbs}};
  if (q.by == published_model::strategy::tp2d) out["nb"] = p.nb;
  out.update({{"nv_tp1", p.nv_tp1}, {"nv_tp2", p.nv_tp2}, {"nv_dp", p.nv_dp}, {"nv_pp", p.nv_pp}});
  return out;
}

}  // namespace

bool asks_rankc(const json& line) { return line.is_object() && line.value("cost_model", json()) == "rankc"; }

void answer_search(const json& line, json& answer, report& out) {
  if (asks_rankc(line)) return answer_plans(line, answer, out);
  const search_request r = read_search(line, out);
  if (!accepts(out)) return;
  const published_model::problem& q = r.of;
  const published_model::search_result found = published_model::search(q, static_cast<std::size_t>(r.top));
  answer = {{"n_candidates", found.candidates},
            {"n_feasible", found.feasible},
            {"sum_t_all", found.sum_t},
            {"sum_mem_all", found.sum_mem},
            {"sum_t_feasible", found.sum_t_feasible},
            {"sum_mem_feasible", found.sum_mem_feasible},
            {"top", json::array()}};
  for (const published_model::ranked_plan& best : found.top) {
    json plan = to_json(q, best.plan);
    const published_model::step_cost cost =
        published_model::cost_of_step(q.on, q.by, best.plan, q.global_batch);
    for (const published_model::step_cost_field& f : published_model::step_cost_fields)
      plan[f.name] = cost.*f.at;
    answer["top"].push_back(std::move(plan));
  }
}

}  // namespace rankc::tool
