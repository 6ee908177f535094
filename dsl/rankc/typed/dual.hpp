// SPDX-License-Identifier: Apache-2.0
// What the rows of ops are written with: rules of typing, and what a dual sees.
#pragma once
#include <rankc/typed/rules.hpp>

namespace rankc {

/// The results of an op beside its first, by their place.
constexpr value result(value first, int place) { return {first.in, first.id + place}; }

/// What a dual sees: the operands of its op by the names of the row's ports, and the gradients of its results.
struct backward {
  trace& t;
  const op of;

  constexpr value operator[](std::string_view port_name) const { return {&t, id(port_name)}; }
  /// The gradient of a result; zeros where nothing uses that result.
  constexpr value gradient(std::string_view port_name) const;
  /// Append a backward op, with the attributes of the forward one.
  constexpr value apply(const op_row& kind, std::initializer_list<value> in) const {
    return t.apply(kind, in, {}, {.with = of.with});
  }
  /// This is the gradient of an input, or a part of it.
  constexpr void give(std::string_view port_name, value g) const { t.give_gradient(id(port_name), g); }
  /// The outputs of a backward op are parts of the gradients of parameters.
  constexpr void contribute(std::initializer_list<std::string_view> parameters, const op_row& kind,
                            std::initializer_list<value> in) const {
    int found[max_outputs]{-1, -1, -1}, n = 0;
    for (std::string_view p : parameters) found[n++] = t.find_parameter(id(p));
    op o{.with = of.with};
    for (int j = 0; j < n; ++j) o.adds_to[j] = found[j];
    t.contribute(kind, in, o);
  }

 private:
  constexpr int id(std::string_view port_name) const {
    int read = 0, written = 0;
    for (const port& p : of.kind->used_ports()) {
      if (!p.is_traced()) continue;
      const int at = p.is_written() ? of.out[written++] : of.in[read++];
      if (p.name == port_name) return at;
    }
    throw std::out_of_range("a dual names a port that its op_row has not");
  }
};

}  // namespace rankc
