// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/run_state.hpp>

#include "json_checksum.hpp"
#include <rankc/launch/refusal.hpp>
#include <rankc/runtime/output_file.hpp>
#include <rankc/trainer/learning_rate.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rankc::runtime {
namespace {

using nlohmann::ordered_json;

}  // namespace

std::string run_state_text(const run_state& state, const description& about) {
  const recipe& r = state.train;
  ordered_json root = {
      {"plan", about.name},
      {"plan_hash", fmt::format("{:016x}", about.plan_hash)},
      {"step", state.step},
      {"samples", state.samples},
      {"init", state.init},
      {"data", state.data},
      {"shuffle", state.shuffle},
      {"eval_data", state.eval_data},
      {"eval_fraction", state.eval_fraction},
      {"last_step", state.last_step},
      {"recipe",
       {{"lr", r.lr},
        {"weight_decay", r.weight_decay},
        {"clip", r.clip},
        {"warmup_steps", r.warmup_steps},
        {"decay_steps", r.decay_steps},
        {"min_lr", r.min_lr},
        {"rounding_seed", r.rounding_seed},
        {"schedule", schedule_text(r.schedule)}}},
      {"optimizer",
       {{"moments", about.moments},
        {"bf16_moments", about.bf16_moments},
        {"bf16_weights", about.bf16_weights}}},
      {"layout",
       {{"pp", about.pp},
        {"dp", about.dp},
        {"cp", about.cp},
        {"tp", about.tp},
        {"microbatches", about.microbatches},
        {"rows", about.rows},
        {"seq", about.seq}}},
  };
  root["checksum"] = checksum_of(root);
  return root.dump(2) + "\n";
}

void write_run_state(const run_state& state, const description& about, const std::filesystem::path& file) {
  write_output(file, run_state_text(state, about), checkpoint_code);
}

run_state read_run_state(const description& about, const std::filesystem::path& file) {
  const ordered_json root = read_checked_json(file, 65);
  try {
    run_state state{.step = root.at("step"),
                    .samples = root.at("samples"),
                    .last_step = root.value("last_step", std::int64_t{0}),
                    .init = root.at("init"),
                    .data = root.at("data"),
                    .shuffle = root.value("shuffle", ""),
                    .eval_data = root.value("eval_data", ""),
                    .eval_fraction = root.value("eval_fraction", 0.0),
                    .train = about.train,
                    .plan_hash = std::stoull(root.at("plan_hash").get<std::string>(), nullptr, 16)};
    const ordered_json& r = root.at("recipe");
    state.train.lr = r.at("lr");
    state.train.weight_decay = r.at("weight_decay");
    state.train.clip = r.at("clip");
    state.train.warmup_steps = r.at("warmup_steps");
    state.train.decay_steps = r.at("decay_steps");
    state.train.min_lr = r.at("min_lr");
    state.train.schedule = read_schedule(r.value("schedule", ""));
    state.train.rounding_seed = r.at("rounding_seed");
    return state;
  } catch (const std::exception& e) {
    throw refusal(65, "{}: was not written by this version: {}", file.string(), e.what());
  }
}

}  // namespace rankc::runtime
