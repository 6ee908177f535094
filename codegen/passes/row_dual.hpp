// SPDX-License-Identifier: Apache-2.0
// The ops that a row's dual applies and the gradients that it gives, in the names of the row's ports.
#pragma once
#include <rankc/trace/backward.hpp>

#include <map>
#include <string>

namespace rankc::codegen {

class row_dual {
 public:
  /// Applies the dual to a copy of the op whose operands are all different values.
  /// Errors: undeclared if the gradients cannot be written down.
  row_dual(const trace&, const rankc::op&);

  /// A trace of the dual's ops only.
  const trace& traced() const { return trace_; }
  /// The gradients of operands, and intermediates, by rows: "_0 = mul(dy, b); a = scale(_0)".
  std::string text() const;

 private:
  void name_ports();
  void check_applied(const rankc::op&) const;
  void check_units(const rankc::op&) const;
  std::map<std::string_view, int> units_of(const rankc::op&) const;
  bool is_read(int value) const;
  std::string operand_of(int made) const;
  std::string left_of(const rankc::op&, int result) const;
  std::string assignments_of(const rankc::op&, std::map<int, std::string>& names) const;

  std::string name_of(int made) const;

  trace trace_;
  int first_made_ = 0;  // the first value that the dual makes
  rankc::op op_;
  std::map<int, std::string> names_;     // names of the values that the dual is given
  std::map<int, std::string> operands_;  // port of each operand
};

}  // namespace rankc::codegen
