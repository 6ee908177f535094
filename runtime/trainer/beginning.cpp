// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/beginning.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/recipe_changes.hpp>
#include <rankc/trainer/run_data.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

namespace rankc::runtime {

namespace {

constexpr double default_share = 0.05;  // share of the data that --eval-every holds out by default
constexpr std::int64_t default_steps = 100;
constexpr const char* dtype_names[]{"f32", "f64", "bf16"};

/// The order that --shuffle names. Megatron's order is made for the samples of the run; a run that already
/// has such an order keeps it.
std::string order_of(const run_state& state, const description& about, const std::string& asked) {
  const shuffle_spec order = parse_shuffle(asked), before = parse_shuffle(state.shuffle);
  if (order.how != shuffle_spec::kind::megatron || order.samples > 0) return asked;
  if (before.how == order.how && before.seed == order.seed) return state.shuffle;
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() / about.global_batch();
  if (state.last_step > most)
    throw failure(
        2,
        "RC6060: --shuffle {} orders at most 2^31 - 1 samples, which are {} steps of {}, but the run takes "
        "{}; give megatron:SEED:SAMPLES, or a SEED alone",
        asked, most, about.global_batch(), state.last_step);
  return fmt::format("megatron:{}:{}", order.seed, state.last_step * about.global_batch());
}

/// Commands that do not train read all of their own data in file order.
void set_data(run_state& state, const description& about, const options& o) {
  if (o.data) {
    state.data = *o.data;
    state.labels = o.labels.value_or("");
  }
  if (o.data && o.run != options::command::train) {
    state.shuffle.clear();
    state.eval_data.clear();
    state.eval_fraction = 0;
    return;
  }
  state.shuffle = order_of(state, about, o.shuffle.value_or(state.shuffle));
  if (o.eval_data) state.eval_data = *o.eval_data;
  if (o.eval_fraction) {
    state.eval_fraction = *o.eval_fraction;
    state.eval_data.clear();
  } else if (o.eval_every > 0 && state.eval_data.empty() && state.eval_fraction == 0) {
    state.eval_fraction = default_share;
  }
  if (o.eval_every > 0) state.eval_every = o.eval_every;
  if (o.eval_batches > 0) state.eval_batches = o.eval_batches;
}

void set_recipe(recipe& r, const options& o, std::int64_t last_step) {
  if (o.lr) r.lr = *o.lr;
  if (o.weight_decay) r.weight_decay = *o.weight_decay;
  if (o.clip) r.clip = *o.clip;
  if (o.schedule) set_schedule(r, *o.schedule, last_step);
  if (const double most = highest_end(r); most > r.lr)
    throw failure(
        2,
        "RC6000: --lr {} is below {}, which the schedule {} leads to; give a larger --lr or another "
        "--lr-schedule, such as constant",
        fmt::format("{}", r.lr), fmt::format("{}", most), schedule_text(schedule_of(r)));
}

std::string words_of(const recipe& r) {
  std::string out = fmt::format("learning rate: {}", r.lr);
  const lr_schedule schedule = schedule_of(r);
  for (int i = 0; i < schedule.count; ++i) {
    const lr_piece& piece = schedule.pieces[i];
    if (piece.shape == lr_shape::constant) out += fmt::format(", constant for {} steps", piece.steps);
    else if (piece.to == peak) out += fmt::format(", {} steps of warm-up", piece.steps);
    else
      out += fmt::format(", {} to {} over {} steps", piece.shape == lr_shape::linear ? "linear" : "cosine",
                         piece.to, piece.steps);
  }
  return out;
}

}  // namespace

beginning begin_run(const description& about, const options& o, console& say) {
  beginning b;
  if (o.load.empty()) {
    b.state.init = o.init;
    b.state.data = "arith:1234";
    b.state.train = about.train;
    b.state.last_step = default_steps;
  } else {
    b.from = open_newest(about, o.load, o.where);
    b.state = b.from->state;
    for (const std::string& note : b.from->notes) say.line("note: " + note);
    if (b.state.plan_hash != about.plan_hash)
      say.line(fmt::format(
          "note: {} was saved by plan {:016x}, and this is {:016x}; it loads where the tensors agree",
          b.from->folder.string(), b.state.plan_hash, about.plan_hash));
  }
  b.state.plan_hash = about.plan_hash;
  if (o.run == options::command::train && o.steps > 0) b.state.last_step = o.steps;
  if (o.data && !o.labels && !b.state.labels.empty())
    say.line("note: " +
             runtime::say("RC6291: --data {} is given without --labels, so its labels are its tokens, but "
                          "the run had --labels {}; for other labels give --labels PREFIX",
                          *o.data, b.state.labels));
  set_data(b.state, about, o);
  set_recipe(b.state.train, o, b.state.last_step);
  if (b.from && o.run == options::command::train)
    for (const std::string& note : recipe_changes(about, b.from->state, b.state.train))
      say.line("note: " + note);
  return b;
}

void set_weights(engine& e, const beginning& b, const options& o, console& say) {
  if (b.from) return load_checkpoint(e, *b.from);
  if (const auto seed = hash_seed(b.state.init)) return initialise(e, *seed);
  std::vector<std::string> notes;
  const std::vector<std::string> started = load_weights(e, b.state.init, o.where, &notes);
  for (const std::string& note : notes) say.line("note: " + note);
  if (!started.empty())
    say.line(
        fmt::format("note: {} has no LoRA adapters; {} parameters of lora start with the values of --init "
                    "hash:1, {} to {}",
                    b.state.init, started.size(), started.front(), started.back()));
}

std::uint64_t tokens_per_step(const description& about) {
  return static_cast<std::uint64_t>(about.global_batch()) * static_cast<std::uint64_t>(about.seq);
}

void say_what_runs(const description& about, const options& o, const beginning& b, const run_data& data,
                   console& say) {
  std::uint64_t parameters = 0;
  for (const global_parameter& p : global_parameters(about)) parameters += p.count();
  say.line(fmt::format("{}: {} ranks (pp {}, dp {}{}{}, tp {}), {} parameters, {} tokens per step, {}",
                       about.name, about.world(), about.pp, about.dp,
                       about.cp > 1 ? fmt::format(", cp {}", about.cp) : "",
                       about.independent_experts ? fmt::format(", ep {}", about.ep) : "", about.tp,
                       parameters, tokens_per_step(about), dtype_names[static_cast<int>(about.type)]));
  if (about.note[0] != '\0') say.line(fmt::format("note: {}", about.note));
  say.line(fmt::format("weights: {}", b.from ? b.from->folder.string() : b.state.init));
  if (o.run == options::command::evaluate) return;
  const auto batch = static_cast<std::uint64_t>(about.global_batch());
  const auto epoch = data.trained.epoch(data_part::trained);
  const auto samples = static_cast<std::uint64_t>(b.state.last_step - b.state.step) * batch;
  const std::string epochs = data.trained.epochs_text(samples, *b.state.read);
  say.line(fmt::format("data: {}{}", data.trained.text(),
                       epochs.empty() ? "" : fmt::format("; {} steps are {}", b.state.last_step, epochs)));
  if (epoch && *epoch < batch)
    say.line(fmt::format(
        "note: the data is through after {} samples, and a batch has {}: it has some of them twice", *epoch,
        batch));
  if (data.evaluated) say.line(fmt::format("held-out data: {}", data.evaluated->text()));
  else if (const auto held = data.trained.epoch(data_part::held_out); data.holds_out && held)
    say.line(fmt::format("held-out data: the last {} samples of it", *held));
  say.line(words_of(b.state.train));
  if (const auto note = steps_without_rate(b.state.train, b.state.step + 1, b.state.last_step))
    say.line("note: " + *note);
}

}  // namespace rankc::runtime
