// SPDX-License-Identifier: Apache-2.0
#include "inputs.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "claims.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

/// The bytes and the rows of one microbatch of an input.
struct placed_input {
  const access* at;
  const codegen::holding* what;
  std::int64_t first_row() const { return what->box.empty() ? 0 : what->box[0].first; }
};

using input_name = std::pair<holding_kind, std::string>;
using placed_inputs = std::map<input_name, std::vector<placed_input>>;

/// The inputs of a rank, each in the order of its bytes.
placed_inputs inputs_of(const rank_program& p) {
  placed_inputs all;
  for (const op& o : p.ops)
    for (std::size_t i = 0; o.kind == op_kind::begin && i < o.holds.size(); ++i)
      if (const codegen::holding& h = o.holds[i]; is_input(h.kind))
        all[{h.kind, h.name}].push_back({&o.writes.at(i), &h});
  for (auto& [input, placed] : all)
    std::sort(placed.begin(), placed.end(),
              [](const placed_input& x, const placed_input& y) { return x.at->begin < y.at->begin; });
  return all;
}

/// The rows from the first to the last of a microbatch. A rank of context parallelism has only some of them.
interval span_of(const codegen::holding& h) {
  interval all{h.box.empty() ? 0 : h.box[0].first, 0};
  for (const box_range& b : h.box) {
    all.begin = std::min(all.begin, b.first);
    all.end = std::max(all.end, b.first + b.count);
  }
  return all;
}

/// Whether one box is another one, `by` rows later.
bool is_shifted(const std::vector<box_range>& box, const std::vector<box_range>& later, std::int64_t by) {
  return std::equal(
      box.begin(), box.end(), later.begin(), later.end(),
      [=](const box_range& x, const box_range& y) { return x.first + by == y.first && x.count == y.count; });
}

/// Checks the inputs of all ranks. A step has `microbatches_` microbatches, and each of them a part for each
/// of `replicas_` groups of ranks.
class input_checker {
 public:
  input_checker(const program& p, const model& m) : p_(p), model_(m) {
    for (std::size_t r = 0; r < p.ranks.size(); ++r) {
      inputs_.push_back(inputs_of(p.ranks[r]));
      ++alike_.try_emplace(p.ranks[r].alike, alike_ranks{number_of(r)}).first->second.listed;
    }
  }

  void check() {
    for (std::size_t r = 0; r < inputs_.size(); ++r)
      for (const auto& [input, placed] : inputs_[r]) check_microbatches(number_of(r), placed);
    for (std::size_t r = 0; r < inputs_.size(); ++r)
      for (const auto& [input, placed] : inputs_[r])
        if (is_of_tokens(placed)) count_replicas(r, placed);
    for (std::size_t r = 0; r < inputs_.size(); ++r)
      for (const auto& [input, placed] : inputs_[r])
        if (!is_of_step(placed)) check_place(r, placed);
  }

 private:
  /// The ranks that run a program: the number of the first, and how many of them the program lists.
  struct alike_ranks {
    int first;
    std::int64_t listed = 0;
  };

  const alike_ranks& alike(std::size_t rank) const { return alike_.at(p_.ranks[rank].alike); }
  int number_of(std::size_t rank) const { return p_.number_of(static_cast<int>(rank)); }

  /// The rows of an input in a step.
  std::int64_t rows_of(const codegen::holding& h) const {
    const std::int64_t rows = h.kind == holding_kind::input ? model_.input_of(h.name).rows : -1;
    return rows < 0 ? model_.tokens() : rows;
  }
  bool is_of_tokens(const std::vector<placed_input>& all) const {
    return !is_of_step(all) && rows_of(*all[0].what) == model_.tokens();
  }
  /// Whether all microbatches share the input, so that each has all of its rows.
  bool is_of_step(const std::vector<placed_input>& all) const {
    const codegen::holding& h = *all[0].what;
    return h.kind == holding_kind::input && model_.input_of(h.name).rows >= 0 &&
           h.box == std::vector<box_range>{{0, rows_of(h)}};
  }

