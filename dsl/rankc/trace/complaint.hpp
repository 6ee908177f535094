// SPDX-License-Identifier: Apache-2.0
// A complaint is the error message of a typing rule for one op: the user's line, the op, the parameter, the
// axis, the placement found and the one expected.
#pragma once
#include <rankc/base/text.hpp>
#include <rankc/trace/op_row.hpp>
#include <rankc/trace/parameter_name.hpp>

namespace rankc {

/// A source position.
struct here {
  const char* file = "";
  int line = 0;
};

/// The first error that a rule finds in an op. Later ones would only follow from it.
struct complaint {
  std::string_view op;
  parameter_name weight;
  here from;
  sentence text{};
  bool said = false;

  constexpr sentence& begin() {
    said = true;
    std::string_view f = from.file;
    if (auto slash = f.rfind('/'); slash != f.npos) f.remove_prefix(slash + 1);
    text << f << ":" << from.line << ": " << op;
    if (!weight.empty()) text << " '" << weight << "'";
    return text << ": ";
  }
  static constexpr void put(sentence& s, const type& t, const placement& p) {
    if (p == R) s << "replicated (R)";
    else if (p == I) s << "invariant (I)";
    else if (p == P) s << (t.pending_max ? "a pending maximum (P)" : "a pending sum (P)");
    else if (p.outer >= 0)
      s << "sharded along " << t.shape[p.along].name << " in groups, and over these along "
        << t.shape[p.outer].name << " (V)";
    else if (p == varying) s << "different on each rank (V)";
    else s << "sharded along " << t.shape[p.along].name << " (V)";
  }
  /// Appends e.g. "hidden=32".
  static constexpr sentence& put_dim(sentence& s, const dim& d) {
    s << d.name << "=" << d.size << (d.order == shard_order::zig_zag ? " in zig-zag order" : "");
    return d.passed ? s << " shifted by " << d.passed << " ranks" : s;
  }
  /// Appends e.g. "(tokens=64, hidden=32)".
  static constexpr void put_shape(sentence& s, const type& t) {
    s << "(";
    for (int i = 0; i < t.ndim; ++i) put_dim(s << (i ? ", " : ""), t.shape[i]);
    s << ")";
  }
  /// Sets the message "<who> is <found> over <axis>; expected <expected>: <remedy>" if there is none yet.
  constexpr const placement& found(axis a, std::string_view who, const type& t, std::string_view expected,
                                   std::string_view remedy) {
    if (said) return t[a];
    sentence& s = begin();
    s << who << " is ";
    put(s, t, t[a]);
    s << " over " << name(a) << "; expected " << expected << ": " << remedy;
    return t[a];
  }
};

}  // namespace rankc
