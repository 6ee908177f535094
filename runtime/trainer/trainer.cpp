// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/trainer.hpp>

#include "mean_loss.hpp"
#include "step_loop.hpp"
#include "steps.hpp"
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/earlier_run.hpp>
#include <rankc/trainer/outputs.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <string>

namespace rankc::runtime {

void train(const description& about, const install_engine& install, const options& o) {
  console say(o.speaks(), isatty(STDOUT_FILENO) != 0);
  if (o.speaks()) refuse_other_files(o);
  beginning b = begin_run(about, o, say);
  if (o.speaks()) refuse_inputs(o, b.state);
  if (o.speaks() && !o.save.empty())
    if (const auto note = check_earlier_run(o, b, about)) say.line("note: " + *note);
  if (b.state.step >= b.state.last_step)
    return say.line(fmt::format(
        "nothing to do: {} is of step {}, and the run has {} in all; --steps N with a larger N goes on",
        b.from->folder.string(), b.state.step, b.state.last_step));
  const run_data data = open_data_of_run(about, o, b, say);
  run_extras extras(about, o, b.state, say);
  say_what_runs(about, o, b, data, say);
  const auto e = install();
  const auto looks_on = watch_steps(*e, o);
  set_weights(*e, b, o, say);
  if (const std::string note = note_on_router_losses(about); data.holds_out && !note.empty())
    say.line("note: " + note);
  step_loop steps(*e, about, o, data, b.state, extras, say);
  steps.run();
  steps.end();
}

}  // namespace rankc::runtime
