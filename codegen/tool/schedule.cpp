// SPDX-License-Identifier: Apache-2.0
#include "schedule.hpp"

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/communicate.hpp>
#include <rankc/schedule/complete.hpp>
#include <rankc/schedule/csv.hpp>
#include <rankc/schedule/gather.hpp>

#include <algorithm>

#include "portfolio.hpp"
#include "token.hpp"

namespace rankc::tool {

namespace {

/// The most forwards of one answer.
constexpr long long most_forwards = 1 << 17;

/// A request: for a schedule by name, or for one in text form.
struct request {
  const known_schedule* schedule = nullptr;
  std::optional<std::string> csv;
  std::optional<std::vector<int>> placement;  // of the stages in csv
  schedule_sizes sizes;
  std::optional<double> memory_limit;
  bool completes = false;
  std::optional<int> gathers;  // the most stages that are gathered at once
};

/// RC306: a schedule that places its stages itself allows one number of them. RC301: the number is at least
/// 1.
void read_stages(const fields& f, request& r, report& out) {
  const auto asked = f.whole("stages_per_rank");
  if (!r.schedule) return;
  r.sizes.stages_per_rank = asked.value_or(r.schedule->stages_per_rank);
  if (!r.schedule->has_free_stages_per_rank && r.sizes.stages_per_rank != r.schedule->stages_per_rank)
    refuse(out, 306) << "stages_per_rank=" << r.sizes.stages_per_rank << ", but " << r.schedule->name
                     << " places " << r.schedule->stages_per_rank
                     << " on each rank; set stages_per_rank=" << r.schedule->stages_per_rank;
  else if (r.sizes.stages_per_rank < 1)
    refuse(out, 301) << "stages_per_rank=" << r.sizes.stages_per_rank << "; a rank has at least 1";
}

costs read_costs(const fields& f, report& out) {
  const fields given(f.object("costs"), out);
  return {.forward = given.number("F").value_or(1),
          .input_grad = given.number("I").value_or(1),
          .weight_grad = given.number("W").value_or(1),
          .send = given.number("C").value_or(0),
          .overlap = given.number("overlap").value_or(1),
          .stage = given.numbers("stage").value_or(std::vector<double>{}),
          .gather = given.number("UNSHARD").value_or(0),
          .reduce = given.number("REDUCE_GRAD").value_or(0),
          .step = given.number("STEP").value_or(0)};
}

void read_named(const fields& f, request& r, report& out) {
  if (const auto name = f.need("schedule", f.text("schedule"))) {
    const auto all = portfolio();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.name == *name; });
    if (found != all.end()) r.schedule = &*found;
    else
      refuse(out, 305) << "schedule \"" << *name << "\" is not one of this version's: " << schedule_names();
  }
  if (const auto pp = f.need("pp", f.whole("pp"))) {
    r.sizes.pp = *pp;
    if (*pp < 1) refuse(out, 104) << "pp=" << *pp << "; a degree is at least 1";
  }
  if (const auto m = f.need("microbatches", f.whole("microbatches"))) {
    r.sizes.microbatches = *m;
    if (*m < 1) refuse(out, 301) << "microbatches=" << *m << "; a step has at least 1";
  }
  read_stages(f, r, out);
  r.sizes.group = f.whole("group").value_or(0);
}

request read(const json& line, report& out) {
  const fields f(line, out);
  request r;
  r.csv = f.text("csv");
  r.placement = f.whole_numbers("stage_to_rank");
  if (!f.has("csv")) read_named(f, r, out);
  else if (f.has("schedule")) refuse(out, "RC8090: the line has both schedule and csv; leave one out");
  r.sizes.inference = f.flag("inference").value_or(false);
  r.sizes.costs = read_costs(f, out);
  r.completes = f.flag("complete").value_or(false);
  r.gathers = f.whole("gather");
  if (r.gathers && *r.gathers < 1)
    refuse(out, "RC8091: gather is {}; a rank must be able to gather the weights of at least 1 stage at once",
           *r.gathers);
  r.memory_limit = f.number("memory_limit");
  if (r.memory_limit && *r.memory_limit < r.sizes.memory_limit)
    r.sizes.memory_limit = static_cast<int>(*r.memory_limit);
  const __int128 forwards =
      static_cast<__int128>(r.sizes.pp) * r.sizes.stages_per_rank * r.sizes.microbatches;
  if (out.empty() && forwards > most_forwards)
    refuse(out, 311) << "pp=" << r.sizes.pp << " times stages_per_rank=" << r.sizes.stages_per_rank
                     << " times microbatches=" << r.sizes.microbatches << " is more than the "
                     << most_forwards << " forwards that are answered";
  return r;
}

