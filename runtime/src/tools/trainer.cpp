// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/trainer.hpp>

#include "refusal.hpp"
#include <rankc/runtime/tools/checkpoint.hpp>
#include <rankc/runtime/tools/data.hpp>
#include <rankc/runtime/tools/learning_rate.hpp>
#include <rankc/runtime/tools/metrics.hpp>
#include <rankc/runtime/tools/not_finite.hpp>
#include <rankc/runtime/tools/parameters.hpp>
#include <rankc/runtime/tools/saver.hpp>
#include <rankc/runtime/tools/trace_file.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

void say(const options& o, const std::string& line) {
  if (!o.speaks()) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Where a run begins, and the checkpoint that holds its weights (none: `state.init` says).
struct beginning {
  run_state state;
  std::optional<open_checkpoint> from;
};

beginning begin_run(const description& about, const options& o) {
  beginning b;
  if (o.load.empty()) {
    b.state.init = o.init;
    b.state.data = "arith:1234";
    b.state.train = about.train;
  } else {
    b.from = open_newest(about, o.load, o.where);
    b.state = b.from->state;
    for (const std::string& note : b.from->notes) say(o, "note: " + note);
    if (b.state.plan_hash != about.plan_hash)
      say(o, fmt::format(
                 "note: {} was saved by plan {:016x}, and this is {:016x}; it loads where the tensors agree",
                 b.from->folder.string(), b.state.plan_hash, about.plan_hash));
  }
  b.state.plan_hash = about.plan_hash;
  recipe& r = b.state.train;
  if (o.data) b.state.data = *o.data;
  if (o.lr) r.lr = *o.lr;
  if (o.weight_decay) r.weight_decay = *o.weight_decay;
  if (o.clip) r.clip = *o.clip;
  if (o.schedule) set_schedule(r, *o.schedule, b.state.step + o.steps);
  if (r.decay_steps > 0 && r.min_lr > r.lr)
    throw refusal(2,
                  "--lr {}: is below the schedule's floor {}; give one with --lr-schedule "
                  "cosine:{}:{}:MIN_LR, or constant",
                  r.lr, r.min_lr, r.warmup_steps, r.decay_steps);
  return b;
}

void set_weights(engine& e, const beginning& b, const options& o) {
  if (b.from) return load_checkpoint(e, *b.from);
  if (const auto seed = hash_seed(b.state.init)) return initialise(e, *seed);
  const std::vector<std::string> started = load_weights(e, b.state.init, o.where);
  if (!started.empty())
    say(o, fmt::format("note: {} has nothing beside its weights; {} parameters of lora start as by hash:1, {} to {}", b.state.init,
                       started.size(), started.front(), started.back()));
}

std::uint64_t tokens_per_step(const description& about) {
  return static_cast<std::uint64_t>(about.global_batch()) * static_cast<std::uint64_t>(about.seq);
}

void say_what_runs(const description& about, const options& o, const beginning& b, const dataset& data) {
  std::uint64_t parameters = 0;
  for (const global_parameter& p : global_parameters(about)) parameters += p.count();
  say(o, fmt::format("{}: {} ranks (pp {}, dp {}, tp {}), {} parameters, {} tokens per step", about.name,
                     about.world(), about.pp, about.dp, about.tp, parameters, tokens_per_step(about)));
  say(o, fmt::format("weights: {}", b.from ? b.from->folder.string() : b.state.init));
  say(o, fmt::format("data: {}", data.text()));
}

std::string schedule_text(const recipe& r) {
  const auto warmup = r.warmup_steps > 0 ? fmt::format(", {} steps of warm-up", r.warmup_steps) : "";
  const auto decay =
      r.decay_steps > 0 ? fmt::format(", cosine to {} over {} steps", r.min_lr, r.decay_steps) : "";
  return fmt::format("learning rate: {}{}{}", r.lr, warmup, decay);
}

/// One step; a timed one where `trace` is there to receive it.
step_metrics take_step(engine& e, const dataset& data, run_state& state, const placement& where,
                       std::vector<traced>* trace) {
  const description& about = e.about();
  const recipe& r = state.train;
  const double lr = learning_rate(r, state.step + 1);
  const auto start = std::chrono::steady_clock::now();
  set_batch(e, data, state.samples);
  const step_input in{.lr = lr,
                      .weight_decay = r.weight_decay,
                      .clip = r.clip,
                      .beta1 = r.beta1,
                      .beta2 = r.beta2,
                      .eps = r.eps,
                      .step = state.step + 1,
                      .momentum = r.momentum,
                      .nesterov = r.nesterov,
                      .rounding_seed = r.rounding_seed};
  const step_output out = trace != nullptr ? e.traced_step(in, *trace) : e.step(in);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  state.step += 1;
  state.samples += static_cast<std::uint64_t>(about.global_batch());
  refuse_if_not_finite(e, where, in, out);
  step_metrics m{.step = state.step,
                 .loss = out.loss,
                 .grad_norm = out.grad_norm,
                 .lr = lr,
                 .tokens = state.samples * static_cast<std::uint64_t>(about.seq),
                 .step_ms = 1e3 * seconds,
                 .tokens_per_s = static_cast<double>(tokens_per_step(about)) / seconds,
                 .mfu = {},
                 .peak_bytes = 0};
  if (about.peak_flops > 0)
    m.mfu = m.tokens_per_s * about.flops_per_token / (about.peak_flops * about.world());
  for (int rank = 0; rank < about.world(); ++rank) m.peak_bytes = std::max(m.peak_bytes, e.arena_bytes(rank));
  return m;
}

/// Say how saves went that have ended.
void say_saves(const options& o, saver& saves, const char* then) {
  for (const saver::outcome& ended : saves.news()) {
    if (ended.saved) say(o, ended.line);
    else if (o.speaks()) fmt::print(stderr, "{}: {}{}\n", o.save, ended.line, then);
  }
}

}  // namespace

