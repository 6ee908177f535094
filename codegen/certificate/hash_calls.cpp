// SPDX-License-Identifier: Apache-2.0
// Hashes the ops of a rank as the calls of its text.
#include "call_operands.hpp"
#include "hash_places.hpp"
#include "hash_rows.hpp"

#include <rankc/codegen/proven_calls.hpp>
#include <rankc/runtime/hashed_call.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace rankc::codegen {

namespace {

using runtime::hashed_call;
using runtime::hashed_range;
using runtime::hashed_type;

static_assert(static_cast<int>(hashed_type::i32) == static_cast<int>(element_type::i32) &&
              static_cast<int>(hashed_type::f64) == static_cast<int>(element_type::f64) &&
              static_cast<int>(hashed_type::e4m3_rows) == static_cast<int>(element_type::e4m3_rows));

/// The tensor of a port as rows, as the kernel's struct has it.
runtime::hashed_operand operand_of(const op& o, const view& v) {
  const access& a = first_access(o, v);
  const auto dim = [&](std::size_t d) { return static_cast<std::size_t>(v.shape[d]); };
  runtime::hashed_operand made{a.begin + v.offset, 1, 1, 1, static_cast<hashed_type>(a.type)};
  if (v.shape.size() == 1) made.columns = made.stride = dim(0);
  if (v.shape.size() == 2) {
    made.rows = dim(0);
    made.columns = dim(1);
    made.stride = static_cast<std::size_t>(v.stride);
  }
  return made;
}

double elements_of(const view& v) {
  double all = 1;
  for (const std::int64_t size : v.shape) all *= static_cast<double>(size);
  return all;
}

/// The tensors of a call, then its scratch: the operands that belong to no port.
std::vector<runtime::hashed_operand> operands_of(const op& o) {
  std::vector<runtime::hashed_operand> all;
  all.reserve(o.operands.size());
  std::vector<std::size_t> rest = o.operands;
  for (const view& v : o.views) {
    all.push_back(operand_of(o, v));
    const auto given = std::find(rest.begin(), rest.end(), all.back().begin);
    if (given != rest.end()) rest.erase(given);
  }
  for (const std::size_t begin : rest) all.push_back({begin});
  return all;
}

/// The elements that an optimizer updates, or whose squares are summed. A parameter includes the padding
/// behind it.
std::vector<hashed_range> ranges_of(const op& o) {
  const std::size_t region = o.operands.at(1);
  std::vector<hashed_range> parts;
  hashed_range as{};
  for (const view& v : o.views) {
    if (!v.written && v.port.ends_with("weight")) {
      as.decay = v.port == "weight";
      as.balances = v.balances;
    }
    if (v.written || v.port != "gradient") continue;
    const access& a = first_access(o, v);
    as.first = (a.begin - region) / element_size(a.type);
    as.count = (static_cast<std::size_t>(v.shape[0]) + runtime::elements_apart - 1) /
               runtime::elements_apart * runtime::elements_apart;
    parts.push_back(as);
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return runtime::joined_ranges(parts);
}

/// Hashes the calls of one rank.
class rank_hasher {
 public:
  /// `rows`: the hash of the rows that the ranks of this program begin with.
  rank_hasher(const program& p, int rank, std::uint64_t rows)
      : p_(p), rank_(rank), rows_(rows), lanes_(static_cast<std::size_t>(p.streams)) {}

  step_hash run() {
    const rank_program& own = p_.ranks[static_cast<std::size_t>(rank_)];
    out_ = {.alike = own.alike, .rank = p_.number_of(rank_), .trains = p_.step == "train"};
    // For each op, the calls that a wait for this op waits for.
    std::vector<std::vector<int>> ends(own.ops.size());
    const std::vector<int> parts = parts_of(own.ops);
    for (std::size_t i = 0; i < own.ops.size(); ++i) {
      const op& o = own.ops[i];
      runtime::hashed_lane& lane = lanes_.at(static_cast<std::size_t>(o.stream));
      for (const int w : o.waits) lane.wait(ends[static_cast<std::size_t>(w)]);
      if (o.kind == op_kind::begin || o.kind == op_kind::end) continue;
      if (!o.row.empty() || o.communicator >= 0) check_operands(o, out_.rank);
      if (!o.operands.empty()) add(o, lane);
      if (parts[i] > 0) add_part(o, parts[i], lane);
      ends[i] = lane.end();
    }
    out_.hash = runtime::hash_of(runtime::hash_of(last(), lanes_), hashed_places_of(own, p_.calls, rows_));
    return std::move(out_);
  }

 private:
  std::uint64_t last() const { return out_.after.empty() ? 0 : out_.after.back(); }

  /// For each op the number of parts in which a row-pipelined GEMM runs; 0: it is not row-pipelined.
  std::vector<int> parts_of(const std::vector<op>& ops) const {
    std::vector<int> parts(ops.size(), 0);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const op& o = ops[i];
      if (o.kind != op_kind::collective || o.by_rows == 0) continue;
      const auto by = static_cast<std::size_t>(o.by_rows);
      parts.at(o.does == collective_kind::all_gather ? i + by : i - by) =
          p_.communicators.at(static_cast<std::size_t>(o.communicator)).members();
    }
    return parts;
  }

  void add(const op& o, runtime::hashed_lane& lane) {
    hashed_call made{.name = o.row, .lane = o.stream};
    if (o.communicator >= 0) communicate(o, made);
    else compute(o, made);
    add(made, lane);
  }
  /// Adds the second of `parts` parts of the rows. Later parts add to sums over rows.
  void add_part(const op& o, int parts, runtime::hashed_lane& lane) {
    hashed_call made{.name = o.row, .lane = o.stream};
    compute(o, made);
    for (std::size_t i = 0; i < o.views.size(); ++i) {
      const view& v = o.views[i];
      runtime::hashed_operand& part = made.operands.at(i);
      if (v.written && v.shape.size() == 1) made.adds = true;
      if (v.shape.size() != 2 || v.port == "w") continue;
      part.rows /= static_cast<std::size_t>(parts);
      part.begin += part.rows * part.stride * element_size(first_access(o, v).type);
    }
    add(made, lane);
  }
  void add(hashed_call& made, runtime::hashed_lane& lane) {
    made.waits = lane.call(out_.after.size());
    out_.after.push_back(runtime::hash_of(last(), made));
  }

  static void compute(const op& o, hashed_call& made) {
    if (o.row == "clear") {
      const view& all = o.views.at(0);
      made.operands = {{o.operands.front()}};
      made.numbers = {elements_of(all) * static_cast<double>(element_size(first_access(o, all).type))};
      return;
    }
    for (const view& v : o.views) {
      made.adds |= v.adds;
      made.add_first(static_cast<std::size_t>(v.first));
    }
    if (is_over_regions(o)) {
      made.ranges = ranges_of(o);
      for (const std::size_t begin : o.operands) made.operands.push_back({begin});
      return;
    }
    made.operands = operands_of(o);
    made.numbers = o.given;
  }

  void communicate(const op& o, hashed_call& made) {
    const communicator& over = p_.communicators.at(static_cast<std::size_t>(o.communicator));
    const bool is_pair = o.kind != op_kind::collective;
    made.name = name_of(o);
    if (o.does == collective_kind::all_to_all || exchanges_slots(o.does)) made.operands = operands_of(o);
    else
      for (const std::size_t begin : o.operands) made.operands.push_back({begin});
    made.communicator = communicator_hash(o.communicator, is_pair);
    made.site = o.name;
    made.site_index = o.message;
    made.bytes = o.bytes;
    made.by_rows = !is_pair && o.by_rows > 0;
    if (is_pair) return;
    if (sums(o.does)) made.summed = static_cast<hashed_type>(o.reads.at(0).type);
    if (o.does == collective_kind::all_to_all) made.numbers = {static_cast<double>(o.seq)};
    if (is_shift(o.does)) made.numbers = {static_cast<double>(o.reads.at(0).end - o.reads[0].begin)};
    if (exchanges_slots(o.does))
      made.numbers = {static_cast<double>(over.members()), static_cast<double>(o.rows)};
  }

  static std::string_view name_of(const op& o) {
    if (o.kind == op_kind::send) return "send";
    if (o.kind == op_kind::receive) return "receive";
    if (o.in_bf16)
      return o.does == collective_kind::all_reduce ? "all_reduce_in_bf16" : "reduce_scatter_in_bf16";
    return collective_kind_names[static_cast<int>(o.does)];
  }

  std::uint64_t communicator_hash(int index, bool is_pair) {
    const auto [at, fresh] = hashes_.try_emplace({index, is_pair});
    if (!fresh) return at->second;
    const communicator& c = p_.communicators[static_cast<std::size_t>(index)];
    const auto place = std::find(c.ranks.begin(), c.ranks.end(), rank_) - c.ranks.begin();
    return at->second = runtime::hash_of(c.name, members_of(c), is_pair ? static_cast<int>(place) : -1);
  }

  /// All members in the world. Along an axis with representative ranks they are at all its indices.
  std::vector<int> members_of(const communicator& c) const {
    std::vector<int> members;
    for (const int r : c.ranks) members.push_back(p_.number_of(r));
    for (const int axis : c.along) {
      const listed_axis& x = p_.mesh.at(static_cast<std::size_t>(axis));
      int stride = 1;
      for (std::size_t inner = static_cast<std::size_t>(axis) + 1; inner < p_.mesh.size(); ++inner)
        stride *= p_.mesh[inner].size;
      std::vector<int> more;
      for (const int m : members)
        if (m / stride % x.size == 0)
          for (int i = 0; i < x.size; ++i) more.push_back(m + i * stride);
      members = std::move(more);
    }
    if (!c.along.empty()) std::sort(members.begin(), members.end());
    return members;
  }

  const program& p_;
  const int rank_;
  const std::uint64_t rows_;
  std::vector<runtime::hashed_lane> lanes_;
  std::map<std::pair<int, bool>, std::uint64_t> hashes_;
  step_hash out_;
};

}  // namespace

std::vector<step_hash> hash_calls(const program& p) {
  std::map<int, std::pair<int, int>> alike;  // the first and the last rank of each program
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r)
    alike.try_emplace(p.ranks[static_cast<std::size_t>(r)].alike, r, r).first->second.second = r;
  std::vector<step_hash> all;
  for (const auto& [index, ranks] : alike) {
    const std::uint64_t rows = hash_of_rows(p, index);
    step_hash first = rank_hasher(p, ranks.first, rows).run(),
              last = rank_hasher(p, ranks.second, rows).run();
    if (first.hash != last.hash) all.push_back(std::move(first));
    all.push_back(std::move(last));
  }
  std::sort(all.begin(), all.end(), [](const step_hash& x, const step_hash& y) { return x.rank < y.rank; });
  return all;
}

}  // namespace rankc::codegen
