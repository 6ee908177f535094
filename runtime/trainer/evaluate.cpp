// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/trainer.hpp>

#include "mean_loss.hpp"
#include "steps.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/not_finite.hpp>
#include <rankc/trainer/router_metrics.hpp>
#include <rankc/trainer/run_data.hpp>

#include <fmt/format.h>
#include <cmath>
#include <string>
#include <vector>

namespace rankc::runtime {
namespace {

constexpr std::int64_t synthetic_batches = 10;  // for endless data, if --steps is not given

/// The data to evaluate, and the evaluated part of it.
struct evaluated_part {
  run_data data;
  bool held_out = false;

  const dataset& set() const { return held_out ? data.held_out() : data.trained; }
  data_part part() const { return held_out ? data.held_part() : data_part::trained; }
};

/// Opens the data that the command line names. If it names none, opens the data that the run holds out. If
/// the run holds out none, opens its training data, with a note.
evaluated_part open_evaluated(const description& about, const options& o, beginning& b, console& say) {
  const bool of_run = b.from && !o.data;
  if (of_run && (!b.state.eval_data.empty() || b.state.eval_fraction > 0)) {
    evaluated_part held{open_data_of_run(about, o, b, say), true};
    if (held.data.holds_out) return held;
  }
  b.state.shuffle.clear();  // each sample is evaluated once
  b.state.eval_data.clear();
  b.state.eval_fraction = 0;
  if (of_run)
    say.line("note: " +
             runtime::say("RC6172: this is the loss of {}, which the run trains on; --data FILE measures "
                          "other data, and train --eval-fraction holds a part out",
                          b.state.data));
  return {open_data(about, b.state, say)};
}

/// The number of samples to evaluate out of `all`; `all` is empty for endless data.
std::uint64_t samples_of(const description& about, const options& o, std::optional<std::uint64_t> all) {
  if (o.steps == 0 && all) return *all;
  return samples_in(about, o.steps > 0 ? o.steps : synthetic_batches, all);
}

/// Evaluates samples, and prints the router losses and the dropped picks.
class evaluation {
 public:
  evaluation(engine& e, const placement& where) : e_(e), where_(where) {}

  evaluated_loss loss_of(const read_sample& read, std::uint64_t samples) {
    const auto loss =
        mean_loss(e_, read, samples, [this](std::uint64_t batch) { return loss_of_batch(batch); });
    if (!loss) throw failure(1, "RC6175: the {} samples have no label that counts in the loss", samples);
    return *loss;
  }

  /// ", without router losses of 0.012; 12 picks found their expert full". The first part appears if the plan
  /// has router losses, the second if experts can drop picks.
  std::string text_apart(const evaluated_loss& loss) const {
    const description& about = e_.about();
    if (!keeps_routers(about)) return "";
    std::string text;
    if (has_router_losses(about)) text += fmt::format(", without router losses of {:.12f}", loss.routers);
    if (layout_of(about, reporter_of(about)).routers.limited)
      text += fmt::format("; {} picks found their expert full", std::llround(loss.dropped));
    return text;
  }

 private:
  evaluated_loss loss_of_batch(std::uint64_t batch) {
    const evaluated_loss loss = evaluate_apart(e_, where_);
    if (std::isfinite(loss.labels)) return loss;
    const std::string full = find_overflow(e_, where_);
    if (full.empty()) throw failure(70, "RC6170: batch {} has the loss {}", batch + 1, loss.labels);
    throw failure(70, "RC6171: batch {} has the loss {}: {}", batch + 1, loss.labels, full);
  }

  engine& e_;
  const placement& where_;
};

std::string count_text(const description& about, std::uint64_t samples) {
  return fmt::format("{} samples of {} tokens", samples, about.seq);
}

/// Evaluates each source completely, and prints its loss. Returns the mean, weighted by the sources' shares.
evaluated_loss loss_of_sources(evaluation& evaluated, const description& about, const evaluated_part& what,
                               console& say) {
  evaluated_loss mean;
  const std::vector<double>& shares = what.set().shares();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const sample_source& source = what.set().sources()[i];
    const std::uint64_t samples = samples_of(about, {}, source.epoch(what.part()));
    const read_sample read = [&](std::uint64_t s, const sample_view& to) {
      source.sample(what.part(), s, to);
    };
    const evaluated_loss loss = evaluated.loss_of(read, samples);
    say.line(fmt::format("{}: loss {:.12f}{} over {}{}", source.name(), loss.labels, unit_of_loss(about),
                         count_text(about, samples), evaluated.text_apart(loss)));
    mean.labels += shares[i] * loss.labels;
    mean.routers += shares[i] * loss.routers;
    mean.dropped += loss.dropped;
  }
  return mean;
}

}  // namespace

void evaluate(const description& about, const install_engine& install, const options& o) {
  console say(o.speaks(), false);
  beginning b = begin_run(about, o, say);
  const evaluated_part what = open_evaluated(about, o, b, say);
  say_what_runs(about, o, b, what.data, say);
  say.line(fmt::format("data: {}{}", what.held_out ? "held out of " : "", what.set().text()));
  const auto e = install();
  const auto looks_on = watch_steps(*e, o);
  set_weights(*e, b, o, say);
  evaluation evaluated(*e, o.where);
  if (const std::string note = note_on_router_losses(about); !note.empty()) say.line("note: " + note);
  if (o.steps == 0 && what.set().sources().size() > 1) {
    const evaluated_loss mean = loss_of_sources(evaluated, about, what, say);
    return say.line(fmt::format("eval: loss {:.12f}{}, the mean by shares of {} sources{}", mean.labels,
                                unit_of_loss(about), what.set().sources().size(),
                                evaluated.text_apart(mean)));
  }
  const std::optional<std::uint64_t> all = what.set().epoch(what.part());
  const std::uint64_t samples = samples_of(about, o, all);
  const read_sample read = [&](std::uint64_t s, const sample_view& to) {
    what.set().sample(s, to, what.part());
  };
  const evaluated_loss loss = evaluated.loss_of(read, samples);
  say.line(fmt::format("eval: loss {:.12f}{} over {}{}{}", loss.labels, unit_of_loss(about),
                       samples == all ? "all " : "", count_text(about, samples), evaluated.text_apart(loss)));
}

}  // namespace rankc::runtime
