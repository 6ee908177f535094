// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/logits.hpp>
#include <rankc/mesh/layout.hpp>

#include <algorithm>

namespace rankc::codegen {

namespace {

const view* find_view(const op& o, std::string_view port) {
  const auto found =
      std::find_if(o.views.begin(), o.views.end(), [&](const view& v) { return v.port == port; });
  return found == o.views.end() ? nullptr : &*found;
}
/// The first byte of a view in the arena.
std::size_t begin_of(const op& o, const view& v) {
  return o.reads[static_cast<std::size_t>(v.accesses[0])].begin + v.offset;
}

bool writes_into(const op& o, const access& of) {
  return std::any_of(o.writes.begin(), o.writes.end(),
                     [&](const access& w) { return w.begin < of.end && of.begin < w.end; });
}

/// The logits of the last op that compares logits with the step's targets. There are none if a later op
/// overwrites them.
kept_logits find_in(const lowered& l, const pipeline_rank& r, const std::vector<op>& ops) {
  const std::size_t of_microbatch = l.tokens() * sizeof(std::int32_t),
                    all_targets = r.find_input(inputs::targets.name)->where,
                    end =
                        all_targets + of_microbatch * static_cast<std::size_t>(l.plan->actions.microbatches);
  const auto last = std::find_if(ops.rbegin(), ops.rend(), [&](const op& o) {
    const view* const targets = find_view(o, "targets");
    return find_view(o, "logits") && targets && begin_of(o, *targets) >= all_targets &&
           begin_of(o, *targets) < end;
  });
  if (last == ops.rend()) return {};
  const view *logits = find_view(*last, "logits"), *targets = find_view(*last, "targets");
  if (logits->shape.size() != 2 || logits->accesses.size() != 1) return {};
  const access& held = last->reads[static_cast<std::size_t>(logits->accesses[0])];
  if (std::any_of(ops.rbegin(), last, [&](const op& o) { return writes_into(o, held); })) return {};
  return {.where = begin_of(*last, *logits),
          .rows = static_cast<int>(logits->shape[0]),
          .columns = static_cast<int>(logits->shape[1]),
          .stride = static_cast<int>(logits->stride),
          .microbatch = static_cast<int>((begin_of(*last, *targets) - all_targets) / of_microbatch)};
}

}  // namespace

std::vector<kept_logits> find_logits(const lowered& l, const program& evaluation) {
  std::vector<kept_logits> all(l.ranks.size());
  for (const rank_program& rank : evaluation.ranks) {
    const auto pp = static_cast<std::size_t>(layout(l.plan->dims).at(rank.number)[axis::pp]);
    if (l.ranks[pp].reads(inputs::targets) && all[pp].rows == 0) all[pp] = find_in(l, l.ranks[pp], rank.ops);
  }
  return all;
}

}  // namespace rankc::codegen
