// SPDX-License-Identifier: Apache-2.0
// RC120, RC230 to RC232, RC314, RC315: the parts that a plan must have, and the members that its model and
// its schedule must have.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/base/diagnostic.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/schedule/actions.hpp>

#include <concepts>

namespace rankc {

/// Placeholders for parts that a plan must name.
struct no_model {};
struct no_schedule {};

namespace detail {

template <class S>
concept has_microbatches = requires(const S s) {
  { s.microbatches } -> std::convertible_to<int>;
};
template <class S>
concept has_stages_per_rank = requires(const S s) {
  { s.stages_per_rank } -> std::convertible_to<int>;
};
template <class S>
concept has_name = requires(const S s) {
  { s.name } -> std::convertible_to<std::string_view>;
};
template <class S>
concept places_stages = requires(const S s) {
  { s.rank_of_stage(0, 1) } -> std::convertible_to<int>;
};
template <class S>
concept has_actions = requires(const S s) {
  { s.table(1) } -> std::convertible_to<action_table>;
} || requires(const S s) { s.actions(1, 0, [](const action&) {}); };
/// A type that a plan accepts as its schedule.
template <class S>
concept a_schedule =
    has_microbatches<S> && has_stages_per_rank<S> && has_name<S> && places_stages<S> && has_actions<S>;

template <class M>
concept has_stack = requires(const M m) { m.stack(); };
template <class M>
concept checks_sizes = requires(const M m, report out) { m.check(out); };
template <class M>
concept has_vocab = requires(const M m) {
  { m.vocab } -> std::convertible_to<int>;
};
template <class M>
concept has_vocab_used = requires(const M m) {
  { m.vocab_used } -> std::convertible_to<int>;
};
/// A model without tokens has no vocabulary.
template <class M>
concept reads_no_tokens = requires { requires !M::reads_tokens; };
template <class M>
concept has_vocabulary = reads_no_tokens<M> || (has_vocab<M> && has_vocab_used<M>);
/// A type that a plan accepts as its model.
template <class M>
concept a_model = has_stack<M> && checks_sizes<M> && has_vocabulary<M>;

struct member {
  bool is_there;
  std::string_view text;
};

/// "has no microbatches and no name": the members that are missing.
constexpr void put_missing(sentence& s, std::initializer_list<member> members) {
  std::string_view separator = " has no ";
  for (const member& m : members) {
    if (m.is_there) continue;
    s << separator << m.text;
    separator = " and no ";
  }
}

/// RC230: the plan has a model. RC232: the model has all members.
template <class Model>
constexpr void check_model_part(report& out, const Model&) {
  if constexpr (std::same_as<Model, no_model>)
    refuse(out, 230)
        << "the plan has no model: write .model = models::gpt2{...}, models::llama{...} or one of your "
        << "own";
  else if constexpr (!a_model<Model>) {
    sentence& s = refuse(out, 232) << "the model";
    put_missing(s, {{has_stack<Model>, "stack()"},
                    {checks_sizes<Model>, "check(report&)"},
                    {has_vocab<Model> || reads_no_tokens<Model>, "vocab"},
                    {has_vocab_used<Model> || reads_no_tokens<Model>, "vocab_used"}});
    s << "; a model has a const stack() of layers, a const check(report&), int vocab and int vocab_used, as "
         "models::gpt2 has; a model without tokens has static constexpr bool reads_tokens = false in place "
         "of "
         "the vocabulary";
  }
}

/// RC314: the plan has a schedule. RC315: the schedule has all members.
template <class Schedule>
constexpr void check_schedule_part(report& out, const Schedule& schedule) {
  if constexpr (std::same_as<Schedule, no_schedule>)
    refuse(out, 314)
        << "the plan has no schedule: write .schedule = schedules::one_f_one_b{.microbatches = 4}, or "
        << "schedules::gpipe{.microbatches = 1} on one rank";
  else if constexpr (!a_schedule<Schedule>) {
    sentence& s = refuse(out, 315) << "the schedule";
    if constexpr (has_name<Schedule>) s << " " << std::string_view(schedule.name);
    put_missing(s, {{has_microbatches<Schedule>, "microbatches"},
                    {has_stages_per_rank<Schedule>, "stages_per_rank"},
                    {has_name<Schedule>, "name"},
                    {places_stages<Schedule>, "rank_of_stage(stage, pp)"},
                    {has_actions<Schedule>, "actions(pp, rank, emit)"}});
    s << "; a schedule has int microbatches and stages_per_rank, a static std::string_view name, and const "
         "functions "
      << "rank_of_stage(stage, pp) and actions(pp, rank, emit) or table(pp), as schedules::gpipe has";
  }
}

}  // namespace detail

/// Appends the parts that a plan lacks, and the members that its model and its schedule lack.
/// Errors: RC120, RC230 to RC232, RC314, RC315.
constexpr void check_parts(report& out, const auto& model, const auto& schedule, const training& recipe,
                           const cluster& machines) {
  detail::check_model_part(out, model);
  detail::check_schedule_part(out, schedule);
  if (recipe == training{})
    refuse(out, 231) << "the plan has no recipe: write .recipe = training{.seq = 128, .global_batch = 16}";
  if (machines == cluster{})
    refuse(out, 120)
        << "the plan has no cluster: write .cluster = clusters::cpu, clusters::h200<1> or one of your own";
}

}  // namespace rankc
