// SPDX-License-Identifier: Apache-2.0
// The id and the arguments of a message of the program. Tests compare these, not the prose, which
// codegen/tool/messages.txt has.
#pragma once
#include <rankc/runtime/failure.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace rankc::test {

struct said {
  int id = 0;
  std::vector<std::string> arguments;

  bool operator==(const said&) const = default;
};

inline doctest::String toString(const said& s) {
  std::string out = "RC" + std::to_string(s.id);
  for (const std::string& argument : s.arguments) out += " {" + argument + "}";
  return out.c_str();
}

/// A failure's sentence and arguments.
inline said said_of(const runtime::failure& f) { return {f.id, f.arguments}; }

/// The failure that a call throws; id 0 if it does not throw.
template <class Call>
said said_by(Call call) {
  try {
    call();
  } catch (const runtime::failure& f) {
    return said_of(f);
  }
  return {};
}

/// The first sentence with an id in a text, or the first one with this id. Its arguments fill the holes of
/// the sentence in codegen/tool/messages.txt; the last one ends with the line.
said said_in(std::string_view text, int id = 0);

}  // namespace rankc::test
