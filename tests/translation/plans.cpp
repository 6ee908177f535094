// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <01_gpt_one_rank.hpp>
#include <02_gpt_pp2.hpp>
#include <03_gpt_dp2_tp2_pp2.hpp>
#include <04_llama3_8b.hpp>
#include <05_schedules.hpp>
#include <08_sharded_weights.hpp>
#include <rankc/plan/make_plan.hpp>

namespace translation {

std::vector<rankc::plan_data> example_plans() {
  using rankc::make_plan;
  return {make_plan("gpt_one_rank", plans::gpt_one_rank),       make_plan("gpt_pp2", plans::gpt_pp2),
          make_plan("gpt_dp2_tp2_pp2", plans::gpt_dp2_tp2_pp2), make_plan("llama3_8b", plans::llama3_8b),
          make_plan("gpt_dual_pipe_v", plans::gpt_dual_pipe_v), make_plan("gpt_by_hand", plans::gpt_by_hand)};
}

rankc::plan_data sharded_plan() { return rankc::make_plan("gpt_sharded", plans::gpt_sharded); }

}  // namespace translation
