// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include <fmt/format.h>
#include <rankc/runtime/program.hpp>

#include <algorithm>
#include <tuple>

namespace translation {

namespace runtime = rankc::runtime;
using rankc::codegen::access;
using rankc::codegen::program;
using interval = std::pair<std::size_t, std::size_t>;

namespace {

/// The addresses in a text's tables, for one rank.
class places {
 public:
  places(const runtime::description& about, const runtime::layout& where)
      : about_(about), where_(where), wide_(std::max<std::size_t>(runtime::size_of(about.type), 4)) {}

  /// The state that lasts from step to step.
  std::vector<interval> kept() const {
    std::vector<interval> list;
    for (const runtime::parameter& p : where_.parameters) {
      const std::size_t count = shard_of(p);
      const auto add = [&](runtime::at region, std::size_t size) {
        list.emplace_back(region.byte + p.element * size, region.byte + (p.element + count) * size);
      };
      const std::size_t moment = about_.bf16_moments ? 2 : wide_;
      const bool trained = p.element < where_.trained_count(),
                 copied = about_.type == runtime::dtype::bf16 && !about_.bf16_weights;
      if (trained || !copied) add(where_.weights, about_.bf16_weights ? 2 : wide_);
      if (trained && about_.trains && about_.moments > 0) add(where_.first_moment, moment);
      if (trained && about_.trains && about_.moments > 1) add(where_.second_moment, moment);
      if (copied) add(where_.working_copy, runtime::size_of(about_.type));
    }
    for (const runtime::rope_table& t : where_.ropes)
      list.emplace_back(t.where.byte, t.where.byte + static_cast<std::size_t>(t.positions * t.dim) * wide_);
    return list;
  }
  /// The same, plus the inputs that the runtime fills before a step.
  std::vector<interval> filled() const {
    std::vector<interval> list = kept();
    // One rank's part.
    const std::size_t ids =
        static_cast<std::size_t>(about_.rows * (about_.seq / about_.cp)) * sizeof(std::int32_t);
    const std::size_t starts = about_.tokens_of_microbatch() * sizeof(std::int32_t);
    for (std::size_t m = 0; m < static_cast<std::size_t>(about_.microbatches); ++m)
      for (const auto& [reads, at, bytes] : {std::tuple(where_.reads_tokens, where_.tokens, ids),
                                             {where_.reads_targets, where_.targets, ids},
                                             {where_.reads_starts, where_.starts, starts}})
        if (reads) list.emplace_back(at.byte + m * bytes, at.byte + (m + 1) * bytes);
    return list;
  }
  /// Whether bytes of the gradients belong to no parameter. A reduction covers them, too, and they are zero.
  bool is_padding(const interval& i) const {
    const std::size_t first = where_.gradients.byte;
    if (i.first < first || i.second > first + where_.trained_count() * wide_) return false;
    return std::none_of(where_.parameters.begin(), where_.parameters.end(), [&](const runtime::parameter& p) {
      const std::size_t begin = first + p.element * wide_;
      return begin < i.second && i.first < begin + shard_of(p) * wide_;
    });
  }
  interval loss() const { return {where_.loss.byte, where_.loss.byte + wide_}; }
  interval norm() const { return {where_.norm.byte, where_.norm.byte + wide_}; }

