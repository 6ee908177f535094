// SPDX-License-Identifier: Apache-2.0
// Tiny plans of every kind, small enough to run over the field: few layers of few numbers, every axis and
// schedule.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include "../machine/execution.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace field {

/// Valid plans of GPT-2, Llama and models with experts: every schedule and axis, tied tables, and several
/// microbatches.
std::vector<rankc::plan_data> tiny_plans();

/// Plans whose attention alternates between a window with a softcap and full attention with a scale. Every
/// third plan has documents.
std::vector<rankc::plan_data> windowed_plans();

/// Plans with labels that are ignored. Some plans have documents or experts.
std::vector<rankc::plan_data> masked_plans();

/// Plans whose labels have weights. Some labels are ignored.
std::vector<rankc::plan_data> weighted_plans();

/// Such plans with fp8 linear layers.
std::vector<rankc::plan_data> narrowed_plans();

/// Such plans with experts spread over ranks; with independent experts; with router losses, some also with
/// spread experts; and with group-limited routers that have a bias.
std::vector<rankc::plan_data> spread_plans(), apart_plans(), balanced_plans(), biased_plans();

/// A drawn plan, with users' layers; empty if it is not valid or has more ranks.
std::optional<rankc::plan_data> drawn_plan(std::uint64_t seed, std::uint64_t index, int most_ranks);
/// The first `count` drawn plans.
std::vector<rankc::plan_data> drawn_plans(std::uint64_t seed, int count, int most_ranks);

/// A program, its model and the rows that the runtime loads into its ranks.
struct subject {
  std::string name;
  rankc::codegen::program program;
  rankc::codegen::specification model;
  std::shared_ptr<const execution::loader> loads = nullptr;
};

/// The rows that the runtime loads into all ranks of a plan, from the plan's degrees alone.
execution::loader loader_of(const rankc::plan_data&);

/// Both programs of a plan, lowered for a target. The model of programs for CUDA allows gradients to be sent
/// in bf16.
std::vector<subject> subjects_of(const rankc::plan_data&, rankc::codegen::dtype, rankc::codegen::target);
/// One program of a plan. The targets alternate with `turn`; most are training programs.
subject subject_of(const rankc::plan_data&, std::size_t turn);
/// One program of each plan.
std::vector<subject> subjects_of(const std::vector<rankc::plan_data>&);

}  // namespace field
