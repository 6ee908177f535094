// SPDX-License-Identifier: Apache-2.0
// A program of a plan, and changes to it: its ops are found by their names, and a value may be read in place
// of another.
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

  /// What the checker says of the program as it is now, in the order that was proven of it as it was.
  equivalence check() const { return check_equivalence(p, order, model); }
  /// Why it is refused; nothing where it is accepted.
  std::string reason() const;

  /// The ops of a rank whose name has a text, and of a row where one is named.
  std::vector<op*> find(int rank, const std::string& name, const std::string& row = "");
  /// Those of all ranks: the n-th of each that has one.
  std::vector<op*> find_all(const std::string& name, const std::string& row = "", std::size_t n = 0);
  static view& port(op&, const std::string& name);
  static rankc::codegen::access& read_of(op& o, const std::string& port_name) {
    return o.reads[static_cast<std::size_t>(port(o, port_name).accesses.first)];
  }

  /// The op does nothing: what it wrote is what it read in the same bytes, or else in others of the same
  /// size.
  void leave_out(int rank, op&);
  /// Another op after it, of the same rank.
  void insert_after(int rank, const op* at, const op& more);
  int new_value() const;
};

}  // namespace equivalence_tests
