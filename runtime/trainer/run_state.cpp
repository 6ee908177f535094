// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/run_state.hpp>

#include "data_record_json.hpp"
#include "json/json_checksum.hpp"
#include "json/json_text.hpp"
#include "optimizer_json.hpp"
#include <rankc/runtime/output_file.hpp>
#include <rankc/runtime/parse.hpp>
#include <rankc/trainer/learning_rate.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace rankc::runtime {
namespace {

using nlohmann::ordered_json;

/// The recipe values by which a resumed run detects that its plan was edited.
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
  return {.lr = field<double>(r, "lr"),
          .weight_decay = field<double>(r, "weight_decay"),
          .clip = field<double>(r, "clip"),
          .beta1 = field<double>(r, "beta1"),
          .beta2 = field<double>(r, "beta2"),
          .eps = field<double>(r, "eps"),
          .warmup_steps = 0,
          .decay_steps = 0,
          .min_lr = 0,
          .momentum = field<double>(r, "momentum"),
          .nesterov = field<bool>(r, "nesterov"),
          .schedule = read_schedule(field<std::string>(r, "schedule"))};
}

/// Replaces the recipe values that a run can set.
void read_settings(const ordered_json& r, recipe& to) {
  to.lr = field<double>(r, "lr");
  to.weight_decay = field<double>(r, "weight_decay");
  to.clip = field<double>(r, "clip");
  to.warmup_steps = field<int>(r, "warmup_steps");
  to.decay_steps = field<int>(r, "decay_steps");
  to.min_lr = field<double>(r, "min_lr");
  to.schedule = read_schedule(field_or<std::string>(r, "schedule", ""));
  to.rounding_seed = field<std::uint32_t>(r, "rounding_seed");
}

/// Errors: std::invalid_argument that names key and value.
std::uint64_t hash_field(const ordered_json& object, const char* key) {
  const auto text = field<std::string>(object, key);
  const auto hash = parse_number<std::uint64_t>(text, 16);
  if (!hash) throw std::invalid_argument(fmt::format("{} is {}, expected hexadecimal digits", key, text));
  return *hash;
}

}  // namespace

std::string run_state_text(const run_state& state, const description& about) {
  const recipe& r = state.train;
  ordered_json optimizer = json_of_optimizer(optimizer_of(about));
  optimizer.update({{"moments", about.moments},
                    {"bf16_moments", about.bf16_moments},
                    {"bf16_weights", about.bf16_weights}});
  ordered_json root = {
      {"plan", about.name},
      {"plan_hash", fmt::format("{:016x}", about.plan_hash)},
      {"step", state.step},
      {"samples", state.samples},
      {"tokens", state.tokens},
      {"init", json_of_text(state.init)},
      {"data", json_of_text(state.data)},
      {"labels", json_of_text(state.labels)},
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
      {"optimizer", optimizer},
      {"layout",
       {{"pp", about.pp},
        {"dp", about.dp},
        {"cp", about.cp},
        {"tp", about.tp},
        {"microbatches", about.microbatches},
        {"rows", about.rows},
        {"seq", about.seq}}},
  };
  if (state.skipped > 0) root["skipped"] = state.skipped;
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
    run_state state{.step = field<std::int64_t>(root, "step"),
                    .samples = field<std::uint64_t>(root, "samples"),
                    .last_step = field_or<std::int64_t>(root, "last_step", 0),
                    .init = text_field(root, "init"),
                    .data = text_field(root, "data"),
                    .labels = root.contains("labels") ? text_field(root, "labels") : "",
                    .shuffle = field_or<std::string>(root, "shuffle", ""),
                    .eval_data = root.contains("eval_data") ? text_field(root, "eval_data") : "",
                    .eval_fraction = field_or<double>(root, "eval_fraction", 0),
                    .train = about.train,
                    .plan_hash = hash_field(root, "plan_hash"),
                    .seq = field_or<int>(value_of(root, "layout"), "seq", about.seq),
                    .eval_every = field_or<std::int64_t>(root, "eval_every", 0),
                    .eval_batches = field_or<std::int64_t>(root, "eval_batches", 10)};
    if (state.step < 0 || state.seq < 1 || state.eval_every < 0 || state.eval_batches < 1)
      throw std::invalid_argument("step, seq, eval_every or eval_batches is below its least value");
    state.skipped = field_or<std::int64_t>(root, "skipped", 0);
    if (state.skipped < 0 || state.skipped > state.step)
      throw std::invalid_argument("skipped is not between 0 and step");
    state.plan = field_or<std::string>(root, "plan", "");
    state.tokens = field_or(root, "tokens", state.samples * static_cast<std::uint64_t>(state.seq));
    if (root.contains("read")) state.read = record_of_json(root["read"]);
    if (state.read && state.read->first > state.samples)
      throw std::invalid_argument("its data begins after its last sample");
    if (root.contains("optimizer") && root["optimizer"].contains("name"))
      state.optimizer = optimizer_of_json(root["optimizer"]);
    if (root.contains("plan_recipe")) state.plan_train = plan_of_json(root["plan_recipe"]);
    read_settings(value_of(root, "recipe"), state.train);
    return state;
  } catch (const std::exception& e) {
    refuse_other_version(file, checkpoint_code, e);
  }
}

}  // namespace rankc::runtime
