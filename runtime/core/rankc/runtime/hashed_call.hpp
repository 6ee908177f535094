// SPDX-License-Identifier: Apache-2.0
// The format of the hash of calls. The generator fills these structs from the ops that it has proven. The
// runtime fills them from the calls of the text.
#pragma once
#include <rankc/contract/attention_setting.hpp>
#include <rankc/contract/load_balance.hpp>
#include <rankc/runtime/proven.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// The element types, by their numbers in the hash.
enum class hashed_type : unsigned char { bytes, i32, bf16, f32, f64, e4m3, e5m2, e4m3_rows };

/// Rows of elements in a rank's arena, `stride` elements apart. With rows 0 only the offset is hashed.
struct hashed_operand {
  std::size_t begin, rows = 0, columns = 0, stride = 0;
  hashed_type type = hashed_type::bytes;
  /// The operand as one row, if its elements are contiguous.
  hashed_operand flat() const {
    if (stride != columns) return *this;
    return {begin, 1, rows * columns, rows * columns, type};
  }
};

/// Parameters, their gradients and their moments start at multiples of this number of elements.
inline constexpr std::size_t elements_apart = 16;

/// Contiguous elements that an optimizer updates by the same rule.
/// Units: elements.
struct hashed_range {
  std::size_t first, count;
  bool decay = false;
  load_balance balances = {};
  std::size_t end() const { return first + count; }
  bool is_treated_as(const hashed_range& o) const { return decay == o.decay && balances == o.balances; }
};

/// The ranges in their order, with neighbours of the same rule merged.
inline std::vector<hashed_range> joined_ranges(std::span<const hashed_range> all) {
  std::vector<hashed_range> joined;
  for (const hashed_range& next : all)
    if (!joined.empty() && joined.back().end() == next.first && joined.back().is_treated_as(next))
      joined.back().count += next.count;
    else joined.push_back(next);
  return joined;
}

/// A call of a step. Numbers of calls count from 0.
struct hashed_call {
  std::string_view name;  // "linear_dw"
  int lane = 0;
  bool adds = false;  // adds to the previous contents of the results
  std::vector<hashed_operand> operands = {};
  std::vector<double> numbers = {};
  std::vector<std::size_t> firsts = {};   // for sharded dims: the start of the rank's shard
  std::vector<hashed_range> ranges = {};  // for an optimizer or a norm
  std::vector<int> waits = {};            // the calls whose events it waits for, ascending
  std::uint64_t communicator = 0;         // `hash_of` its members; 0 for a kernel
  std::string_view site = {};             // the name that both sides of a communication use
  int site_index = -1;
  std::size_t bytes = 0;                    // communicated per rank
  bool by_rows = false;                     // its rows move while a GEMM runs
  hashed_type summed = hashed_type::bytes;  // the elements that a collective reduces

  /// Adds the numbers of a setting. A plain setting adds none.
  void add(const attention_setting& s) {
    if (!s.is_plain())
      for (const double n : s.numbers()) numbers.push_back(n);
  }
  /// Adds the start of a shard. Ports that share a dim add it once.
  void add_first(std::size_t begin) {
    if (begin != 0 && (firsts.empty() || firsts.back() != begin)) firsts.push_back(begin);
  }
};

/// The order of a lane: the calls that its later calls wait for.
class hashed_lane {
 public:
  /// Makes the next call of the lane wait for these calls.
  void wait(std::span<const int> calls) { join(waits_, calls); }
  /// Adds a call to the lane. Returns the calls that it waits for.
  std::vector<int> call(std::size_t number) {
    last_ = {static_cast<int>(number)};
    return std::exchange(waits_, {});
  }
  /// The calls that must have ended when the lane has reached its end.
  std::vector<int> end() const {
    std::vector<int> calls = last_;
    join(calls, waits_);
    return calls;
  }
  /// The calls that the lane waits for after its last call.
  std::span<const int> waits() const { return waits_; }

 private:
  static void join(std::vector<int>& into, std::span<const int> more) {
    into.insert(into.end(), more.begin(), more.end());
    std::sort(into.begin(), into.end());
    into.erase(std::unique(into.begin(), into.end()), into.end());
  }
  std::vector<int> last_, waits_;
};

/// The hash of a step's calls up to this one, from the hash of the calls before.
inline std::uint64_t hash_of(std::uint64_t before, const hashed_call& c) {
  hasher f(before);
  const auto add_count = [&](const auto& list) { f.add(static_cast<std::uint64_t>(list.size())); };
  f.add(c.name);
  f.add(static_cast<std::uint64_t>(c.lane) << 1 | (c.adds ? 1 : 0));
  add_count(c.operands);
  const bool by_count = c.name == "add";  // the text does not contain the rows of a shard that it adds
  for (const hashed_operand& given : c.operands) {
    const hashed_operand o = by_count ? given.flat() : given;
    f.add(std::uint64_t{o.begin});
    f.add(std::uint64_t{o.rows});
    f.add(std::uint64_t{o.columns});
    f.add(std::uint64_t{o.stride} << 8 | static_cast<std::uint64_t>(o.type));
  }
  add_count(c.numbers);
  for (const double n : c.numbers) f.add(n);
  add_count(c.firsts);
  for (const std::size_t first : c.firsts) f.add(std::uint64_t{first});
  add_count(c.ranges);
  for (const hashed_range& r : c.ranges) {
    f.add(std::uint64_t{r.first});
    f.add(std::uint64_t{r.count} << 1 | (r.decay ? 1 : 0));
    f.add(r.balances.rate);
    f.add(r.balances.mean);
  }
  add_count(c.waits);
  for (const int w : c.waits) f.add(static_cast<std::uint64_t>(w));
  if (c.communicator == 0) return f.value();
  f.add(c.communicator);
  f.add(c.site);
  f.add(static_cast<std::uint64_t>(c.site_index));
  f.add(std::uint64_t{c.bytes} << 1 | (c.by_rows ? 1 : 0));
  f.add(static_cast<std::uint64_t>(c.summed));
  return f.value();
}

/// The hash of a whole step, from the hash of its calls and the waits at the end of each lane.
inline std::uint64_t hash_of(std::uint64_t before, std::span<const hashed_lane> lanes) {
  hasher f(before);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    for (const int w : lanes[lane].waits()) f.add(std::uint64_t{lane} << 32 | static_cast<std::uint32_t>(w));
  return f.value();
}

/// The hash of a communicator, the same for all its members: the kind in its name ("tp" of "tp at dp 0"), and
/// the distance of each member from the first. `place`: the rank's place in a pair whose first member sends;
/// -1 in a group.
inline std::uint64_t hash_of(std::string_view name, std::span<const int> members, int place) {
  hasher f;
  f.add(name.substr(0, name.find(" at ")));
  f.add(static_cast<std::uint64_t>(place));
  for (const int m : members) f.add(static_cast<std::uint64_t>(m - members.front()));
  return f.value();
}

}  // namespace rankc::runtime
