// SPDX-License-Identifier: Apache-2.0
// One random fault: a rank, one of its ops, and the change, on this rank alone or on all ranks that have the
// op.
#pragma once
#include "mutants.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace field {

using namespace rankc::codegen;

/// Replace a value by another one in all reads and writes of a rank.
inline void rename(program& p, int in_rank, int from, int to) {
  for (op& o : p.ranks[static_cast<std::size_t>(in_rank)].ops)
    for (auto* list : {&o.reads, &o.writes})
      for (access& a : *list)
        if (a.value == from) a.value = to;
}

struct mutator {
  program& p;
  std::mt19937& random;
  int rank = below(static_cast<int>(p.ranks.size()));
  int i = 0;

  mutator(program& of, std::mt19937& by) : p(of), random(by) {}

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  template <class List>
  auto& one_of(List& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  std::vector<op>& ops() { return p.ranks[static_cast<std::size_t>(rank)].ops; }
  op& at() { return ops()[static_cast<std::size_t>(i)]; }
  std::string text() { return "rank " + std::to_string(rank) + ": \"" + at().name + "\""; }

  /// Pick an op that satisfies a condition. Returns: false if the rank has no such op.
  template <class Suits>
  bool turn_to(Suits suits) {
    std::vector<int> found;
    for (int k = 0; k < static_cast<int>(ops().size()); ++k)
      if (suits(ops()[static_cast<std::size_t>(k)])) found.push_back(k);
    if (!found.empty()) i = one_of(found);
    return !found.empty();
  }
  /// Change the op, and in half of the draws the same op on all ranks that have it. Returns: false if nothing
  /// changed.
  template <class Change>
  bool change(Change change_op) {
    bool changed = false;
    for (int r : ranks_that_have_it()) {
      const bool did = change_op(p.ranks[static_cast<std::size_t>(r)].ops[static_cast<std::size_t>(i)]);
      changed |= did && r == rank;
    }
    return changed;
  }
  fault done(const char* kind, const std::string& what, bool changed) {
    return changed ? fault{kind, text() + what} : fault{};
  }

  /// The ranks that have the op at the same index, this one first; in half of the draws this one alone.
  std::vector<int> ranks_that_have_it() {
    std::vector<int> all{rank};
    const std::string name = at().name;
    const bool everywhere = below(2);
    for (int r = 0; everywhere && r < static_cast<int>(p.ranks.size()); ++r) {
      const std::vector<op>& of = p.ranks[static_cast<std::size_t>(r)].ops;
      if (r != rank && i < static_cast<int>(of.size()) && of[static_cast<std::size_t>(i)].name == name)
        all.push_back(r);
    }
    return all;
  }

  int fresh_value() const {
    int most = 0;
    for (const rank_program& r : p.ranks)
      for (const op& o : r.ops)
        for (const auto* list : {&o.reads, &o.writes})
          for (const access& a : *list) most = std::max(most, a.value);
    return most + 1;
  }
  void rename(int in_rank, int from, int to) { field::rename(p, in_rank, from, to); }
  /// Insert a copy after the op, on its stream.
  void insert_copy(const access& from, const access& to, const tensor_shape& shape, const std::string& name) {
    op copy;
    copy.name = name;
    copy.stream = at().stream;
    copy.function = "copy";
    copy.row = "copy";
    copy.reads = {from};
    copy.writes = {to};
    const std::int64_t stride = shape.size() == 2 ? shape[1] : 1;
    copy.views = {{.port = "y", .written = true, .accesses = {0, 1}, .shape = shape, .stride = stride},
                  {.port = "x", .accesses = {0, 1}, .shape = shape, .stride = stride}};
    const int k = i;
    renumber_waits([k](int w) { return w + (w >= k); });
    ops().insert(ops().begin() + k + 1, std::move(copy));
  }
  template <class Map>
  void renumber_waits(Map to) {
    for (op& o : ops()) {
      for (int& w : o.waits) w = to(w);
      std::erase(o.waits, -1);
    }
  }
};

inline bool computes(const op& o) { return o.kind == op_kind::compute && !o.row.empty(); }
inline bool is_collective(const op& o) { return o.kind == op_kind::collective; }

/// A kind of fault.
using fault_kind = fault (*)(mutator&);
extern const std::vector<fault_kind> faults_of_ops, faults_of_views, faults_of_holdings,
    faults_of_communication;
extern const std::vector<fault_kind> edits_of_ops, edits_of_operands, edits_of_types, edits_of_views,
    edits_of_communication, edits_of_experts, edits_of_holdings;

}  // namespace field