/// Reads the schedule in a text, and its sizes, which the line may repeat. Errors: RC8092, RC313.
action_table read_csv(const fields& f, request& r, report& out) {
  action_table t = parse_csv(out, *r.csv);
  if (!out.empty()) return t;
  const auto check_size = [&](const char* name, int has, const char* of) {
    const auto said = f.whole(name);
    if (said && *said != has)
      refuse(out, 313) << name << "=" << *said << ", but the text has " << has << " " << of << "; take "
                       << name << "=" << has;
    return has;
  };
  r.sizes.pp = check_size("pp", t.ranks(), "lines");
  r.sizes.microbatches = check_size("microbatches", t.microbatches, "microbatches");
  r.sizes.stages_per_rank = std::max(1, t.stages() / t.ranks());
  if (r.placement && static_cast<int>(r.placement->size()) != t.stages())
    refuse(out, "RC8092: stage_to_rank has {} stages, but the schedule in csv has {}", r.placement->size(),
           t.stages());
  else if (r.placement) t.rank_of_stage = *r.placement;
  if (static_cast<long long>(t.stages()) * t.microbatches > most_forwards)
    refuse(out, 311) << t.stages() << " stages times " << t.microbatches << " microbatches is more than the "
                     << most_forwards << " forwards that are answered";
  return r.sizes.inference && !t.inference ? forwards_of(t) : t;
}

/// Makes the schedule of a line, proven. RC8093: there must be a factor for each stage.
action_table make_table(const fields& f, request& r, report& out) {
  const std::size_t factors = r.sizes.costs.stage.size();
  const auto check_factors = [&](std::size_t stages) {
    if (factors && factors != stages)
      refuse(out, "RC8093: costs.stage has {} factors, but the schedule has {} stages; give one for each",
             factors, stages);
    return out.empty();
  };
  // The search uses the factors. It places as many stages as the ranks hold.
  if (r.schedule && r.schedule->name == "best" &&
      !check_factors(static_cast<std::size_t>(r.sizes.pp) * r.sizes.stages_per_rank))
    return {};
  action_table t = r.csv ? read_csv(f, r, out) : r.schedule->make(out, r.sizes);
  if (!out.empty() || !check_factors(static_cast<std::size_t>(t.stages()))) return {};
  if (r.completes) t = complete(std::move(t));
  if (r.gathers) t = gather_weights(std::move(t), *r.gathers);
  check_actions(out, t);
  return t;
}

/// The most activations that a schedule holds at once; nothing if it is undefined for these sizes.
std::optional<int> peak(const known_schedule& schedule, const schedule_sizes& sizes) {
  report undefined;
  const action_table t = schedule.make(undefined, sizes);
  return undefined.empty() ? std::optional(total(t).peak()) : std::nullopt;
}

struct held {
  int microbatches, peak;
};

/// The peak of a schedule with the largest number of microbatches, up to this one, for which it is defined.
held held_by(const request& r, int microbatches) {
  schedule_sizes sizes = r.sizes;
  for (sizes.microbatches = microbatches; sizes.microbatches > 0; --sizes.microbatches)
    if (const auto holds = peak(*r.schedule, sizes)) return {sizes.microbatches, *holds};
  return {0, 0};
}

/// The largest number of microbatches, below the requested one, that stays within the limit; 0 if none does.
/// The peak grows with the number.
int most_within(const request& r) {
  int within = 0, too_many = r.sizes.microbatches;
  while (too_many - within > 1) {
    const int middle = within + (too_many - within) / 2;
    (held_by(r, middle).peak <= *r.memory_limit ? within : too_many) = middle;
  }
  return held_by(r, within).microbatches;
}

