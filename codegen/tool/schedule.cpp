// SPDX-License-Identifier: Apache-2.0
#include "schedule.hpp"

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/one_f_one_b.hpp>

#include <algorithm>
#include <iterator>

#include "token.hpp"

namespace rankc::tool {

namespace {

struct known_schedule {
  std::string_view name;
  int stages_per_rank;
  action_table (*collect)(int pp, int microbatches);
};

template <class Schedule>
constexpr known_schedule known{Schedule::name, Schedule::stages_per_rank, [](int pp, int microbatches) {
                                 return rankc::collect(Schedule{.microbatches = microbatches}, pp);
                               }};

constexpr known_schedule schedules[]{known<rankc::schedules::gpipe>, known<rankc::schedules::one_f_one_b>};

/// Forwards that one answer may hold.
constexpr long long most_forwards = 1 << 19;

/// What a line asks for.
struct request {
  const known_schedule* schedule = nullptr;
  int pp = 1, microbatches = 1;
  bool inference = false;
  rankc::costs costs;
  std::optional<double> memory_limit;
};

request read(const json& line, report& out) {
  const fields f(line, out);
  request r;
  if (const auto name = f.need("schedule", f.text("schedule"))) {
    const auto found = std::find_if(std::begin(schedules), std::end(schedules),
                                    [&](const auto& s) { return s.name == *name; });
    if (found != std::end(schedules)) r.schedule = found;
    else
      refuse(out, 305) << "schedule \"" << *name << "\" is not one of this version's: " << schedule_names();
  }
  if (const auto pp = f.need("pp", f.whole("pp"))) {
    r.pp = *pp;
    if (r.pp < 1) refuse(out, 104) << "pp=" << r.pp << "; a degree is at least 1";
  }
  if (const auto m = f.need("microbatches", f.whole("microbatches"))) {
    r.microbatches = *m;
    if (r.microbatches < 1)
      refuse(out, 301) << "microbatches=" << r.microbatches << "; a step has at least 1";
  }
  const auto per_rank = f.whole("stages_per_rank");
  if (per_rank && r.schedule && *per_rank != r.schedule->stages_per_rank)
    refuse(out, 306) << "stages_per_rank=" << *per_rank << ", but " << r.schedule->name << " places "
                     << r.schedule->stages_per_rank
                     << " on each rank; set stages_per_rank=" << r.schedule->stages_per_rank;
  r.inference = f.flag("inference").value_or(false);
  const fields costs(f.object("costs"), out);
  r.costs.forward = costs.number("F").value_or(1);
  r.costs.input_grad = costs.number("I").value_or(1);
  r.costs.weight_grad = costs.number("W").value_or(1);
  r.costs.send = costs.number("C").value_or(0);
  r.memory_limit = f.number("memory_limit");
  if (const long long forwards = 1LL * r.pp * r.microbatches; out.empty() && forwards > most_forwards)
    refuse(out, 311) << "pp=" << r.pp << " times microbatches=" << r.microbatches << " is " << forwards
                     << " forwards; at most " << most_forwards << " are answered";
  return r;
}

action_table collect(const known_schedule& schedule, int pp, int microbatches, bool inference) {
  action_table t = schedule.collect(pp, microbatches);
  if (!inference) return t;
  action_table forwards{{}, {}, t.rank_of_stage, microbatches, true, {}, 0};
  for (int r = 0; r < t.ranks(); ++r) {
    forwards.begin.push_back(static_cast<int>(forwards.actions.size()));
    std::copy_if(t.actions.begin() + t.begin[r], t.actions.begin() + t.begin[r + 1],
                 std::back_inserter(forwards.actions),
                 [](const action& a) { return a.kind == action_kind::F; });
  }
  forwards.begin.push_back(static_cast<int>(forwards.actions.size()));
  return forwards;
}

int peak(const known_schedule& schedule, const request& r, int microbatches) {
  return total(collect(schedule, r.pp, microbatches, r.inference)).peak();
}

/// RC307: the most that a rank holds at once must be within the limit. The alternatives are computed.
void check_memory(report& out, const request& r, const std::vector<int>& peaks) {
  const auto highest = std::max_element(peaks.begin(), peaks.end());
  if (!r.memory_limit || *highest <= *r.memory_limit) return;
  sentence& s = refuse(out, 307);
  s << "rank " << highest - peaks.begin() << " holds the activations of " << *highest
    << " microbatches at once, more than memory_limit=" << fmt::format("{}", *r.memory_limit) << "; ";
  if (*r.memory_limit < 1) {
    s << "every schedule holds at least 1";
    return;
  }
  for (const known_schedule& other : schedules)
    if (const int needs = peak(other, r, r.microbatches); needs <= *r.memory_limit)
      s << "take " << other.name << ", which holds " << needs << ", or ";
  int fits = 1, too_many = r.microbatches;  // the peak grows with the microbatches
  while (too_many - fits > 1) {
    const int middle = fits + (too_many - fits) / 2;
    (peak(*r.schedule, r, middle) <= *r.memory_limit ? fits : too_many) = middle;
  }
  s << "at most " << fits << (fits == 1 ? " microbatch" : " microbatches");
}

}  // namespace

std::string schedule_names() {
  std::string names;
  for (const known_schedule& s : schedules) names += (names.empty() ? "" : ", ") + std::string(s.name);
  return names;
}

std::vector<std::string> issue_order(const action_table& t, int rank) {
  std::vector<std::string> out;
  const auto elsewhere = [&](int stage) {
    return stage >= 0 && stage < t.stages() && t.rank_of_stage[stage] != rank;
  };
  const auto message = [&](const action& a, token_kind forward, token_kind backward, int forward_peer,
                           int backward_peer) {
    const bool is_forward = a.kind == action_kind::F;
    if (a.kind == action_kind::W || !elsewhere(is_forward ? forward_peer : backward_peer)) return;
    out.push_back(spell({is_forward ? forward : backward, a.stage, a.microbatch, -1}));
  };
  const auto receive = [&](const action& a) {
    message(a, token_kind::RECV_F, token_kind::RECV_B, a.stage - 1, a.stage + 1);
  };
  const auto send = [&](const action& a) {
    message(a, token_kind::SEND_F, token_kind::SEND_B, a.stage + 1, a.stage - 1);
  };
  const int ahead = t.inference ? 0 : 1;
  int received = t.begin[rank];
  for (int k = t.begin[rank]; k < t.begin[rank + 1]; ++k) {
    for (; received <= k + ahead && received < t.begin[rank + 1]; ++received) receive(t.actions[received]);
    sentence s;
    s << t.actions[k];
    out.emplace_back(s.view());
    send(t.actions[k]);
  }
  return out;
}

void answer_schedule(const json& line, json& answer, report& out) {
  const request r = read(line, out);
  if (!out.empty()) return;
  const action_table t = collect(*r.schedule, r.pp, r.microbatches, r.inference);
  check_actions(out, t);
  if (!out.empty()) return;
  const totals all = total(t, r.costs);
  check_memory(out, r, all.peak_activations);
  if (!out.empty()) return;

  json compute = json::array(), program = json::array();
  for (int rank = 0; rank < t.ranks(); ++rank) {
    json order = json::array();
    for (int i = t.begin[rank]; i < t.begin[rank + 1]; ++i) {
      sentence s;
      s << t.actions[i];
      order.push_back(s.view());
    }
    compute.push_back(std::move(order));
    program.push_back(issue_order(t, rank));
  }
  answer["stage_to_rank"] = t.rank_of_stage;
  answer["compute"] = std::move(compute);
  answer["program"] = std::move(program);
  answer["makespan"] = all.makespan;
  answer["bubble"] = all.bubble;
  answer["bubble_per_rank"] = all.bubble_per_rank;
  answer["peak_activations"] = all.peak_activations;
}

}  // namespace rankc::tool
