// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/resume.hpp>

#include "held_out_share.hpp"
#include "known_data.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/data.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace rankc::runtime {
namespace {

using order_kind = shuffle_spec::kind;

class resumption {
 public:
  resumption(const description& about, const resumed_from& from, const run_state& now, const options& o,
             const std::vector<opened_source>& opened)
      : batch_(static_cast<std::uint64_t>(about.global_batch())),
        seq_(about.seq),
        saved_(from.state),
        folder_(from.folder.string()),
        now_(now),
        o_(o),
        shares_(shares_of(opened)),
        known_(saved_) {
    for (const opened_source& source : opened)
      sources_.push_back({.source = source, .files = marks_of(source)});
  }

  planned_data plan() {
    note_unchecked();
    for (resumed_source& s : sources_) match(s);
    if (is_unchanged()) plan_.record = known_.record();
    else begin_mixture();
    for (std::size_t i = 0; i < sources_.size(); ++i) describe(sources_[i], plan_.record.sources[i]);
    hold_out(sources_, known_, saved_, now_, o_, plan_);
    return std::move(plan_);
  }

 private:
  bool has_other_order(const source_record& r) const {
    return parse_shuffle(r.shuffle) != parse_shuffle(now_.shuffle);
  }
  void note(std::string text) { plan_.notes.push_back(std::move(text)); }

  void note_unchecked() {
    const bool has_files = std::any_of(sources_.begin(), sources_.end(),
                                       [](const resumed_source& s) { return s.source.has_files(); });
    if (!saved_.read && has_files)
      note(
          say("RC6186: {} was saved without sizes and hashes of its data; whether {} has changed since then "
              "cannot be checked",
              folder_, saved_.data));
  }

  /// Finds the checkpoint's source that continues in a source.
  void match(resumed_source& s) {
    const std::size_t taken = known_.take(s.source, s.files);
    if (taken < known_.sources().size()) {
      s.known = &known_.sources()[taken];
      return;
    }
    const std::string name = source_text(s.source.from);
    const known_source* const changed = known_.find_name(name);
    if (changed == nullptr)
      return note(say("RC6183: {} is a new source: it is read from its beginning", name));
    const std::string change = difference(changed->record.files, s.files);
    if (!o_.data)
      throw failure(1,
                    "RC6180: {} has changed since {} was saved: {}; restore it, or give --data {} to read it "
                    "from its beginning as new data",
                    name, folder_, change, data_words());
    note_beginning(changed->record, change);
  }

  /// The words of a command line after --data.
  std::string data_words() const {
    return now_.labels.empty() ? now_.data : fmt::format("{} --labels {}", now_.data, now_.labels);
  }

  /// True if the mixture is the checkpoint's, in the same order.
  bool is_unchanged() const {
    const std::vector<source_record>& before = known_.record().sources;
    if (sources_.size() != before.size()) return false;
    for (std::size_t i = 0; i < before.size(); ++i)
      if (sources_[i].known != &known_.sources()[i] || shares_[i] != before[i].share ||
          before[i].seq != seq_ || has_other_order(before[i]))
        return false;
    return true;
  }

  /// Begins a new mixture at the next sample. Each known source continues in it at its next token.
  void begin_mixture() {
    note_lost_gaps();
    plan_.record.first = saved_.samples;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      source_record& to = plan_.record.sources.emplace_back();
      if (sources_[i].known != nullptr) go_on(*sources_[i].known, sources_[i].source, shares_[i], to);
      to.share = shares_[i];
    }
    for (const known_source& k : known_.sources())
      if (!k.is_taken) leave(k);
  }

  void note_lost_gaps() {
    std::uint64_t s = saved_.samples;
    const std::vector<sample_gap>& gaps = known_.record().gaps;
    for (auto gap = gaps.rbegin(); gap != gaps.rend(); ++gap) {
      if (s >= gap->at) s += gap->count;
      else
        note(
            say("RC6194: --skip-batches no longer leaves out the batches before step {}, because the samples "
                "have another order from here on",
                static_cast<std::uint64_t>(saved_.step) + 1 + (gap->at - s) / batch_));
    }
  }

  void leave(const known_source& k) {
    plan_.record.earlier.push_back(k.record);
    const bool has_changed = std::any_of(sources_.begin(), sources_.end(), [&](const resumed_source& s) {
      return source_text(s.source.from) == k.record.name;
    });
    if (k.is_current && !has_changed)
      note(say("RC6184: {} is no longer read, after {} tokens of it", k.record.name, k.record.tokens));
  }

