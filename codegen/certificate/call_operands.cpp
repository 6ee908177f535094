// SPDX-License-Identifier: Apache-2.0
// Compares the operands of a call with the reads, writes and views of its op. So the hash of the calls
// (hash_calls.cpp) stands for the ops that are proven.
#include "call_operands.hpp"

#include <rankc/runtime/failure.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace rankc::codegen {

namespace {

class operand_check {
 public:
  explicit operand_check(int rank) : rank_(rank) {}

  void check(const op& o) const {
    if (o.operands.empty()) refuse(o, "RC7298: rank {}: op \"{}\" has no call");
    if (is_over_regions(o)) return check_regions(o);
    if (o.kind == op_kind::send || o.kind == op_kind::receive)
      return expect(o, {(o.kind == op_kind::send ? o.reads : o.writes).at(0).begin});
    if (o.kind == op_kind::collective && is_reduction(o)) return expect(o, {first_byte(o.reads)});
    check_places(o);
  }

 private:
  static bool is_reduction(const op& o) {
    return o.does == collective_kind::all_reduce || o.does == collective_kind::all_reduce_max;
  }
  static std::size_t first_byte(const std::vector<access>& all) {
    std::size_t least = all.at(0).begin;
    for (const access& a : all) least = std::min(least, a.begin);
    return least;
  }

  /// The first bytes that operands may have, and those that operands must have.
  struct places {
    std::set<std::size_t> all, needed;
  };
  static places places_of(const op& o) {
    places of;
    for (const auto* list : {&o.reads, &o.writes})
      for (const access& a : *list) of.all.insert(a.begin);
    if (o.kind == op_kind::collective) of.needed = of.all;
    for (const view& v : o.views) of.needed.insert(first_access(o, v).begin + v.offset);
    of.all.insert(of.needed.begin(), of.needed.end());
    return of;
  }

  void check_places(const op& o) const {
    const places of = places_of(o);
    for (const std::size_t begin : o.operands)
      if (!of.all.contains(begin))
        refuse(
            o,
            "RC7291: rank {}: op \"{}\" calls with an operand at byte {}, where none of its tensors begins",
            begin);
    for (const std::size_t begin : of.needed)
      if (std::find(o.operands.begin(), o.operands.end(), begin) == o.operands.end())
        refuse(
            o,
            "RC7292: rank {}: op \"{}\" calls without an operand at byte {}, where one of its tensors begins",
            begin);
  }

  void expect(const op& o, const std::vector<std::size_t>& begins) const {
    if (o.operands != begins)
      refuse(o, "RC7293: rank {}: op \"{}\" has a call of {} operands; expected one, at byte {}",
             o.operands.size(), begins[0]);
  }

  /// The norm and the optimizer are called with regions. A parameter has the same element in each.
  void check_regions(const op& o) const {
    static constexpr std::array<std::string_view, 4> of_optimizer{"weight", "gradient", "first_moment",
                                                                  "second_moment"};
    const std::size_t n = o.operands.size();
    const bool is_norm = o.row == "sum_squares";
    if (n < 2 || n > (is_norm ? 2 : of_optimizer.size() + 1))
      refuse(o, "RC7294: rank {}: op \"{}\" has a call of {} operands, which are not its regions", n);
    expect_norm(o, o.operands[is_norm ? 0 : n - 1]);
    std::size_t of_weight = 0;
    for (const view& v : o.views) {
      const std::string_view port = v.port.ends_with("weight") ? "weight" : v.port;
      const auto k = static_cast<std::size_t>(std::find(of_optimizer.begin(), of_optimizer.end(), port) -
                                              of_optimizer.begin());
      if (v.written || k == of_optimizer.size()) continue;
      if (k + (is_norm ? 0 : 1) >= n)
        refuse(o, "RC7299: rank {}: op \"{}\" is called without the region of its {}", port);
      const std::size_t element = element_of(o, v, o.operands[k]);
      if (k == 0) of_weight = element;
      else if (!is_norm && element != of_weight)
        refuse(
            o,
            "RC7295: rank {}: op \"{}\" is called with region {} at byte {}, where its parameters do not lie",
            k + 1, o.operands[k]);
    }
  }

  void expect_norm(const op& o, std::size_t begin) const {
    for (const view& v : o.views)
      if (v.port == "norm" && first_access(o, v).begin != begin)
        refuse(o, "RC7296: rank {}: op \"{}\" is called with the norm at byte {}; expected {}", begin,
               first_access(o, v).begin);
  }

  /// Where a tensor begins in a region, in elements.
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

bool is_over_regions(const op& o) { return o.row == "sum_squares" || o.row == "adamw" || o.row == "sgd"; }

void check_operands(const op& o, int rank) { operand_check(rank).check(o); }

}  // namespace rankc::codegen
