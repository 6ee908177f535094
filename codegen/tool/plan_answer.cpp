// SPDX-License-Identifier: Apache-2.0
#include "plan_findings.hpp"

namespace rankc::tool {

namespace {

json to_json(const judged_plan& j) {
  const plan_choice& c = j.choice;
  json dims{{"world", c.dims.world}};
  for (const named_degree& a : all_degrees)
    if (c.dims.*a.degree != 1) dims[std::string(a.name)] = c.dims.*a.degree;
  if (c.dims.sequence_parallel) dims["sequence_parallel"] = true;
  if (weight_shards(c.dims) > 1)
    dims["reshard"] = reshards_after_layer(c.dims) ? "after_layer" : "after_step";
  json out{{"dims", dims},
           {"schedule", c.schedule.name},
           {"stages_per_rank", c.schedule.stages_per_rank},
           {"microbatches", c.microbatches},
           {"recompute", name_of(c.recompute)},
           {"step_s", j.time.step},
           {"memory_bytes", j.bytes}};
  for (const step_term& t : step_terms) out["terms"][std::string(t.name)] = j.time.*t.at;
  return out;
}

}  // namespace

void answer_plans(const json& line, json& answer, report& out) {
  const plan_request r = read_plan_request(line, out);
  if (!accepts(out)) return;
  if (r.predict) {
    const auto j = judge(r.of, *r.predict, out);
    if (!j) return;
    answer = to_json(*j);
    answer["fits"] = j->fits;
    return;
  }
  const plan_findings f = find_plans(r, true);
  answer = {{"candidates", f.candidates},      {"predicted", f.found.counts.predicted},
            {"judged", f.found.counts.judged}, {"top", json::array()},
            {"pareto", json::array()},         {"why", f.why}};
  for (const judged_plan& j : f.shown(r)) answer["top"].push_back(to_json(j));
  for (const judged_plan& j : f.found.front) answer["pareto"].push_back(to_json(j));
  if (f.found.top.empty()) return;
  answer["sensitivity"] = json::object();
  for (const sensitivity& s : f.of_constants) answer["sensitivity"][std::string(s.constant)] = s.percent;
}

}  // namespace rankc::tool
