// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/trainer.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/launch/say_error.hpp>
#include <rankc/launch/stop_signals.hpp>
#include "mean_loss.hpp"
#include "steps.hpp"
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/earlier_run.hpp>
#include <rankc/trainer/not_finite.hpp>
#include <rankc/trainer/orderly_stop.hpp>
#include <rankc/trainer/outputs.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/replicas.hpp>
#include <rankc/trainer/run_data.hpp>
#include <rankc/trainer/saver.hpp>
#include <rankc/trainer/step_files.hpp>
#include <rankc/trainer/time_table.hpp>
#include <rankc/trainer/trace_file.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {
namespace {

using clock = std::chrono::steady_clock;

double since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

/// Runs a step. If `trace` is given, it receives the times.
step_metrics take_step(engine& e, batch_reader& batches, run_state& state, const placement& where,
                       std::vector<traced>* trace) {
  const description& about = e.about();
  const auto start = clock::now();
  set_batch(e, batches.next());
  const step_input in = next_input(state);
  const step_output out = trace != nullptr ? e.traced_step(in, *trace) : e.step(in);
  const double seconds = since(start);
  state.step += 1;
  state.skipped += out.is_skipped;
  state.samples += static_cast<std::uint64_t>(about.global_batch());
  state.tokens += tokens_per_step(about);
  refuse_if_not_finite(e, where, in, out);
  step_metrics m{.step = state.step,
                 .loss = out.loss,
                 .grad_norm = out.grad_norm,
                 .lr = in.lr,
                 .tokens = state.tokens,
                 .step_ms = 1e3 * seconds,
                 .tokens_per_s = static_cast<double>(tokens_per_step(about)) / seconds,
                 .mfu = {},
                 .peak_bytes = 0};
  m.is_skipped = out.is_skipped;
  m.routers = read_routers(e);
  if (about.predicted.is_known()) m.predicted_ms = about.predicted.step_ms;
  if (about.peak_flops > 0)
    m.mfu = m.tokens_per_s * about.flops_per_token / (about.peak_flops * about.world());
  for (int rank = 0; rank < about.world(); ++rank) m.peak_bytes = std::max(m.peak_bytes, e.arena_bytes(rank));
  return m;
}

/// The options that continue a run. A schedule that has ended at 0 needs a new one.
std::string options_to_go_on(const run_state& state, const std::string& save) {
  const bool has_ended = state.train.lr > 0 && learning_rate(state.train, state.last_step + 1) == 0;
  return fmt::format("--load {0} --save {0} --steps {1}{2}", save, 2 * state.last_step,
                     has_ended ? " --lr-schedule SCHEDULE" : "");
}

/// Prints the last lines: the result of the run, and commands that may follow it.
void say_ending(const description& about, const options& o, const run_data& data, const run_state& state,
                const step_metrics& last, std::int64_t steps, double seconds, console& say) {
  const auto tokens = static_cast<double>(steps) * static_cast<double>(tokens_per_step(about));
  const std::string epochs = data.trained.epochs_text(0, *state.read);
  say.line(fmt::format(
      "done: step {} of {} in {}, {:.0f} tokens/s{}; loss {:.4f}{}{}", state.step, state.last_step,
      duration_text(seconds), tokens / seconds, epochs.empty() ? "" : "; " + epochs, last.loss,
      last.eval_loss ? fmt::format(", held-out loss {:.4f}", *last.eval_loss) : "", unit_of_loss(about)));
  if (o.save.empty())
    return say.line(
        "next: nothing is saved; --save DIR keeps the weights, and --eval-every N shows the loss of data "
        "held out");
  const bool generates = about.layouts[static_cast<std::size_t>(about.loss_at())].logits.rows > 0;
  say.line(fmt::format("next: {0} train {1} goes on; {0} {2}", about.name, options_to_go_on(state, o.save),
                       generates
                           ? fmt::format("generate --load {} --prompt TEXT shows what it has learned", o.save)
                           : fmt::format("eval --load {} --data FILE", o.save)));
}

/// Prints the results of the saves that have ended.
void say_saves(const options& o, saver& saves, const char* then, console& say) {
  for (const saver::outcome& ended : saves.news()) {
    if (ended.saved) say.line(ended.line);
    else if (o.speaks()) say_error("{}: {}{}\n", o.save, ended.line, then);
  }
}

/// Writes the trace and prints a line. Returns the failure if it cannot be written, so that the checkpoint is
/// saved anyway.
std::optional<failure> write_trace(trace_file& trace, const description& about, std::int64_t step,
                                   const std::vector<traced>& times, console& say) try {
  say.line(trace.write(about, step, times));
  return std::nullopt;
} catch (const failure& f) {
  return f;
}

}  // namespace

