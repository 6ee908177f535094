// SPDX-License-Identifier: Apache-2.0
// RC201, RC217: the repeated layers of a model on the stages of a pipeline.
#pragma once
#include <rankc/rules/values/setting.hpp>

#include <vector>

namespace rankc {

namespace detail {

constexpr long long stages_of(const setting& s) {
  return s.stages ? s.stages : static_cast<long long>(at_least_one(s.dims.pp)) * s.stages_per_rank;
}

inline constexpr rule pipeline_rules[]{
    // RC201
    {201, [](const setting& s) { return s.model.layers >= 1 && s.model.layers + s.alone >= stages_of(s); },
     [](sentence& t, const setting& s) {
       t << "layers=" << s.model.layers
         << (s.alone && s.model.layers > 0 ? ", with those that stand alone before or after them," : "")
         << " cannot fill " << stages_of(s) << " stages";
     },
     [](search& a) { a.vary(&parallel_dims::pp).vary(&model_sizes::layers); }},
};

}  // namespace detail

/// The layers outside the repeated ones: `first` if one comes before them, on the first stage, and `last` if
/// one comes after them, on the last stage.
struct alone_at {
  bool first = false, last = false;
};

/// Appends the faults of `layers` repeated layers on pp * stages_per_rank stages, or on `stages_in_all`
/// stages if ranks have unequal numbers of stages. `listed` has the layers of each stage if they are not
/// split by cost.
/// Errors: RC201, RC217, RC301.
constexpr void check_pipeline(report& out, int layers, const parallel_dims& given, int stages_per_rank = 1,
                              std::span<const int> listed = {}, int stages_in_all = 0, alone_at ends = {}) {
  if (stages_per_rank < 1) {
    refuse(out, 301) << "the schedule has stages_per_rank=" << stages_per_rank << "; a rank has at least 1";
    return;
  }
  const setting s{.given = given,
                  .model = {.layers = layers},
                  .stages_per_rank = stages_per_rank,
                  .stages = stages_in_all,
                  .alone = ends.first + ends.last};
  check(out, s, detail::pipeline_rules);
  if (listed.empty()) return;
  const long long stages = detail::stages_of(s);
  if (static_cast<long long>(listed.size()) != stages) {
    refuse(out, 217) << "stage_layers lists " << listed.size() << " stages of " << stages
                     << "; it has one number for each";
    return;
  }
  const auto least = [&](std::size_t stage) {
    return (stage == 0 && ends.first) || (stage + 1 == listed.size() && ends.last) ? 0 : 1;
  };
  long long sum = 0;
  bool filled = true;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    sum += listed[i];
    if (listed[i] >= least(i)) continue;
    refuse(out, 217) << "stage_layers has " << listed[i] << " layers on stage " << i << "; "
                     << (least(i) ? "a stage where none stands alone has at least 1"
                                  : "where one stands alone there are at least 0");
    filled = false;
  }
  if (!filled || sum == layers) return;
  sentence& t = refuse(out, 217) << "stage_layers sum to " << sum << ", not to layers=" << layers;
  offers found;
  std::size_t last = listed.size();  // index after the stage that can take the difference
  while (last > 0 && listed[last - 1] + layers - sum < least(last - 1)) --last;
  if (last > 0) found.next() << listed[last - 1] + layers - sum << " on stage " << last - 1;
  found.next() << "layers=" << sum;
  t << found.view();
}

}  // namespace rankc
