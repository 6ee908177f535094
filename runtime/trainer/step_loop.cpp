// SPDX-License-Identifier: Apache-2.0
#include "step_loop.hpp"

#include <rankc/launch/say_error.hpp>
#include <rankc/launch/stop_signals.hpp>
#include "steps.hpp"
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/learning_rate.hpp>
#include <rankc/trainer/not_finite.hpp>
#include <rankc/trainer/time_table.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

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

run_extras::run_extras(const description& about, const options& o, const run_state& begins, console& say) {
  if (!o.save.empty()) saves.emplace(about, o.save, o.keep, o.where);
  if (saves)
    for (const std::string& note : saves->notes()) say.line("note: " + note);
  if (o.check_replicas > 0) alike.emplace(about);
  if (alike && alike->empty())
    throw failure(2,
                  "RC6165: --check-replicas {} has nothing to compare, because no two ranks of this plan "
                  "hold the same weights; leave it out",
                  o.check_replicas);
  files.emplace(o, begins, say);
  if (!o.trace.empty() && o.speaks()) trace.emplace(o.trace);
}

step_loop::step_loop(engine& e, const description& about, const options& o, const run_data& data,
                     const run_state& begins, run_extras& extras, console& say)
    : e_(e),
      about_(about),
      o_(o),
      data_(data),
      extras_(extras),
      say_(say),
      state_(begins),
      first_(begins.step + 1),
      last_(begins.last_step),
      batches_(about, data.trained, begins.samples),
      stop_(extras.saves.has_value(), o.speaks()) {}

void step_loop::run() {
  while (state_.step < last_ && signal_ == 0) take();
}

void step_loop::take() {
  const auto batch = static_cast<std::uint64_t>(about_.global_batch());
  const bool timed = !o_.trace.empty() && state_.step + 1 == last_;
  m_ = take_step(e_, batches_, state_, o_.where, timed ? &times_ : nullptr);
  data_.trained.add_read(state_.samples - batch, batch, *state_.read);
  step_ms_.push_back(m_.step_ms);
  if (extras_.alike && m_.step % o_.check_replicas == 0) extras_.alike->check(e_, o_.where, m_.step);
  // A signal reaches the processes in different steps, so they agree on the last step.
  signal_ =
      o_.where.agreed_stop && m_.step < last_ ? o_.where.agreed_stop(m_.step, stop_.asked()) : stop_.asked();
  evaluate();
  extras_.files->write(m_);
  report();
  save();
  if (timed && extras_.trace) untraced_ = write_trace(*extras_.trace, about_, m_.step, times_, say_);
}

/// Measures the held-out loss if it is due.
void step_loop::evaluate() {
  const bool is_due = m_.step == last_ || (state_.eval_every > 0 && m_.step % state_.eval_every == 0);
  if (!data_.holds_out || !is_due) return;
  m_.eval_loss = held_out_loss(e_, o_.where, data_, state_.eval_batches);
  if (!m_.eval_loss)
    say_.line("note: " + say("RC6176: no held-out loss is measured at step {}, because no label of "
                             "the first {} batches of the held-out data counts",
                             m_.step, state_.eval_batches));
}

/// Prints the step, and the time that is left.
void step_loop::report() {
  if (m_.is_skipped)
    say_.line("note: " +
              say("RC6174: step {} has no label that counts in the loss, so it changed nothing", m_.step));
  if (is_shown(m_.step, first_, last_) || m_.eval_loss || ends()) say_.line(console_line(m_, last_));
  const double each = since(start_) / static_cast<double>(m_.step - first_ + 1);
  say_.progress(progress_text(m_.step, last_, m_.loss, each * static_cast<double>(last_ - m_.step)));
}

/// Begins a save if it is due.
void step_loop::save() {
  if (!extras_.saves) return;
  if (ends() || (o_.save_every > 0 && m_.step % o_.save_every == 0)) extras_.saves->begin(e_, state_);
  say_saves(o_, *extras_.saves, "; training goes on, and the next save tries again", say_);
}

void step_loop::end() {
  finish_saves();
  if (m_.step != last_) refuse_stop();
  for (const std::string& line : time_table(about_, std::move(step_ms_), times_)) say_.line(line);
  say_ending();
  if (untraced_) throw *untraced_;
}

void step_loop::finish_saves() {
  if (!extras_.saves) return;
  const bool saved = extras_.saves->finish();
  say_saves(o_, *extras_.saves, "", say_);
  if (saved) return;
  if (untraced_)
    throw failure(65, "RC6166: the last save into {} failed, and so did the trace: {}", o_.save,
                  untraced_->what());
  throw failure(65, "RC6167: the last save into {} failed", o_.save);
}

/// Prints the last lines: the result of the run, and commands that may follow it.
void step_loop::say_ending() {
  const double seconds = since(start_);
  const auto tokens = static_cast<double>(last_ - first_ + 1) * static_cast<double>(tokens_per_step(about_));
  const std::string epochs = data_.trained.epochs_text(0, *state_.read);
  say_.line(fmt::format(
      "done: step {} of {} in {}, {:.0f} tokens/s{}; loss {:.4f}{}{}", state_.step, state_.last_step,
      duration_text(seconds), tokens / seconds, epochs.empty() ? "" : "; " + epochs, m_.loss,
      m_.eval_loss ? fmt::format(", held-out loss {:.4f}", *m_.eval_loss) : "", unit_of_loss(about_)));
  if (o_.save.empty())
    return say_.line(
        "next: nothing is saved; --save DIR keeps the weights, and --eval-every N shows the loss of data "
        "held out");
  const bool generates = about_.layouts[static_cast<std::size_t>(about_.loss_at())].logits.rows > 0;
  say_.line(fmt::format(
      "next: {0} train {1} goes on; {0} {2}", about_.name, options_to_go_on(state_, o_.save),
      generates ? fmt::format("generate --load {} --prompt TEXT shows what it has learned", o_.save)
                : fmt::format("eval --load {} --data FILE", o_.save)));
}

void step_loop::refuse_stop() const {
  if (!extras_.saves)
    throw failure(128 + signal_, "RC6168: the run was stopped by {} after step {} of {}; nothing is saved",
                  stop_signal_name(signal_), m_.step, last_);
  throw failure(128 + signal_,
                "RC6169: the run was stopped by {} after step {} of {}; train --load {} goes on",
                stop_signal_name(signal_), m_.step, last_, o_.save);
}

}  // namespace rankc::runtime