void train(const description& about, const install_engine& install, const options& o) {
  console say(o.speaks(), isatty(STDOUT_FILENO) != 0);
  if (o.speaks()) refuse_other_files(o);
  beginning b = begin_run(about, o, say);
  if (o.speaks()) refuse_inputs(o, b.state);
  if (o.speaks() && !o.save.empty())
    if (const auto note = check_earlier_run(o, b, about)) say.line("note: " + *note);
  const std::int64_t first = b.state.step + 1, last = b.state.last_step;
  if (first > last)
    return say.line(fmt::format(
        "nothing to do: {} is of step {}, and the run has {} in all; --steps N with a larger N goes on",
        b.from->folder.string(), b.state.step, last));
  const run_data data = open_data_of_run(about, o, b, say);
  std::optional<saver> saves;
  if (!o.save.empty()) saves.emplace(about, o.save, o.keep, o.where);
  if (saves)
    for (const std::string& note : saves->notes()) say.line("note: " + note);
  std::optional<replicas> alike;
  if (o.check_replicas > 0) alike.emplace(about);
  if (alike && alike->empty())
    throw failure(2,
                  "RC6165: --check-replicas {} has nothing to compare, because no two ranks of this plan "
                  "hold the same weights; leave it out",
                  o.check_replicas);
  step_files files(o, b.state, say);
  std::optional<trace_file> trace;
  if (!o.trace.empty() && o.speaks()) trace.emplace(o.trace);
  say_what_runs(about, o, b, data, say);
  const auto e = install();
  const auto looks_on = watch_steps(*e, o);
  set_weights(*e, b, o, say);
  if (const std::string note = note_on_router_losses(about); data.holds_out && !note.empty())
    say.line("note: " + note);
  run_state state = b.state;
  const auto batch = static_cast<std::uint64_t>(about.global_batch());
  batch_reader batches(about, data.trained, state.samples);
  const orderly_stop stop(saves.has_value(), o.speaks());
  const auto start = clock::now();
  step_metrics m{};
  std::vector<double> step_ms;
  int signal = 0;
  std::vector<traced> times;
  std::optional<failure> untraced;
  while (state.step < last && signal == 0) {
    const bool timed = !o.trace.empty() && state.step + 1 == last;
    m = take_step(*e, batches, state, o.where, timed ? &times : nullptr);
    data.trained.add_read(state.samples - batch, batch, *state.read);
    step_ms.push_back(m.step_ms);
    if (alike && m.step % o.check_replicas == 0) alike->check(*e, o.where, m.step);
    // A signal reaches the processes in different steps, so they agree on the last step.
    signal = o.where.agreed_stop && m.step < last ? o.where.agreed_stop(m.step, stop.asked()) : stop.asked();
    const bool ends = m.step == last || signal != 0;
    if (data.holds_out && (m.step == last || (state.eval_every > 0 && m.step % state.eval_every == 0))) {
      m.eval_loss = held_out_loss(*e, o.where, data, state.eval_batches);
      if (!m.eval_loss)
        say.line("note: " +
                 runtime::say("RC6176: no held-out loss is measured at step {}, because no label of "
                              "the first {} batches of the held-out data counts",
                              m.step, state.eval_batches));
    }
    files.write(m);
    if (m.is_skipped)
      say.line("note: " +
               runtime::say("RC6174: step {} has no label that counts in the loss, so it changed nothing",
                            m.step));
    if (is_shown(m.step, first, last) || m.eval_loss || ends) say.line(console_line(m, last));
    say.progress(progress_text(
        m.step, last, m.loss,
        since(start) / static_cast<double>(m.step - first + 1) * static_cast<double>(last - m.step)));
    if (saves && (ends || (o.save_every > 0 && m.step % o.save_every == 0))) saves->begin(*e, state);
    if (saves) say_saves(o, *saves, "; training goes on, and the next save tries again", say);
    if (timed && trace) untraced = write_trace(*trace, about, m.step, times, say);
  }
  const bool saved = !saves || saves->finish();
  if (saves) say_saves(o, *saves, "", say);
  if (!saved) {
    if (untraced)
      throw failure(65, "RC6166: the last save into {} failed, and so did the trace: {}", o.save,
                    untraced->what());
    throw failure(65, "RC6167: the last save into {} failed", o.save);
  }
  if (m.step == last) {
    for (const std::string& line : time_table(about, std::move(step_ms), times)) say.line(line);
    say_ending(about, o, data, state, m, last - first + 1, since(start), say);
    if (untraced) throw *untraced;
    return;
  }
  if (!saves)
    throw failure(128 + signal, "RC6168: the run was stopped by {} after step {} of {}; nothing is saved",
                  stop_signal_name(signal), m.step, last);
  throw failure(128 + signal,
                "RC6169: the run was stopped by {} after step {} of {}; train --load {} goes on",
                stop_signal_name(signal), m.step, last, o.save);
}

}  // namespace rankc::runtime
