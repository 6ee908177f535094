// SPDX-License-Identifier: Apache-2.0
// The inputs of a step that the model declares in addition to tokens and targets: the list of a program, and
// the checks of the values.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The inputs that any rank of a program reads, each once.
inline std::vector<input_row> inputs_of(const description& about) {
  std::vector<input_row> all;
  for (const layout& l : about.layouts)
    for (const input_row& i : l.inputs) {
      const auto is_same = [&](const input_row& known) { return std::string_view(known.name) == i.name; };
      if (std::none_of(all.begin(), all.end(), is_same)) all.push_back(i);
    }
  return all;
}

/// "weights, ages"; "none" if there are none.
inline std::string names_of(const std::vector<input_row>& inputs) {
  std::string text;
  for (const input_row& i : inputs) text += (text.empty() ? "" : ", ") + std::string(i.name);
  return text.empty() ? "none" : text;
}

/// The values of an input; nullptr if it is not given.
inline const named_array* find_array(std::span<const named_array> given, std::string_view name) {
  const auto at =
      std::find_if(given.begin(), given.end(), [&](const named_array& a) { return a.name == name; });
  return at == given.end() ? nullptr : &*at;
}

/// Checks the numbers of one input for a microbatch.
/// Errors: failure (1) for another number of values, and for an index that is no int32.
inline void check_values(const description& about, const input_row& input, const named_array& given) {
  const std::size_t wanted = about.tokens_of_microbatch() * static_cast<std::size_t>(input.width);
  if (given.values.size() != wanted)
    throw failure(1, "RC5072: input {} has {} numbers; it must have {} (rows {} x seq {} x width {})",
                  input.name, given.values.size(), wanted, about.rows, about.seq, input.width);
  if (input.is_wide) return;
  using limits = std::numeric_limits<std::int32_t>;
  const auto is_no_index = [](double x) {
    return !(x >= limits::min() && x <= limits::max()) || x != std::floor(x);
  };
  const auto wrong = std::find_if(given.values.begin(), given.values.end(), is_no_index);
  if (wrong != given.values.end())
    throw failure(1, "RC5073: element {} of input {} is {}; it must be a whole number of 32 bits",
                  wrong - given.values.begin(), input.name, *wrong);
}

/// Checks that a microbatch is given every input of the program, and no other.
/// Errors: failure (1) for a missing or unknown input, another size, and an index that is no int32.
inline void check_inputs(const description& about, std::span<const named_array> given) {
  const std::vector<input_row> wanted = inputs_of(about);
  for (const input_row& i : wanted) {
    const named_array* const values = find_array(given, i.name);
    if (values == nullptr)
      throw failure(1, "RC5070: input {} is missing; the plan {} takes the inputs {}", i.name, about.name,
                    names_of(wanted));
    check_values(about, i, *values);
  }
  for (const named_array& a : given) {
    const auto is_it = [&](const input_row& i) { return a.name == i.name; };
    if (std::none_of(wanted.begin(), wanted.end(), is_it))
      throw failure(1, "RC5071: input {} is unknown; the plan {} takes the inputs {}", a.name, about.name,
                    names_of(wanted));
  }
}

}  // namespace rankc::runtime
