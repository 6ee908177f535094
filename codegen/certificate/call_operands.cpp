// SPDX-License-Identifier: Apache-2.0
// Compares the operands of a call with the reads, writes and views of its op. The hash of the calls
// (hash_calls.cpp) then covers the ops that are proven.
#include "call_operands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rankc/codegen/scratch_writes.hpp>
#include <rankc/codegen/update_rows.hpp>
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/hashed_call.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace rankc::codegen {

namespace {

class operand_check {
 public:
  explicit operand_check(int rank) : rank_(rank) {}

  void check(const op& o) const {
    if (o.operands.empty()) refuse(o, "RC7298: rank {}: op \"{}\" has no call");
    if (is_over_regions(o)) return check_regions(o);
    if (o.kind == op_kind::compute) return check_kernel(o);
    check_communication(o);
  }

 private:
  using begins = std::vector<std::size_t>;

  static bool is_reduction(const op& o) {
    return o.kind == op_kind::collective &&
           (o.does == collective_kind::all_reduce || o.does == collective_kind::all_reduce_max);
  }
  static std::size_t first_byte(const std::vector<access>& all) {
    std::size_t least = all.at(0).begin;
    for (const access& a : all) least = std::min(least, a.begin);
    return least;
  }

  /// The first byte of each tensor of a kernel, and of its scratch.
  static begins operands_of_kernel(const op& o) {
    begins all;
    for (const view& v : o.views) all.push_back(first_access(o, v).begin + v.offset);
    for (std::size_t w = 0; w < o.writes.size(); ++w)
      if (is_scratch(o, w)) all.push_back(o.writes[w].begin);
    return all;
  }

  /// Compares the operands in any order: the hash takes them in the order of the views.
  void check_kernel(const op& o) const {
    const begins expected = operands_of_kernel(o);
    const auto count = [](const begins& all, std::size_t b) { return std::count(all.begin(), all.end(), b); };
    for (const std::size_t begin : o.operands)
      if (count(expected, begin) == 0)
        refuse(
            o,
            "RC7291: rank {}: op \"{}\" calls with an operand at byte {}, where none of its tensors begins",
            begin);
    for (const std::size_t begin : expected)
      if (count(o.operands, begin) < count(expected, begin))
        refuse(
            o,
            "RC7292: rank {}: op \"{}\" calls without an operand at byte {}, where one of its tensors begins",
            begin);
    if (o.operands.size() != expected.size())
      refuse(o, "RC7263: rank {}: op \"{}\" calls with {} operands; expected {}, one for each of its tensors",
             o.operands.size(), expected.size());
  }

  /// A reduction runs in place, with one operand. Every other collective takes its results before its inputs.
  static begins operands_of_communication(const op& o) {
    if (o.kind == op_kind::send || is_reduction(o)) return {first_byte(o.reads)};
    if (o.kind == op_kind::receive) return {first_byte(o.writes)};
    begins all;
    for (const auto* list : {&o.writes, &o.reads})
      for (const access& a : *list) all.push_back(a.begin);
    return all;
  }

  void check_communication(const op& o) const {
    if (const begins expected = operands_of_communication(o); o.operands != expected)
      refuse(o, "RC7293: rank {}: op \"{}\" calls with operands at bytes {}; expected {}",
             fmt::format("{}", fmt::join(o.operands, ", ")), fmt::format("{}", fmt::join(expected, ", ")));
    if (is_reduction(o) && first_byte(o.writes) != first_byte(o.reads))
      refuse(o,
             "RC7264: rank {}: op \"{}\" reduces the bytes from {} on in place and writes those from {} on; "
             "expected the same bytes",
             first_byte(o.reads), first_byte(o.writes));
  }

  /// The norm and the optimizer are called with regions and with ranges of elements. A parameter has the same
  /// element in each region, and the optimizer updates it in place.
  void check_regions(const op& o) const {
    static constexpr std::array<std::string_view, 4> of_optimizer{"weight", "gradient", "first_moment",
                                                                  "second_moment"};
    const std::size_t n = o.operands.size();
    const bool is_norm = o.row == "sum_squares";
    if (n < 2 || n > (is_norm ? 2 : of_optimizer.size() + 1))
      refuse(o, "RC7294: rank {}: op \"{}\" has a call of {} operands, which are not its regions", n);
    expect_norm(o, o.operands[is_norm ? 0 : n - 1]);
    std::size_t of_weight = 0, regions = 0;
    for (const view& v : o.views) {
      const std::string_view port = v.port.ends_with("weight") ? "weight" : v.port;
      const auto k = static_cast<std::size_t>(std::find(of_optimizer.begin(), of_optimizer.end(), port) -
                                              of_optimizer.begin());
      if (k == of_optimizer.size()) continue;
      if (k + (is_norm ? 0 : 1) >= n)
        refuse(o, "RC7299: rank {}: op \"{}\" is called without an operand for its {}", port);
      regions = std::max(regions, k + 1);
      const std::size_t element = element_of(o, v, o.operands[k]);
      check_range(o, v, element);
      if (k == 0 && !v.written) of_weight = element;
      else if (!is_norm && element != of_weight)
        refuse(o,
               "RC7295: rank {}: op \"{}\" is called with operand {} at byte {}, but its parameters are at "
               "other bytes",
               k + 1, o.operands[k]);
    }
    if (!is_norm && n != regions + 1)
      refuse(o, "RC7796: rank {}: op \"{}\" is called with {} operands before the norm; its tensors need {}",
             n - 1, regions);
  }

  /// The hash has a tensor as a range of elements, rounded up to a multiple of `elements_apart`.
  void check_range(const op& o, const view& v, std::size_t element) const {
    if (v.shape.size() != 1)
      refuse(
          o,
          "RC7265: rank {}: op \"{}\" is called with ranges of elements, but its {} has {} dims; expected 1",
          v.port, v.shape.size());
    if (element % runtime::elements_apart != 0)
      refuse(o,
             "RC7266: rank {}: op \"{}\" is called with a region whose element {} is the first of its {}; "
             "expected a multiple of {}",
             element, v.port, runtime::elements_apart);
  }

  void expect_norm(const op& o, std::size_t begin) const {
    for (const view& v : o.views)
      if (v.port == "norm" && first_access(o, v).begin != begin)
        refuse(o, "RC7296: rank {}: op \"{}\" is called with the norm at byte {}; expected {}", begin,
               first_access(o, v).begin);
  }

  /// The offset of a tensor in a region, in elements.
  std::size_t element_of(const op& o, const view& v, std::size_t region) const {
    const access& a = first_access(o, v);
    const std::size_t size = element_size(a.type);
    if (a.begin < region || (a.begin - region) % size != 0)
      refuse(
          o,
          "RC7297: rank {}: op \"{}\" is called with a region at byte {}, and has a tensor of it at byte {}",
          region, a.begin);
    return (a.begin - region) / size;
  }

  template <class... T>
  [[noreturn]] void refuse(const op& o, runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
                           const T&... facts) const {
    throw runtime::failure(1, about, rank_, o.name, facts...);
  }

  const int rank_;
};

}  // namespace

bool is_over_regions(const op& o) { return o.row == "sum_squares" || is_update(o); }

void check_operands(const op& o, int rank) { operand_check(rank).check(o); }

}  // namespace rankc::codegen
