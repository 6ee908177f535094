// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/run_state.hpp>

#include "data_record_json.hpp"
#include "json_checksum.hpp"
#include "json_text.hpp"
#include <rankc/runtime/output_file.hpp>
#include <rankc/trainer/learning_rate.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace rankc::runtime {
namespace {

using nlohmann::ordered_json;

/// The values of a recipe by which a resumed run notices that its plan was edited.
ordered_json json_of_plan(const recipe& r) {
  return {{"lr", r.lr},
          {"weight_decay", r.weight_decay},
          {"clip", r.clip},
          {"schedule", schedule_text(schedule_of(r))},
          {"beta1", r.beta1},
          {"beta2", r.beta2},
          {"eps", r.eps},
          {"momentum", r.momentum},
          {"nesterov", r.nesterov}};
}

recipe plan_of_json(const ordered_json& r) {
  return {.lr = r.at("lr"),
          .weight_decay = r.at("weight_decay"),
          .clip = r.at("clip"),
          .beta1 = r.at("beta1"),
          .beta2 = r.at("beta2"),
          .eps = r.at("eps"),
          .warmup_steps = 0,
          .decay_steps = 0,
          .min_lr = 0,
          .momentum = r.at("momentum"),
          .nesterov = r.at("nesterov"),
          .schedule = read_schedule(r.at("schedule").get<std::string>())};
}

}  // namespace

std::string run_state_text(const run_state& state, const description& about) {
  const recipe& r = state.train;
  ordered_json root = {
      {"plan", about.name},
      {"plan_hash", fmt::format("{:016x}", about.plan_hash)},
      {"step", state.step},
      {"samples", state.samples},
      {"tokens", state.tokens},
      {"init", json_of_text(state.init)},
      {"data", json_of_text(state.data)},
      {"shuffle", state.shuffle},
      {"eval_data", json_of_text(state.eval_data)},
      {"eval_fraction", state.eval_fraction},
      {"eval_every", state.eval_every},
      {"eval_batches", state.eval_batches},
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
      {"plan_recipe", json_of_plan(about.train)},
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
  if (state.read) root["read"] = json_of_record(*state.read);
  root["checksum"] = checksum_of(root);
  return root.dump(2) + "\n";
}

void write_run_state(const run_state& state, const description& about, const std::filesystem::path& file) {
  write_output(file, run_state_text(state, about), checkpoint_code);
}

run_state read_run_state(const description& about, const std::filesystem::path& file) {
  const ordered_json root = read_checked_json(file, checkpoint_code);
  try {
    run_state state{.step = root.at("step"),
                    .samples = root.at("samples"),
                    .last_step = root.value("last_step", std::int64_t{0}),
                    .init = text_of_json(root.at("init")),
                    .data = text_of_json(root.at("data")),
                    .shuffle = root.value("shuffle", ""),
                    .eval_data = text_of_json(root.value("eval_data", ordered_json(""))),
                    .eval_fraction = root.value("eval_fraction", 0.0),
                    .train = about.train,
                    .plan_hash = std::stoull(root.at("plan_hash").get<std::string>(), nullptr, 16),
                    .seq = root.at("layout").value("seq", about.seq),
                    .eval_every = root.value("eval_every", std::int64_t{0}),
                    .eval_batches = root.value("eval_batches", std::int64_t{10})};
    if (state.seq < 1 || state.eval_every < 0 || state.eval_batches < 1)
      throw std::invalid_argument("seq, eval_every or eval_batches is below its least value");
    state.plan = root.value("plan", "");
    state.tokens = root.value("tokens", state.samples * static_cast<std::uint64_t>(state.seq));
    if (root.contains("read")) state.read = record_of_json(root["read"]);
    if (state.read && state.read->first > state.samples)
      throw std::invalid_argument("its data begins after its last sample");
    if (root.contains("plan_recipe")) state.plan_train = plan_of_json(root["plan_recipe"]);
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
    refuse_other_version(file, checkpoint_code, e);
  }
}

}  // namespace rankc::runtime
