// SPDX-License-Identifier: Apache-2.0
#include "final_state.hpp"

#include <algorithm>

namespace field {

using namespace rankc::codegen;

/// A working copy counts as its weight.
static holding_kind kind_of(const holding& h) {
  return h.kind == holding_kind::working_copy ? holding_kind::weight : h.kind;
}

/// Whether `end` holds these bytes as `begin` did.
static bool lasts(const op& end, const access& a, const holding& h) {
  for (std::size_t k = 0; k < end.reads.size(); ++k) {
    const holding& at_end = end.holds[k];
    const bool is_there = end.reads[k].begin == a.begin && end.reads[k].end == a.end;
    if (is_there && kind_of(at_end) == kind_of(h) && at_end.name == h.name && at_end.box == h.box)
      return true;
  }
  return false;
}

std::string final_state::add(const rank_state& rank) {
  const op &first = rank.program->ops.front(), &last = rank.program->ops.back();
  expect(last.reads.size() == last.holds.size(), "end says not of each read what it holds");
  for (std::size_t k = 0; k < last.reads.size(); ++k) {
    const holding& h = last.holds[k];
    if (const std::string d = compare(rank, last.reads[k], h, m_, trains_); !d.empty()) return d;
    if (h.kind == holding_kind::loss) has_loss_ = true;
    else if (h.kind == holding_kind::norm) has_norm_ = true;
    else if (!h.name.empty()) note(h);
  }
  for (std::size_t k = 0; k < first.writes.size(); ++k) {
    const holding& h = first.holds[k];
    if (is_kept(h.kind) && !lasts(last, first.writes[k], h))
      return "rank " + std::to_string(rank.number) + ": end does not hold " +
             holding_names[static_cast<int>(h.kind)] + " of " + h.name + " where begin had it";
  }
  return {};
}

void final_state::note(const holding& h) {
  const parameter_run& p = m_.parameters.at(h.name);
  std::vector<bool>& seen = seen_[{kind_of(h), h.name}];
  seen.resize(p.weight.size());
  const box_range one{0, 1}, rows = h.box.size() == 2 ? h.box[0] : one,
                             cols = h.box.empty() ? one : h.box.back();
  for (std::int64_t i = rows.first; i < std::min(rows.first + rows.count, p.is.rows); ++i)
    for (std::int64_t j = cols.first; j < std::min(cols.first + cols.count, p.is.cols); ++j)
      seen[static_cast<std::size_t>(i * p.is.cols + j)] = true;
}

std::string final_state::find_missing() const {
  if (!has_loss_) return "no rank has the loss";
  if (trains_ && !has_norm_) return "no rank has the norm";
  constexpr std::pair<holding_kind, int> kinds[]{
      {holding_kind::weight, 0}, {holding_kind::first_moment, 1}, {holding_kind::second_moment, 2}};
  for (const auto& [name, p] : m_.parameters)
    for (const auto& [kind, moment] : kinds) {
      if (moment > (trains_ && p.trainable ? m_.optimizer.moments : 0)) continue;
      const auto at = seen_.find({kind, name});
      if (at == seen_.end() || std::count(at->second.begin(), at->second.end(), false))
        return std::string("no rank has all of the ") + holding_names[static_cast<int>(kind)] + " of " + name;
    }
  return {};
}

}  // namespace field
