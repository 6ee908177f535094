// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/replicas.hpp>

#include <rankc/launch/hello.hpp>
#include <rankc/trainer/checksum.hpp>

#include <fmt/ranges.h>
#include <algorithm>
#include <map>

namespace rankc::runtime {
namespace {

constexpr std::size_t digits = 16;  // hexadecimal digits of a hash

std::string hash_of(engine& e, const shard& s, region where) {
  constexpr std::size_t at_once = std::size_t{1} << 20;
  std::vector<double> values;
  checksum sum;
  for (std::size_t first = 0, all = area_of(s).count(); first < all; first += values.size()) {
    values.resize(std::min(at_once, all - first));
    e.read(s.rank, where, s.element + first, values.size(), values.data());
    sum.add(values.data(), values.size() * sizeof(double));
  }
  return sum.text();
}

/// The texts of all ranks, in rank order. Each process supplies those of its ranks.
std::vector<std::string> said_by_all(const placement& where, const char* name, std::vector<std::string> own) {
  return where.meets_others() ? where.exchange(name, own[static_cast<std::size_t>(where.rank)]) : own;
}

/// Groups ranks by equal hash, the largest group first.
std::vector<std::vector<int>> parted(const std::vector<int>& ranks, const std::vector<std::string>& hashes) {
  std::map<std::string, std::vector<int>> by_hash;
  for (std::size_t i = 0; i < ranks.size(); ++i) by_hash[hashes[i]].push_back(ranks[i]);
  std::vector<std::vector<int>> parts;
  for (auto& [hash, some] : by_hash) parts.push_back(std::move(some));
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return parts;
}

bool all_equal(const std::vector<std::string>& some) {
  return std::all_of(some.begin(), some.end(), [&](const std::string& each) { return each == some.front(); });
}

}  // namespace

replicas::replicas(const description& about) {
  std::map<std::vector<int>, std::vector<piece>> by_ranks;
  for (const global_parameter& p : global_parameters(about)) {
    std::vector<shard> left = p.holders;
    while (!left.empty()) {
      const area part = area_of(left.front());
      const auto others =
          std::stable_partition(left.begin(), left.end(), [&](const shard& s) { return area_of(s) == part; });
      std::vector<shard> alike(left.begin(), others);
      left.erase(left.begin(), others);
      std::stable_sort(alike.begin(), alike.end(),
                       [](const shard& a, const shard& b) { return a.rank < b.rank; });
      alike.erase(std::unique(alike.begin(), alike.end(),
                              [](const shard& a, const shard& b) { return a.rank == b.rank; }),
                  alike.end());
      if (alike.size() < 2 || part.count() == 0) continue;
      std::vector<int> ranks;
      for (const shard& s : alike) ranks.push_back(s.rank);
      std::vector<piece>& to = by_ranks[ranks];
      to.push_back({p.name, region::weights, alike});
      for (const region moment : {region::first_moment, region::second_moment})
        if (p.trained && about.trains &&
            static_cast<int>(moment) - static_cast<int>(region::gradients) <= about.moments)
          to.push_back({p.name, moment, alike});
    }
  }
  for (auto& [ranks, pieces] : by_ranks) groups_.push_back({ranks, std::move(pieces)});
}

std::vector<std::string> replicas::hashes_of(engine& e, const group& g, std::size_t member) const {
  std::vector<std::string> all;
  for (const piece& p : g.pieces) all.push_back(hash_of(e, p.holders[member], p.where));
  return all;
}

// Exchanges one hash per group first, so that little is sent if all replicas agree.
void replicas::check(engine& e, const placement& where, std::int64_t step) const {
  const auto world = static_cast<std::size_t>(e.about().world());
  std::vector<std::string> sums(world);
  std::vector<std::vector<std::string>> in_full(
      world);  // by rank: the hashes of all pieces of its groups, group by group
  for (const group& g : groups_)
    for (std::size_t i = 0; i < g.ranks.size(); ++i) {
      if (!e.holds(g.ranks[i])) continue;
      const auto rank = static_cast<std::size_t>(g.ranks[i]);
      in_full[rank].push_back(fmt::format("{}", fmt::join(hashes_of(e, g, i), "")));
      sums[rank] += checksum::of(in_full[rank].back());
    }
  sums = said_by_all(where, "sums of what is replicated", std::move(sums));
  std::vector<std::size_t> seen(world);  // the groups of each rank so far
  for (const group& g : groups_) {
    std::vector<std::string> of_group;
    for (const int rank : g.ranks)
      of_group.push_back(
          sums[static_cast<std::size_t>(rank)].substr(digits * seen[static_cast<std::size_t>(rank)], digits));
    if (!all_equal(of_group)) {
      std::vector<std::string> full(world);
      for (const int rank : g.ranks)
        if (const auto r = static_cast<std::size_t>(rank); e.holds(rank)) full[r] = in_full[r][seen[r]];
      refuse(g, said_by_all(where, "what is replicated", std::move(full)), step);
    }
    for (const int rank : g.ranks) ++seen[static_cast<std::size_t>(rank)];
  }
}

void replicas::refuse(const group& g, const std::vector<std::string>& hashes, std::int64_t step) const {
  for (std::size_t i = 0; i < g.pieces.size(); ++i) {
    std::vector<std::string> of_piece;
    for (const int rank : g.ranks)
      of_piece.push_back(hashes[static_cast<std::size_t>(rank)].substr(digits * i, digits));
    if (all_equal(of_piece)) continue;
    std::vector<std::string> parts;
    for (const std::vector<int>& some : parted(g.ranks, of_piece))
      parts.push_back(fmt::format("rank{} {}", some.size() > 1 ? "s" : "", ranks_text(some)));
    throw failure(
        70,
        "RC6590: step {}: {} of parameter {} must be the same on ranks {}, but {} differ; memory or "
        "a processor is faulty",
        step, region_names[static_cast<int>(g.pieces[i].where)], g.pieces[i].name, ranks_text(g.ranks),
        fmt::format("{}", fmt::join(parts, " and ")));
  }
  throw failure(70, "RC6591: step {}: the replicated tensors of ranks {} changed while they were compared",
                step, ranks_text(g.ranks));
}

}  // namespace rankc::runtime