 private:
  /// The elements of a parameter that a rank keeps.
  std::size_t shard_of(const runtime::parameter& p) const {
    const int ranks = p.experts ? about_.expert_shards() : about_.shards, rows = (p.rows + ranks - 1) / ranks;
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(p.cols);
  }
  const runtime::description& about_;
  const runtime::layout& where_;
  const std::size_t wide_;
};

std::vector<interval> sorted(std::vector<interval> list) {
  std::sort(list.begin(), list.end());
  return list;
}
std::vector<interval> sorted(const std::vector<access>& list) {
  std::vector<interval> out;
  for (const access& a : list) out.emplace_back(a.begin, a.end);
  return sorted(std::move(out));
}

/// A sentence about the first interval that only one of the lists has; empty if they are equal.
std::string difference(const std::vector<interval>& tables, const std::vector<interval>& proven) {
  std::vector<interval> only;
  std::set_difference(tables.begin(), tables.end(), proven.begin(), proven.end(), std::back_inserter(only));
  if (!only.empty())
    return fmt::format("the tables have [{}, {}), which was not proven", only[0].first, only[0].second);
  std::set_difference(proven.begin(), proven.end(), tables.begin(), tables.end(), std::back_inserter(only));
  if (!only.empty())
    return fmt::format("[{}, {}) was proven, which the tables do not have", only[0].first, only[0].second);
  return "";
}

/// A sentence about a rotary table that the text fills differently than proven.
std::string difference_of_ropes(const runtime::layout& where, int ranks_of_sequence,
                                const rankc::codegen::op& begin) {
  for (const runtime::rope_table& t : where.ropes)
    for (std::size_t i = 0; i < begin.holds.size(); ++i) {
      const rankc::codegen::holding& h = begin.holds[i];
      if (h.kind != rankc::codegen::holding_kind::rotary || begin.writes[i].begin != t.where.byte) continue;
      if (t.positions * ranks_of_sequence != h.positions || t.dim != h.dim || t.theta != h.theta ||
          t.scaling != h.scaling)
        return fmt::format(
            "the rotary table at {} has base {} where {} was proven, or other positions, dims or scaling",
            t.where.byte, t.theta, h.theta);
    }
  return "";
}

}  // namespace

std::string compare_tables(const runtime::description& about, const program& p, int rank, bool trains) {
  const rankc::codegen::rank_program& r = p.ranks[static_cast<std::size_t>(rank)];
  const int number = p.number_of(rank), world = p.world_size();
  if (about.name != p.plan || about.plan_hash != p.plan_hash || about.world() != world)
    return fmt::format("the text is of plan {} {:016x} on {} ranks where {} {:016x} on {} was proven",
                       about.name, about.plan_hash, about.world(), p.plan, p.plan_hash, world);
  const runtime::rank_row& row = about.ranks[static_cast<std::size_t>(number)];
  const runtime::layout& where = about.layouts[static_cast<std::size_t>(row.pp)];
  if (where.arena_bytes != r.arena_bytes)
    return fmt::format("rank {}: the text's arena has {} bytes where {} were proven", number,
                       where.arena_bytes, r.arena_bytes);
  if (!r.ops.front().reads.empty() || !r.ops.back().writes.empty())
    return fmt::format("rank {}: the proven program reads before it begins, or writes after it ends", number);
  const places at(about, where);
  std::vector<interval> begun = sorted(r.ops.front().writes);
  std::erase_if(begun, [&](const interval& i) { return at.is_padding(i); });
  if (const std::string s = difference(sorted(at.filled()), begun); !s.empty())
    return fmt::format("rank {}, op 0 \"begin\": {}", number, s);
  if (const std::string s = difference_of_ropes(where, about.cp, r.ops.front()); !s.empty())
    return fmt::format("rank {}, op 0 \"begin\": {}", number, s);
  std::vector<interval> left = at.kept();
  if (trains) left.push_back(at.norm());
  std::vector<interval> proven = sorted(r.ops.back().reads);
  std::erase_if(proven, [&](const interval& i) { return at.is_padding(i); });
  // The runtime reads the loss on one rank; the proof may also hold it on other ranks of the sum.
  const bool has_loss = std::binary_search(proven.begin(), proven.end(), at.loss());
  if (has_loss || row.pp == about.loss_at()) left.push_back(at.loss());
  if (const std::string s = difference(sorted(std::move(left)), proven); !s.empty())
    return fmt::format("rank {}, op {} \"end\": {}", number, r.ops.size() - 1, s);
  return "";
}

}  // namespace translation
