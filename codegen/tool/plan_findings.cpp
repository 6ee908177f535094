// SPDX-License-Identifier: Apache-2.0
#include "plan_findings.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "speed_members.hpp"

namespace rankc::tool {

namespace {

const step_term& largest_term(const cost_model::step_prediction& t,
                              const cost_model::step_prediction& less = {}) {
  return *std::max_element(
      std::begin(step_terms), std::end(step_terms),
      [&](const step_term& a, const step_term& b) { return t.*a.at - less.*a.at < t.*b.at - less.*b.at; });
}

/// Why the first plan is the fastest: its largest part, and the part in which the second takes longer.
/// Shapes: at least one.
std::string why_first(std::span<const judged_plan> by_time) {
  const judged_plan& best = by_time.front();
  const step_term& limit = largest_term(best.time);
  std::string out =
      fmt::format("{} take{} {:.0f} % of the fastest plan's step", limit.name,
                  limit.name.ends_with('s') ? "" : "s", 100 * (best.time.*limit.at) / best.time.step);
  if (by_time.size() < 2) return out + "; no other plan fits";
  const judged_plan& next = by_time[1];
  if (next.time.step == best.time.step)
    return out + fmt::format("; the next, {}, takes as long", text_of(next.choice));
  const step_term& longer = largest_term(next.time, best.time);
  const double percent = 100 * (next.time.step / best.time.step - 1);
  const std::string more = percent < 0.1 ? "less than 0.1" : fmt::format("{:.1f}", percent);
  return out + fmt::format("; the next, {}, takes {} % longer, most of it in {}", text_of(next.choice), more,
                           longer.name);
}

int experts_of(const plan_question& q) {
  return std::visit([](const auto& model) { return plan_search::experts_of(model); }, q.model);
}

/// The next larger global batch, or the next smaller number of GPUs, for which there are plans.
std::string nearest_with_choices(plan_question q) {
  const int experts = experts_of(q), batch = q.recipe.global_batch, gpus = q.gpus;
  const auto any = [&] { return !plan_search::unscheduled_choices(q, experts).empty(); };
  std::string out;
  while (q.recipe.global_batch < batch + gpus && !any()) ++q.recipe.global_batch;
  if (any()) out += fmt::format("set global_batch={}", q.recipe.global_batch);
  q.recipe.global_batch = batch;
  while (q.gpus > 1 && !any()) --q.gpus;
  return out + fmt::format("{}gpus={}", out.empty() ? "set " : ", or ", q.gpus);
}

/// The first rule that the first choice breaks.
std::string first_rule(const plan_question& q) {
  for (const plan_search::unscheduled& c : plan_search::unscheduled_choices(q, experts_of(q)))
    for (const schedules::listed& s : plan_search::schedules_of(c.dims.pp, c.microbatches)) {
      report said;
      if (judge(q, {c, s}, said)) continue;
      return fmt::format("{}: RC{}: {}", text_of(plan_choice{c, s}), said.front().id,
                         said.front().text.view());
    }
  return "";
}

}  // namespace

std::vector<sensitivity> sensitivities(const plan_question& q, const judged_plan& j) {
  constexpr double little = 0.01, noise = 1e-9;
  std::vector<cost_model::gpu_speed> others;
  for (const speed_member& constant : speed_members) constant.of(others.emplace_back(*q.gpu)) *= 1 + little;
  const std::vector<double> steps = steps_on(q, j.choice, others);
  std::vector<sensitivity> all;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (const double longer = steps[i] / j.time.step - 1; std::abs(longer) > noise)
      all.push_back({speed_members[i].name, longer / little});
  std::stable_sort(all.begin(), all.end(), [](const sensitivity& a, const sensitivity& b) {
    return std::abs(a.percent) > std::abs(b.percent);
  });
  return all;
}

std::string why_none(const plan_question& q, long long candidates) {
  const auto gigabytes = [](double bytes) { return bytes / 1e9; };
  if (candidates == 0)
    return fmt::format(
        "{} GPUs cannot split {} sequence{}: tp is at most the {} ranks of a node, each pipeline rank needs "
        "a microbatch, and all data-parallel ranks need equal numbers of sequences; {}",
        q.gpus, q.recipe.global_batch, q.recipe.global_batch == 1 ? "" : "s", q.machines.ranks_per_node,
        nearest_with_choices(q));
  plan_question unlimited = q;
  unlimited.machines.memory = 0;
  const plan_search::ranking all = rank_plans(unlimited, {1, true});
  if (all.front.empty()) return fmt::format("each of {} plans breaks a rule; {}", candidates, first_rule(q));
  const judged_plan& smallest = all.front.back();
  const auto memory = static_cast<double>(q.machines.memory), needs = static_cast<double>(smallest.bytes);
  return fmt::format(
      "no plan fits in {:.1f} GB; the one that needs least, {}, needs {:.1f} GB, {:.1f} GB more than there "
      "is",
      gigabytes(memory), text_of(smallest.choice), gigabytes(needs), gigabytes(needs - memory));
}

plan_findings find_plans(const plan_request& r, bool front, const plan_progress& progress) {
  plan_findings out{.candidates = count_choices(r.of),
                    .found = rank_plans(r.of, {std::max(r.top, 2), front}, progress),
                    .why = {},
                    .of_constants = {}};
  if (out.found.top.empty()) {
    out.why = why_none(r.of, out.candidates);
  } else {
    out.why = why_first(out.found.top);
    out.of_constants = sensitivities(r.of, out.found.top.front());
  }
  return out;
}

}  // namespace rankc::tool
