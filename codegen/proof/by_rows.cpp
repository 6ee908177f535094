// SPDX-License-Identifier: Apache-2.0
// Row-pipelined collectives: a collective and its GEMM run concurrently, in parts of rows. Any part of one
// may overlap any part of the other. So the later op may not write bytes that the earlier op uses, and the
// ops between them may not touch bytes that the collective uses. Only the first op may wait for others, and
// others may wait for the last op only: any other op may end before the rows of other ranks have arrived.
#include "passes.hpp"

#include <algorithm>
#include <span>
#include <unordered_set>

namespace rankc::codegen::proof {

namespace {

/// The ops that run at once: a collective, its GEMM and the ops between the two. Each check returns true if
/// it finds nothing wrong.
class overlap {
 public:
  overlap(int rank, std::span<const op> ops, bool gathers, findings& wrong)
      : rank_(rank),
        ops_(ops),
        gathers_(gathers),
        collective_(gathers ? ops.front() : ops.back()),
        product_(gathers ? ops.back() : ops.front()),
        wrong_(wrong) {}

  bool check() {
    if (!check_pair() || !check_bytes(ops_.back().writes, "write", ops_.back(), ops_.front())) return false;
    for (const op& o : ops_.subspan(1, ops_.size() - 2))
      if (!check_meanwhile(o)) return false;
    return check_waits();
  }

 private:
  template <class... T>
  bool refuse(runtime::sentence<int, std::string, std::type_identity_t<T>...> about, const T&... facts) {
    wrong_.add(about, rank_, collective_.name, facts...);
    return false;
  }

  static bool is_kernel_on(const op& o, int stream) {
    return o.kind == op_kind::compute && o.stream == stream;
  }

  bool check_pair() {
    if (collective_.does != (gathers_ ? collective_kind::all_gather : collective_kind::reduce_scatter))
      return refuse(
          "RC7030: rank {}: op \"{}\" is row-pipelined: only an all_gather or a reduce_scatter may be");
    if (!is_kernel_on(product_, collective_.stream))
      return refuse(
          "RC7031: rank {}: op \"{}\" is row-pipelined with op \"{}\", which is not a kernel on its stream",
          product_.name);
    const auto is_result = [&](const access& r) {
      return !ops_.front().writes.empty() && r.value == ops_.front().writes[0].value;
    };
    if (std::none_of(ops_.back().reads.begin(), ops_.back().reads.end(), is_result))
      return refuse(
          "RC7032: rank {}: op \"{}\" is row-pipelined with op \"{}\", but the later of the two does not "
          "read the result of the earlier",
          product_.name);
    return true;
  }

  bool check_meanwhile(const op& o) {
    if (!is_kernel_on(o, collective_.stream))
      return refuse(
          "RC7033: rank {}: op \"{}\" is row-pipelined, and op \"{}\", which runs meanwhile, is not a kernel "
          "on its stream",
          o.name);
    return check_bytes(o.reads, "read", o, collective_) && check_bytes(o.writes, "write", o, collective_);
  }

  /// Refuses reads or writes of an op that overlap an access of another op. `kind`: read or write.
  bool check_bytes(const std::vector<access>& accesses, const char* kind, const op& of, const op& other) {
    for (const access& w : accesses)
      for (const auto* touched : {&other.reads, &other.writes})
        for (const access& a : *touched)
          if (w.begin < a.end && a.begin < w.end)
            return refuse(
                "RC7034: rank {}: op \"{}\" is row-pipelined, and a {} of op \"{}\", bytes {}..{}, overlaps "
                "bytes {}..{} that op \"{}\" uses",
                kind, of.name, w.begin, w.end, a.begin, a.end, other.name);
    return true;
  }

  bool check_waits() {
    for (const op& o : ops_.subspan(1))
      if (!o.waits.empty())
        return refuse(
            "RC7035: rank {}: op \"{}\" is row-pipelined, and op \"{}\" waits; of the ops that run at once "
            "only the first, \"{}\", may wait",
            o.name, ops_.front().name);
    return true;
  }

  int rank_;
  std::span<const op> ops_;
  bool gathers_;
  const op &collective_, &product_;
  findings& wrong_;
};

}  // namespace

void check_by_rows(const program& p, findings& wrong) {
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) {
    const auto& ops = p.ranks[r].ops;
    std::size_t taken = 0;              // end of the last pair
    std::unordered_set<int> gone;       // values that a row-pipelined reduce_scatter destroys
    std::unordered_set<int> under_way;  // the ops of a pair, without its last
    for (std::size_t i = 1; i < ops.size() && !wrong.full(); ++i) {
      for (int w : ops[i].waits)
        if (under_way.count(w))
          wrong.add(
              "RC7036: rank {}: op \"{}\" waits for op \"{}\", which is in a row-pipelined pair; the pair is "
              "not done when that op ends: wait for the last op of the pair instead",
              r, ops[i].name, ops[static_cast<std::size_t>(w)].name);
      for (const access& a : ops[i].reads)
        if (gone.count(a.value))
          wrong.add(
              "RC7037: rank {}: op \"{}\" reads bytes {}..{}, which a row-pipelined reduce_scatter has "
              "overwritten",
              r, ops[i].name, a.begin, a.end);
      if (ops[i].by_rows == 0) continue;
      const bool gathers = ops[i].does == collective_kind::all_gather;
      const auto by = static_cast<std::size_t>(ops[i].by_rows);
      if (by > 2 || (gathers ? i + by >= ops.size() : i < by)) {
        wrong.add(
            "RC7038: rank {}: op \"{}\" is row-pipelined with the op {} places away; its GEMM must be 1 or 2 "
            "places away, after an all_gather or before a reduce_scatter",
            r, ops[i].name, ops[i].by_rows);
        continue;
      }
      const std::size_t first = gathers ? i : i - by;
      if (first < taken)
        wrong.add("RC7039: rank {}: op \"{}\" is row-pipelined with an op that is row-pipelined with another",
                  r, ops[i].name);
      else overlap(r, std::span(ops).subspan(first, by + 1), gathers, wrong).check();
      taken = first + by + 1;
      for (std::size_t k = first; k + 1 < taken; ++k) under_way.insert(static_cast<int>(k));
      if (!gathers)
        for (const access& a : ops[i].reads) gone.insert(a.value);
    }
  }
}

}  // namespace rankc::codegen::proof
