// SPDX-License-Identifier: Apache-2.0
#include <rankc/cost_model/calibrations.hpp>

#include <algorithm>
#include <ostream>

#include "plan_request.hpp"

namespace rankc::tool {

namespace {

struct named_term {
  std::string_view name;
  double cost_model::step_prediction::*at;
};
constexpr named_term terms[]{{"products", &cost_model::step_prediction::products}, {"attention", &cost_model::step_prediction::attention},
                             {"passes", &cost_model::step_prediction::passes},     {"optimizer", &cost_model::step_prediction::optimizer},
                             {"links", &cost_model::step_prediction::links},       {"bubble", &cost_model::step_prediction::bubble},
                             {"power", &cost_model::step_prediction::limited}};

/// A constant of a GPU, made larger by a factor.
struct named_constant {
  std::string_view name;
  void (*scale)(cost_model::gpu_speed&, double);
};
constexpr named_constant constants[]{
    {"products", [](cost_model::gpu_speed& g, double by) { g.products *= by; }},
    {"attention", [](cost_model::gpu_speed& g, double by) { for (auto* s : {g.forward, g.backward}) s[0].per_second *= by, s[1].per_second *= by; }},
    {"memory", [](cost_model::gpu_speed& g, double by) { g.passes.per_second *= by, g.column_sums.per_second *= by, g.sweeps.per_second *= by; }},
    {"node", [](cost_model::gpu_speed& g, double by) { g.node.bandwidth *= by, g.node.message_bandwidth *= by; }},
    {"network", [](cost_model::gpu_speed& g, double by) { g.network.bandwidth *= by, g.network.message_bandwidth *= by; }},
    {"power", [](cost_model::gpu_speed& g, double by) { g.power *= by; }}};

/// By how many percent a step is longer where a constant is 1 percent more.
json sensitivity(const plan_question& q, const judged_plan& j) {
  constexpr double little = 0.01;
  json out = json::object();
  for (const named_constant& c : constants) {
    cost_model::gpu_speed other = *q.gpu;
    c.scale(other, 1 + little);
    plan_question asked = q;
    asked.gpu = &other;
    report said;
    const auto then = judge(asked, j.choice, said);
    out[std::string(c.name)] = (then->time.step / j.time.step - 1) / little;
  }
  return out;
}

json to_json(const judged_plan& j) {
  const plan_choice& c = j.choice;
  json dims{{"world", c.dims.world}};
  for (const named_degree& a : all_degrees)
    if (c.dims.*a.degree != 1) dims[std::string(a.name)] = c.dims.*a.degree;
  if (c.dims.sequence_parallel) dims["sequence_parallel"] = true;
  if (weight_shards(c.dims) > 1) dims["reshard"] = reshards_after_layer(c.dims) ? "after_layer" : "after_step";
  json out{{"dims", dims}, {"schedule", c.schedule.name}, {"stages_per_rank", c.schedule.stages_per_rank}, {"microbatches", c.microbatches},
           {"recompute", name_of(c.recompute)}, {"step_s", j.time.step}, {"memory_bytes", j.bytes}};
  for (const named_term& t : terms) out["terms"][std::string(t.name)] = j.time.*t.at;
  return out;
}

const named_term& largest_term(const cost_model::step_prediction& t, const cost_model::step_prediction& less = {}) {
  return *std::max_element(std::begin(terms), std::end(terms),
                           [&](const named_term& a, const named_term& b) { return t.*a.at - less.*a.at < t.*b.at - less.*b.at; });
}

}  // namespace

std::string text_of(const plan_choice& c) {
  std::string out;
  for (const named_degree& a : all_degrees)
    if (c.dims.*a.degree > 1 && a.degree != &parallel_dims::ulysses) out += fmt::format("{}{} {}", out.empty() ? "" : " x ", a.name, c.dims.*a.degree);
  if (out.empty()) out = "one rank";
  out += fmt::format(", {} of {} microbatch{}", c.schedule.name, c.microbatches, c.microbatches == 1 ? "" : "es");
  if (weight_shards(c.dims) > 1 && !reshards_after_layer(c.dims)) out += ", weights gathered once";
  if (c.recompute.full) return out + ", repeating layers";
  return c.recompute.any() ? out + ", repeating activations and norms" : out;
}

std::string reasons_of(const std::vector<judged_plan>& by_time) {
  const judged_plan& best = by_time.front();
  const named_term& limit = largest_term(best.time);
  std::string out = fmt::format("{} take{} {:.0f} % of the fastest plan's step", limit.name, limit.name.ends_with('s') ? "" : "s",
                                100 * (best.time.*limit.at) / best.time.step);
  if (by_time.size() < 2) return out + "; no other plan fits";
  const judged_plan& next = by_time[1];
  const named_term& longer = largest_term(next.time, best.time);
  return out + fmt::format("; the next, {}, takes {:.1f} % longer, most of it in {}", text_of(next.choice), 100 * (next.time.step / best.time.step - 1),
                           longer.name);
}

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
  const planner::ranking found = rank_plans(r.of, {std::max(r.top, 2), true});  // the second says why it is not the first
  const std::size_t shown = std::min(found.top.size(), static_cast<std::size_t>(r.top));
  answer = {{"candidates", count_choices(r.of)}, {"predicted", found.counts.predicted}, {"judged", found.counts.judged},
            {"top", json::array()}, {"pareto", json::array()}};
  for (std::size_t i = 0; i < shown; ++i) answer["top"].push_back(to_json(found.top[i]));
  for (const judged_plan& j : found.front) answer["pareto"].push_back(to_json(j));
  answer["why"] = found.top.empty() ? "no plan fits" : reasons_of(found.top);
  if (!found.top.empty()) answer["sensitivity"] = sensitivity(r.of, found.top.front());
}

