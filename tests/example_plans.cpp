// SPDX-License-Identifier: Apache-2.0
#include "example_plans.hpp"

#include <01_gpt_one_rank.hpp>
#include <02_gpt_pp2.hpp>
#include <03_gpt_dp2_tp2_pp2.hpp>
#include <04_llama3_8b.hpp>
#include <05_schedules.hpp>
#include <06_gated_attention.hpp>
#include <07_latent_attention.hpp>
#include <08_sharded_weights.hpp>
#include <09_lora.hpp>
#include <rankc/plan/make_plan.hpp>

#include <stdexcept>
#include <string>

namespace examples {

namespace {

template <const auto& Plan>
rankc::plan_data made(const char* name) {
  return rankc::make_plan(name, Plan);
}

struct example {
  const char* name;
  rankc::plan_data (*make)(const char*);
};

constexpr example all[]{{"gpt_one_rank", made<::plans::gpt_one_rank>},
                        {"gpt_pp2", made<::plans::gpt_pp2>},
                        {"gpt_dp2_tp2_pp2", made<::plans::gpt_dp2_tp2_pp2>},
                        {"llama3_8b", made<::plans::llama3_8b>},
                        {"gpt_dual_pipe_v", made<::plans::gpt_dual_pipe_v>},
                        {"gpt_by_hand", made<::plans::gpt_by_hand>},
                        {"gpt_gated", made<::plans::gpt_gated>},
                        {"gpt_latent", made<::plans::gpt_latent>},
                        {"gpt_sharded", made<::plans::gpt_sharded>},
                        {"gpt_sharded_moments", made<::plans::gpt_sharded_moments>},
                        {"gpt_lora", made<::plans::gpt_lora>}};

}  // namespace

std::vector<rankc::plan_data> plans() {
  std::vector<rankc::plan_data> out;
  for (const example& e : all) out.push_back(e.make(e.name));
  return out;
}

rankc::plan_data plan(std::string_view name) {
  for (const example& e : all)
    if (e.name == name) return e.make(e.name);
  throw std::logic_error("there is no example " + std::string(name));
}

constinit const constants counted{
    .llama3_8b_sends = rankc::comm_bytes<::plans::llama3_8b>,
    .gpt_dp2_tp2_pp2 = rankc::peak_bytes<::plans::gpt_dp2_tp2_pp2>,
    .gpt_dual_pipe_v = rankc::peak_bytes<::plans::gpt_dual_pipe_v>,
    .llama3_8b = rankc::peak_bytes<::plans::llama3_8b>,
    .llama3_8b_on_host = rankc::peak_bytes<::plans::llama3_8b, rankc::lowering::target::host>};

}  // namespace examples
