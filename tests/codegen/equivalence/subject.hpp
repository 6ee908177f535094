// SPDX-License-Identifier: Apache-2.0
// A plan's program, and changes to it: a test finds its ops by name, and may replace one value by another.
#pragma once
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>

#include <functional>
#include <string>
#include <vector>

namespace equivalence_tests {

using namespace rankc::codegen;

struct subject {
  program p;
  verdict order;
  specification model;

  subject(const rankc::plan_data& plan, target to, dtype type = dtype::f32, bool evaluates = false);

  /// The checker's verdict on the changed program, with the order that was proven for the unchanged one.
  equivalence check() const { return check_equivalence(p, order, model); }
  /// The reason why it is refused; empty if it is accepted.
  std::string reason() const;

  /// The ops of a rank whose name contains a text, and whose row is `row` if that is given.
  std::vector<op*> find(int rank, const std::string& name, const std::string& row = "");
  /// The n-th such op of each rank that has one.
  std::vector<op*> find_all(const std::string& name, const std::string& row = "", std::size_t n = 0);
  static view& port(op&, const std::string& name);
  static rankc::codegen::access& read_of(op& o, const std::string& port_name) {
    return o.reads[static_cast<std::size_t>(port(o, port_name).accesses.first)];
  }

  /// Remove an op: readers of its results read the operands in the same bytes, or else operands of the same
  /// size.
  void leave_out(int rank, op&);
  /// Insert an op after another one of the same rank.
  void insert_after(int rank, const op* at, const op& more);
  int new_value() const;
};

}  // namespace equivalence_tests