int show_plans(const json& line, std::ostream& out, std::ostream& errors) {
  report said;
  const plan_request r = read_plan_request(line, said);
  std::vector<judged_plan> shown;
  planner::ranking found;
  if (accepts(said) && r.predict) {
    if (const auto j = judge(r.of, *r.predict, said)) shown.push_back(*j);
  } else if (accepts(said)) {
    found = rank_plans(r.of, {std::max(r.top, 2), false});
    shown.assign(found.top.begin(), found.top.begin() + std::min<std::ptrdiff_t>(r.top, static_cast<std::ptrdiff_t>(found.top.size())));
  }
  print(said, errors);
  if (!accepts(said)) return 1;
  if (!r.predict)
    out << fmt::format("{} on {} GPUs {} of {:.0f} GB: {} plans, {} of them timed, {} judged\n", r.model.empty() ? "model" : r.model, r.of.gpus, r.of.gpu->name,
                       static_cast<double>(r.of.machines.memory) / 1e9, count_choices(r.of), found.counts.predicted, found.counts.judged);
  if (!shown.empty()) out << "        ms     GB  products attention passes optimizer links bubble power  plan\n";
  for (const judged_plan& j : shown) {
    const auto share = [&](double seconds) { return 100 * seconds / j.time.step; };
    out << fmt::format("{:>10.1f} {:>6.1f}  {:>7.0f}% {:>8.0f}% {:>5.0f}% {:>8.0f}% {:>4.0f}% {:>5.0f}% {:>4.0f}%  {}\n", 1e3 * j.time.step,
                       static_cast<double>(j.bytes) / 1e9, share(j.time.products), share(j.time.attention), share(j.time.passes), share(j.time.optimizer),
                       share(j.time.links), share(j.time.bubble), share(j.time.limited), text_of(j.choice));
  }
  if (!found.top.empty()) out << "\n" << reasons_of(found.top) << "\n";
  return 0;
}

}  // namespace rankc::tool