  void check_microbatches(int rank, const std::vector<placed_input>& all) {
    const codegen::holding& first = *all[0].what;
    const auto count = static_cast<std::int64_t>(all.size());
    if (microbatches_ == 0) microbatches_ = count;
    if (count != microbatches_)
      throw refusal("RC7800: rank {} begins with {} microbatches of {}; another input has {}", rank, count,
                    name_of(first), microbatches_);
    const std::int64_t apart = is_of_step(all) ? 0 : rows_of(first) / count;
    for (std::size_t i = 1; i < all.size(); ++i) check_next(rank, all, i, apart);
  }

  /// Checks that a microbatch follows the one before it, in bytes and in rows.
  void check_next(int rank, const std::vector<placed_input>& all, std::size_t i, std::int64_t apart) const {
    const placed_input &before = all[i - 1], &after = all[i];
    const bool rises = before.first_row() < after.first_row() || apart == 0;
    if (!rises || before.at->end != after.at->begin)
      throw refusal(
          "RC7795: rank {}: {} from row {} on begin at byte {}, and from row {} on at byte {}; expected "
          "microbatches one behind the other, in the order of their rows",
          rank, name_of(*after.what), before.first_row(), before.at->begin, after.first_row(),
          after.at->begin);
    if (!is_shifted(before.what->box, after.what->box, apart))
      throw refusal(
          "RC7801: rank {}: {} of microbatch {} begin at row {}, and those of the next at row {}; expected "
          "the same rows {} later, because {} microbatches share the {} rows of a step",
          rank, name_of(*after.what), i - 1, before.first_row(), after.first_row(), apart, microbatches_,
          rows_of(*after.what));
  }

  std::int64_t replicas_of(const codegen::holding& h) const {
    const std::int64_t own = std::max<std::int64_t>(span_of(h).end, 1) * microbatches_;
    return std::max<std::int64_t>(rows_of(h) / own, 1);
  }

  /// Counts the replicas from the rows of the first rank of a program, which has the first and the last row
  /// of its replica's microbatch.
  void count_replicas(std::size_t rank, const std::vector<placed_input>& all) {
    if (alike(rank).first != number_of(rank)) return;
    const codegen::holding& h = *all[0].what;
    const interval held = span_of(h);
    if (held.begin != 0)
      throw refusal(
          "RC7802: rank {} begins with {} from row {} on; it is the first rank that runs its program, so "
          "expected row 0",
          number_of(rank), name_of(h), held.begin);
    if (replicas_ == 0) replicas_ = replicas_of(h);
    if (held.end * replicas_ * microbatches_ != rows_of(h))
      throw refusal(
          "RC7803: rank {} begins with {} rows of {}; {} microbatches of {} replicas share the {} rows of a "
          "step, so expected rows that divide them",
          number_of(rank), held.end, name_of(h), microbatches_, replicas_, rows_of(h));
  }

  /// Checks that a rank has rows of its replica. Of the ranks that run a program, the first ones are the
  /// first replica, in the order of their numbers.
  void check_place(std::size_t rank, const std::vector<placed_input>& all) {
    const codegen::holding& h = *all[0].what;
    const alike_ranks& of = alike(rank);
    if (replicas_ == 0) replicas_ = replicas_of(h);
    const std::int64_t listed = std::ssize(p_.ranks), ranks = p_.world_size() * of.listed / listed,
                       of_replica = std::max<std::int64_t>(ranks / replicas_, 1),
                       own = rows_of(h) / (microbatches_ * replicas_),
                       begin = (number_of(rank) - of.first) / of_replica * own;
    const interval held = span_of(h);
    if (of_replica * replicas_ == ranks && held.begin >= begin && held.end <= begin + own) return;
    throw refusal(
        "RC7797: rank {} begins with {} from row {} to row {}; expected rows {} to {}, because {} ranks run "
        "this program, and they are {} replicas in the order of their numbers",
        number_of(rank), name_of(h), held.begin, held.end - 1, begin, begin + own - 1, ranks, replicas_);
  }

  const program& p_;
  const model& model_;
  std::vector<placed_inputs> inputs_;  // by rank
  std::map<int, alike_ranks> alike_;   // by program
  std::int64_t microbatches_ = 0, replicas_ = 0;
};

}  // namespace

void check_inputs(const program& p, const model& m) { input_checker(p, m).check(); }

}  // namespace rankc::codegen::algebra