  void note_beginning(const source_record& read, const std::string& reason) {
    note(
        say("RC6182: {} is read from the beginning of a new order, because {}; {} of its tokens have been "
            "trained on",
            read.name, reason, read.tokens));
  }

  /// Sets the place where a known source continues.
  void go_on(const known_source& known, const opened_source& source, double share, source_record& to) {
    to = known.record;
    const bool has_other_seq = to.seq != seq_, is_drawn = parse_shuffle(now_.shuffle).how != order_kind::none;
    if (!source.has_files()) {
      move_synthetic(source.from, to);
    } else if (has_other_order(to)) {
      begin_order(fmt::format("--shuffle is {} and was {}", text_of(now_.shuffle), text_of(to.shuffle)), to);
    } else if (has_other_seq && is_drawn) {
      begin_order(fmt::format("seq is {} and was {}", seq_, to.seq), to);
    } else if (has_other_seq) {
      set_held_from(source, to);
      move_windows(source.size(), to);
    } else if (const double before = known.is_current ? to.share : 0; before != share) {
      note(say("RC6185: {} continues after {} of its tokens; its share is {} and was {}", to.name, to.tokens,
               fmt::format("{}", share), fmt::format("{}", before)));
    }
  }

  static std::string text_of(const std::string& shuffle) { return shuffle.empty() ? "none" : shuffle; }

  void begin_order(const std::string& reason, source_record& to) {
    note_beginning(to, reason);
    to.place.first_sample = to.place.first_token = 0;
  }

  /// Samples of rand are windows of one stream of tokens, so the stream continues. Samples of arith are
  /// independent.
  void move_synthetic(const data_source& from, source_record& to) const {
    const auto before = static_cast<std::uint64_t>(to.seq) + 1, now = static_cast<std::uint64_t>(seq_) + 1;
    if (from.from == data_source::kind::rand)
      to.place.first_sample = (to.place.first_sample * before + now - 1) / now;
  }

  /// Begins windows of the new seq at the next token.
  void move_windows(std::uint64_t tokens, source_record& to) {
    const window_sequence before{to.place.first_token, to.place.held_from.value_or(tokens - 1),
                                 static_cast<std::uint64_t>(to.seq)};
    to.place.first_token = before.token(to.place.first_sample);
    to.place.first_sample = 0;
    note(say("RC6181: {} continues at its token {}; seq is {} and was {}", to.name, to.place.first_token,
             seq_, to.seq));
  }

  /// Computes the first held-out token for older checkpoints, which record only the held-out share.
  void set_held_from(const opened_source& source, source_record& to) const {
    if (saved_.read || !source.tokens) return;
    to.place.held_from =
        held_from(*source.tokens, to.name, saved_.seq, {parse_shuffle(saved_.shuffle), held_share(saved_)});
  }

  void describe(const resumed_source& s, source_record& to) const {
    to.name = source_text(s.source.from);
    to.files = s.files;
    to.seq = seq_;
    to.shuffle = now_.shuffle;
    if (s.known != nullptr) set_held_from(s.source, to);
  }

  std::uint64_t batch_;
  int seq_;
  const run_state& saved_;
  std::string folder_;
  const run_state& now_;
  const options& o_;
  std::vector<double> shares_;
  known_data known_;
  std::vector<resumed_source> sources_;
  planned_data plan_;
};

}  // namespace

planned_data begin_data(const description& about, const run_state& state,
                        const std::vector<opened_source>& opened) {
  const sample_order order{parse_shuffle(state.shuffle), held_share(state)};
  planned_data plan{.record = {}, .orders = std::vector(opened.size(), order)};
  const std::vector<double> shares = shares_of(opened);
  for (std::size_t i = 0; i < opened.size(); ++i)
    plan.record.sources.push_back({.name = source_text(opened[i].from),
                                   .share = shares[i],
                                   .seq = about.seq,
                                   .shuffle = state.shuffle,
                                   .files = marks_of(opened[i])});
  return plan;
}

planned_data resume_data(const description& about, const resumed_from& from, const run_state& now,
                         const options& o, const std::vector<opened_source>& opened) {
  return resumption(about, from, now, o, opened).plan();
}

}  // namespace rankc::runtime
