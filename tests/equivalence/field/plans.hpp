// SPDX-License-Identifier: Apache-2.0
// Tiny plans of every kind that the field has the time for: few layers of few numbers, every axis and
// schedule.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace field {

/// Valid plans of GPT-2, Llama and models with experts: every schedule, every axis, tied tables, split of a
/// batch into microbatches.
std::vector<rankc::plan_data> tiny_plans();

/// Plans whose attention alternates between a window with a softcap and full attention with a scale. Every
/// third plan has documents.
std::vector<rankc::plan_data> windowed_plans();

/// Plans with labels that are ignored. Some plans have documents or experts.
std::vector<rankc::plan_data> masked_plans();

/// The same whose linear layers are in eight bits.
std::vector<rankc::plan_data> narrowed_plans();

/// The same whose experts are on ranks of their own; whose routers have losses, some of them with experts so
/// too; and whose routers choose of groups and with a bias.
std::vector<rankc::plan_data> spread_plans(), apart_plans(), balanced_plans(), biased_plans();

/// A drawn plan, with layers of a user's own; none: it is not valid, or has more ranks.
std::optional<rankc::plan_data> drawn_plan(std::uint64_t seed, std::uint64_t index, int most_ranks);
/// The first `count` of them.
std::vector<rankc::plan_data> drawn_plans(std::uint64_t seed, int count, int most_ranks);

/// A program, and the model that it is of.
struct subject {
  std::string name;
  rankc::codegen::program program;
  rankc::codegen::specification model;
};

/// Both programs of a plan, as they are lowered for a target.
std::vector<subject> subjects_of(const rankc::plan_data&, rankc::codegen::dtype, rankc::codegen::target);
/// One program of a plan: of either target in turn, most of training.
subject subject_of(const rankc::plan_data&, std::size_t turn);
/// One program of each plan.
std::vector<subject> subjects_of(const std::vector<rankc::plan_data>&);

}  // namespace field
