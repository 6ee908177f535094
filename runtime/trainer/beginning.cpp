// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/beginning.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/parameters.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace rankc::runtime {

namespace {

constexpr double default_share = 0.05;  // of the data that --eval-every holds out where nothing else is said
constexpr std::int64_t default_steps = 100;
constexpr const char* dtype_names[]{"f32", "f64", "bf16"};

void set_data(run_state& state, const description& about, const options& o) {
  if (o.data) state.data = *o.data;
  if (o.shuffle) state.shuffle = *o.shuffle;
  if (o.eval_data) state.eval_data = *o.eval_data;
  if (o.eval_fraction) state.eval_fraction = *o.eval_fraction;
  else if (o.eval_every > 0 && state.eval_data.empty() && state.eval_fraction == 0)
    state.eval_fraction = default_share;
  if (const shuffle_spec s = parse_shuffle(state.shuffle);
      s.how == shuffle_spec::kind::megatron && s.samples == 0)
    state.shuffle = fmt::format("megatron:{}:{}", s.seed, state.last_step * about.global_batch());
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
  set_data(b.state, about, o);
  set_recipe(b.state.train, o, b.state.last_step);
  return b;
}

void set_weights(engine& e, const beginning& b, const options& o, console& say) {
  if (b.from) return load_checkpoint(e, *b.from);
  if (const auto seed = hash_seed(b.state.init)) return initialise(e, *seed);
  std::vector<std::string> notes;
  const std::vector<std::string> started = load_weights(e, b.state.init, o.where, &notes);
  for (const std::string& note : notes) say.line("note: " + note);
  if (!started.empty())
    say.line(fmt::format(
        "note: {} has nothing beside its weights; {} parameters of lora start as by hash:1, {} to {}",
        b.state.init, started.size(), started.front(), started.back()));
}

run_data open_data(const description& about, const run_state& state) {
  const bool apart = !state.eval_data.empty();
  run_data data{dataset(parse_data_spec(state.data), about.vocab_used, about.seq,
                        {parse_shuffle(state.shuffle), apart ? 0 : state.eval_fraction}),
                std::nullopt, apart || state.eval_fraction > 0};
  if (apart) data.evaluated.emplace(parse_data_spec(state.eval_data), about.vocab_used, about.seq);
  return data;
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
  const auto batch = static_cast<std::uint64_t>(about.global_batch());
  const auto epoch = data.trained.epoch(data_part::trained);
  const bool trains = o.run == options::command::train;
  const std::uint64_t samples = trains ? static_cast<std::uint64_t>(b.state.last_step) * batch
                                       : static_cast<std::uint64_t>(o.steps) * batch;
  say.line(fmt::format(
      "data: {}{}", data.trained.text(),
      epoch ? fmt::format("; {} steps are {}", samples / batch, data.trained.epochs_text(samples)) : ""));
  if (epoch && *epoch < batch)
    say.line(fmt::format(
        "note: the data is through after {} samples, and a batch has {}: it has some of them twice", *epoch,
        batch));
  if (!trains) return;
  if (data.evaluated) say.line(fmt::format("held-out data: {}", data.evaluated->text()));
  else if (const auto held = data.trained.epoch(data_part::held_out); held && *held > 0)
    say.line(fmt::format("held-out data: the last {} samples of it", *held));
  say.line(words_of(b.state.train));
}

double held_out_loss(engine& e, const run_data& data, std::int64_t batches) {
  const auto batch = static_cast<std::uint64_t>(e.about().global_batch());
  std::uint64_t count = static_cast<std::uint64_t>(batches);
  if (const auto held = data.held_out().epoch(data.held_part()))
    count = std::min(count, std::max<std::uint64_t>(1, *held / batch));
  double sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    set_batch(e, data.held_out(), i * batch, data.held_part());
    sum += e.evaluate();
  }
  return sum / static_cast<double>(count);
}

}  // namespace rankc::runtime
