// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/recipe_changes.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/learning_rate.hpp>

#include <fmt/format.h>

#include <map>

namespace rankc::runtime {
namespace {

/// The values of a recipe that a resumed run takes from its checkpoint, each with its option.
struct kept_value {
  const char *name, *option;
  std::string text;
};

std::vector<kept_value> kept_values(const recipe& r) {
  const std::string schedule = schedule_text(schedule_of(r));
  return {{"learning rate", "--lr", fmt::format("{}", r.lr)},
          {"weight decay", "--wd", fmt::format("{}", r.weight_decay)},
          {"largest gradient norm", "--clip", fmt::format("{}", r.clip)},
          {"schedule", "--lr-schedule", schedule.empty() ? "constant" : schedule}};
}

/// The hyperparameters that always come from the plan, as texts by name: the recipe's, and those of a user's
/// optimizer.
std::map<std::string, std::string> plan_values(const recipe& r, const plan_optimizer& own) {
  std::map<std::string, std::string> all{{"beta1", fmt::format("{}", r.beta1)},
                                         {"beta2", fmt::format("{}", r.beta2)},
                                         {"eps", fmt::format("{}", r.eps)},
                                         {"momentum", fmt::format("{}", r.momentum)},
                                         {"nesterov", fmt::format("{}", r.nesterov)}};
  for (const auto& [name, number] : own.hyperparameters) all[name] = fmt::format("{}", number);
  return all;
}

}  // namespace

std::vector<std::string> recipe_changes(const description& plan, const run_state& saved, const recipe& now) {
  std::vector<std::string> notes;
  const recipe& before = saved.plan_train.value_or(saved.train);
  const auto of_plan = kept_values(plan.train), of_saved_plan = kept_values(before),
             of_saved = kept_values(saved.train), of_now = kept_values(now);
  for (std::size_t i = 0; i < of_plan.size(); ++i) {
    const auto& [name, option, text] = of_plan[i];
    if (text != of_saved_plan[i].text && text != of_now[i].text && of_now[i].text == of_saved[i].text)
      notes.push_back(
          say("RC6195: this run keeps the {} {} of its checkpoint; the plan has {} now: give {} to take it",
              name, of_now[i].text, text, fmt::format("{} {}", option, text)));
  }
  if (!saved.plan_train) return notes;
  const plan_optimizer own = optimizer_of(plan), own_before = saved.optimizer.value_or(own);
  if (!own.name.empty() && own.name != own_before.name)
    notes.push_back(
        say("RC6173: the optimizer is {} now, as in the plan; until the checkpoint it was {}, and {} "
            "continues with its moments",
            own.name, own_before.name, own.name));
  const auto values = plan_values(plan.train, own),
             values_before = plan_values(*saved.plan_train, own_before);
  for (const auto& [name, value] : values)
    if (const auto earlier = values_before.find(name);
        earlier != values_before.end() && earlier->second != value)
      notes.push_back(say("RC6196: {} is {} now, as in the plan; before the checkpoint it was {}", name,
                          value, earlier->second));
  return notes;
}

std::optional<std::string> steps_without_rate(const recipe& r, std::int64_t first, std::int64_t last) {
  std::int64_t begin = last + 1;
  while (begin > first && learning_rate(r, begin - 1) == 0) --begin;
  const bool is_end_alone = begin == last && begin > first;  // the last step of a schedule may have rate 0
  if (r.lr == 0 || begin > last || is_end_alone) return std::nullopt;
  return say(
      "RC6197: the learning rate is 0 in steps {} to {}, because the schedule {} has ended; give another "
      "--lr-schedule",
      begin, last, schedule_text(schedule_of(r)));
}

}  // namespace rankc::runtime