/// RC307: the peak of every rank must be within the limit. The alternatives are computed for schedules with
/// the same number of stages on a rank, since a stage is the unit.
void check_memory(report& out, const request& r, const std::vector<int>& peaks) {
  const auto highest = std::max_element(peaks.begin(), peaks.end());
  if (!r.memory_limit || *highest <= *r.memory_limit) return;
  sentence& s = refuse(out, 307);
  s << "rank " << highest - peaks.begin() << " holds the activations of " << *highest
    << " microbatches at once, more than memory_limit=" << fmt::format("{}", *r.memory_limit) << "; ";
  bool has_alternative = false;
  for (const known_schedule& other : portfolio().first(portfolio().size() - 1)) {  // all but the search
    if (!other.has_free_stages_per_rank && other.stages_per_rank != r.sizes.stages_per_rank) continue;
    const auto needs = peak(other, r.sizes);
    if (!needs || *needs > *r.memory_limit) continue;
    s << "take " << other.name << ", which holds " << *needs << ", or ";
    has_alternative = true;
  }
  if (const int fits = r.schedule ? most_within(r) : 0)
    s << "at most " << fits << (fits == 1 ? " microbatch" : " microbatches");
  else if (has_alternative) s << "raise the limit to " << *highest;
  else
    s << "no schedule with stages_per_rank=" << r.sizes.stages_per_rank
      << " holds so little; raise the limit to " << *highest;
}

std::string spelled(const action& a) {
  sentence s;
  s << a;
  return std::string(s.view());
}

/// The item that begins with action `i`: the action, or the OVERLAP of it and the next.
std::string item_at(const action_table& t, int i) {
  if (!t.actions[i].overlaps_next) return spelled(t.actions[i]);
  return "OVERLAP(" + spelled(t.actions[i]) + "," + spelled(t.actions[i + 1]) + ")";
}

json compute_of(const action_table& t, int rank) {
  json out = json::array();
  for (int i = t.begin[rank]; i < t.begin[rank + 1]; i += t.actions[i].overlaps_next ? 2 : 1)
    out.push_back(item_at(t, i));
  return out;
}

json program_of(const action_table& t, const communication& c, int rank) {
  json out = json::array();
  const auto add = [&](int end, token_kind forward, token_kind backward) {
    const action& a = t.actions[end];
    out.push_back(spell({a.kind == action_kind::F ? forward : backward, a.stage, a.microbatch, -1}));
  };
  each_step(
      t, c, rank, [&](const message& x) { add(x.consumer, token_kind::RECV_F, token_kind::RECV_B); },
      [&](int i) { out.push_back(item_at(t, i)); },
      [&](const message& x) { add(x.producer, token_kind::SEND_F, token_kind::SEND_B); });
  return out;
}

}  // namespace

void answer_schedule(const json& line, json& answer, report& out) {
  request r = read(line, out);
  if (!out.empty()) return;
  const action_table t = make_table(fields(line, out), r, out);
  if (!out.empty()) return;
  const totals all = total(t, r.sizes.costs);
  check_memory(out, r, all.peak_activations);
  if (!out.empty()) return;

  const communication messages = communicate(t, r.sizes.costs);
  json compute = json::array(), program = json::array();
  for (int rank = 0; rank < t.ranks(); ++rank) {
    compute.push_back(compute_of(t, rank));
    program.push_back(program_of(t, messages, rank));
  }
  answer["stage_to_rank"] = t.rank_of_stage;
  if (t.bidirectional()) {
    answer["stage_to_rank_rev"] = t.reversed_rank_of_stage;
    answer["mb_split"] = t.reversed_from;
  }
  answer["compute"] = std::move(compute);
  answer["program"] = std::move(program);
  answer["makespan"] = all.makespan;
  answer["program_makespan"] = messages.when.makespan;
  answer["lower_bound"] = lower_bound(t, r.sizes.costs);
  answer["bubble"] = all.bubble;
  answer["window_bubble"] = all.window_bubble;
  answer["bubble_per_rank"] = all.bubble_per_rank;
  answer["peak_activations"] = all.peak_activations;
  answer["slots"] = messages.slots;
}

}  // namespace rankc::tool
