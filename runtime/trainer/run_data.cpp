// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/run_data.hpp>

#include "document_ends.hpp"
#include "mean_loss.hpp"
#include "packed_examples.hpp"
#include "trained_file.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/resume.hpp>
#include <rankc/trainer/skip_batches.hpp>

#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {
namespace {

/// Errors: failure (2) if a source of --eval-data has samples that the run trains on.
void refuse_trained_data(const std::string& spec, const opened_source& source,
                         const std::vector<file_mark>& files, const data_record& read) {
  const auto refuse = [&](const std::string& name) {
    throw failure(2,
                  "RC6189: --eval-data {} names {}, which this run trains on; its loss would not be that of "
                  "held-out data: give other data",
                  spec, name);
  };
  const auto is_same = [](const file_mark& f, const file_mark& trained) { return f.has_bytes_of(trained); };
  for (const std::vector<source_record>& list : {read.sources, read.earlier})
    for (const source_record& trained : list) {
      if (trained.files.empty() && source_text(source.from) == trained.name) refuse(trained.name);
      if (const file_mark* const file = trained_file(source, files, trained.files, is_same))
        refuse(file->path);
    }
}

/// Notes for data whose documents or packed examples do not fit the plan.
std::vector<std::string> notes_on_data(const description& about, const std::vector<opened_source>& sources) {
  std::vector<std::string> notes = notes_on_documents(about, sources);
  for (std::string& note : notes_on_packing(about, sources)) notes.push_back(std::move(note));
  return notes;
}

std::vector<opened_source> open_trained(const description& about, const run_state& state) {
  return open_sources(parse_data_spec(state.data, state.labels), about);
}

/// Opens the data of --eval-data for a run. Returns notes if it does not fit the plan, or has changed since
/// the checkpoint.
std::vector<std::string> open_held_out(const description& about, run_state& state, const run_state* saved,
                                       run_data& data) {
  std::vector<opened_source> sources = open_sources(parse_data_spec(state.eval_data), about);
  std::vector<file_mark>& all = state.read->held_out.emplace();
  for (const opened_source& source : sources) {
    const std::vector<file_mark> files = marks_of(source);
    refuse_trained_data(state.eval_data, source, files, *state.read);
    all.insert(all.end(), files.begin(), files.end());
  }
  std::vector<std::string> notes = notes_on_data(about, sources);
  const std::vector<sample_order> orders(sources.size());
  data.evaluated.emplace(std::move(sources), about.vocab_used, about.seq, orders, data_record{});
  const bool had =
      saved != nullptr && saved->read && saved->read->held_out && saved->eval_data == state.eval_data;
  if (had && !hold_same_bytes(*saved->read->held_out, *state.read->held_out))
    notes.push_back(say(
        "RC6190: the held-out data {} has changed since the checkpoint: {}; its losses do not compare with "
        "earlier ones",
        state.eval_data, difference(*saved->read->held_out, *state.read->held_out)));
  return notes;
}

}  // namespace

run_data open_data(const description& about, const run_state& state, console& say_line) {
  const double held_out = state.eval_data.empty() ? state.eval_fraction : 0;
  std::vector<opened_source> sources = open_trained(about, state);
  for (const std::string& text : notes_on_data(about, sources)) say_line.line("note: " + text);
  const std::vector orders(sources.size(), sample_order{parse_shuffle(state.shuffle), held_out});
  return {dataset(std::move(sources), about.vocab_used, about.seq, orders, {}), std::nullopt, held_out > 0};
}

run_data open_data_of_run(const description& about, const options& o, beginning& b, console& say_line) {
  const auto note = [&](const std::string& text) { say_line.line("note: " + text); };
  const run_state* const saved = b.from ? &b.from->state : nullptr;
  run_state& state = b.state;
  std::vector<opened_source> sources = open_trained(about, state);
  planned_data plan = saved == nullptr ? begin_data(about, state, sources)
                                       : resume_data(about, {*saved, b.from->folder}, state, o, sources);
  if (o.skipped)
    plan.notes.push_back(skip_batches(
        *o.skipped, {state.step, state.samples, static_cast<std::uint64_t>(about.global_batch())},
        plan.record));
  for (const std::string& text : plan.notes) note(text);
  for (const std::string& text : notes_on_data(about, sources)) note(text);
  run_data data{dataset(std::move(sources), about.vocab_used, about.seq, plan.orders, plan.record),
                std::nullopt, false};
  state.read = std::move(plan.record);
  for (std::size_t i = 0; i < data.trained.sources().size(); ++i)
    state.read->sources[i].place = data.trained.sources()[i].place();
  if (!state.eval_data.empty()) {
    for (const std::string& text : open_held_out(about, state, saved, data)) note(text);
    data.holds_out = true;
  } else if (state.eval_fraction > 0 && plan.may_hold_out) {
    data.holds_out = data.trained.holds_out();
    if (!data.holds_out)
      note(say(
          "RC6198: no held-out loss is measured, because the held-out part of {} has less than one sample "
          "of {} tokens; give --eval-data",
          state.data, about.seq));
  }
  return data;
}

std::optional<double> held_out_loss(engine& e, const placement& where, const run_data& data,
                                    std::int64_t batches) {
  const auto read = [&](std::uint64_t s, const sample_view& to) {
    data.held_out().sample(s, to, data.held_part());
  };
  const auto loss =
      mean_loss(e, read, samples_in(e.about(), batches, data.held_out().epoch(data.held_part())),
                [&](std::uint64_t) { return evaluate_apart(e, where); });
  return loss ? std::optional(loss->labels) : std::nullopt;
}

}  // namespace rankc::runtime