void train(const description& about, const install_engine& install, const options& o) {
  const beginning b = begin_run(about, o);
  const dataset data(parse_data_spec(b.state.data), about.vocab_used, about.seq);
  std::optional<saver> saves;
  if (!o.save.empty()) saves.emplace(about, o.save, o.keep, o.where);
  std::optional<metrics_file> metrics;
  if (!o.metrics.empty() && o.speaks()) metrics.emplace(o.metrics, !o.load.empty());
  std::optional<trace_file> trace;
  if (!o.trace.empty() && o.speaks()) trace.emplace(o.trace);
  say_what_runs(about, o, b, data);
  say(o, schedule_text(b.state.train));
  const auto e = install();
  set_weights(*e, b, o);
  run_state state = b.state;
  const std::int64_t first = state.step + 1, last = state.step + o.steps;
  while (state.step < last) {
    std::vector<traced> times;
    const bool timed = !o.trace.empty() && state.step + 1 == last;
    const step_metrics m = take_step(*e, data, state, o.where, timed ? &times : nullptr);
    if (metrics) metrics->write(m);
    if (is_shown(m.step, first, last)) say(o, console_line(m, last));
    const bool due = m.step == last || (o.save_every > 0 && m.step % o.save_every == 0);
    if (saves && due) saves->begin(*e, state);
    if (saves) say_saves(o, *saves, "; training goes on, and the next save tries again");
    if (timed && trace) say(o, trace->write(about, m.step, times));
  }
  if (!saves) return;
  const bool saved = saves->finish();
  say_saves(o, *saves, "");
  if (!saved) throw refusal(65, "the last save failed; {}", o.save);
}

void evaluate(const description& about, const install_engine& install, const options& o) {
  const beginning b = begin_run(about, o);
  const dataset data(parse_data_spec(b.state.data), about.vocab_used, about.seq);
  say_what_runs(about, o, b, data);
  const auto e = install();
  set_weights(*e, b, o);
  double sum = 0;
  for (std::int64_t batch = 0; batch < o.steps; ++batch) {
    set_batch(*e, data, static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(about.global_batch()));
    const double loss = e->evaluate();
    if (!std::isfinite(loss)) throw refusal(70, "batch {}: the loss is {}", batch + 1, loss);
    sum += loss;
  }
  say(o, fmt::format("eval: loss {:.12f} nats per token over {} batches of {} tokens",
                     sum / static_cast<double>(o.steps), o.steps, tokens_per_step(about)));
}

}  // namespace rankc::runtime
