// SPDX-License-Identifier: Apache-2.0
// The inputs of a step by name: those that the model declares, and the weights of labels. The list of a
// program, and the checks of the values.
#pragma once
#include <rankc/runtime/bf16.hpp>
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/label_weights.hpp>

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

/// Whether an input is the weights of labels.
inline bool has_weights_of_labels(const description& about, const input_row& input) {
  return about.token_weights && input.name == name_of_weights;
}

/// The inputs that the model declares: all but the weights of labels.
inline std::vector<input_row> declared_inputs_of(const description& about) {
  std::vector<input_row> all = inputs_of(about);
  std::erase_if(all, [&](const input_row& input) { return has_weights_of_labels(about, input); });
  return all;
}

/// True if a step takes tokens or targets.
inline bool reads_tokens(const description& about) {
  return std::any_of(about.layouts.begin(), about.layouts.end(),
                     [](const layout& l) { return l.reads_tokens || l.reads_targets; });
}

/// The names of inputs as text: "weights, ages"; "none" without inputs.
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

/// The sizes of an input of a microbatch as text: "rows 2 x seq 4 x width 3".
inline std::string sizes_text(const description& about, const input_row& input) {
  std::string text = "width " + std::to_string(input.width);
  if (input.rows == input_rows::step) return text;
  if (input.rows == input_rows::token) text = "seq " + std::to_string(about.seq) + " x " + text;
  return "rows " + std::to_string(about.rows) + " x " + text;
}
/// The count of numbers in an input of a microbatch.
inline std::size_t count_values(const description& about, const input_row& input) {
  const std::size_t rows_of[]{about.tokens_of_microbatch(), static_cast<std::size_t>(about.rows), 1};
  return rows_of[static_cast<std::size_t>(input.rows)] * static_cast<std::size_t>(input.width);
}

/// A contiguous part of an input that a rank holds.
struct input_run {
  std::size_t first, count;
};
inline std::size_t count_values(std::span<const input_run> runs) {
  std::size_t all = 0;
  for (const input_run& run : runs) all += run.count;
  return all;
}
/// The parts of a microbatch's input that a rank holds, in the order of its memory: the rows of its tokens,
/// of its share of the sequences, or of the step.
inline std::vector<input_run> runs_of(const description& about, const rank_row& r, const input_row& input) {
  const auto width = static_cast<std::size_t>(input.width), rows = static_cast<std::size_t>(about.rows);
  if (input.rows == input_rows::step) return {{0, width}};
  if (input.rows == input_rows::sequence) {
    const std::size_t share = rows / static_cast<std::size_t>(about.cp) * width;
    return {{static_cast<std::size_t>(r.cp) * share, share}};
  }
  const chunks has = input.whole_sequences ? chunks{about.seq, 1, 0} : about.chunks_of(r);
  std::vector<input_run> all;
  for (std::size_t row = 0; row < rows; ++row)
    for (int place = 0; place < has.count(); place += has.length()) {
      const std::size_t token =
          row * static_cast<std::size_t>(about.seq) + static_cast<std::size_t>(has.position(place));
      all.push_back({token * width, static_cast<std::size_t>(has.length()) * width});
    }
  return all;
}

/// The size of an input of a microbatch on a rank.
/// Units: bytes.
inline std::size_t bytes_of_input(const description& about, const rank_row& r, const input_row& input) {
  const std::size_t of_number[]{size_of(about.type), size_of(about.wide()), sizeof(std::int32_t)};
  return count_values(runs_of(about, r, input)) * of_number[static_cast<std::size_t>(input.type)];
}
/// Stores a rank's part of a microbatch's values, in the type of the input.
/// Shapes: values as in named_array; to (bytes_of_input).
inline void store_input(const description& about, const rank_row& r, const input_row& input,
                        std::span<const double> values, std::byte* to) {
  const auto store = [&](auto* at, auto convert) {
    for (const input_run& run : runs_of(about, r, input))
      at = std::transform(values.begin() + static_cast<std::ptrdiff_t>(run.first),
                          values.begin() + static_cast<std::ptrdiff_t>(run.first + run.count), at, convert);
  };
  const auto narrow = [](double x) { return static_cast<float>(x); };
  if (input.type == input_type::index)
    return store(reinterpret_cast<std::int32_t*>(to), [](double x) { return static_cast<std::int32_t>(x); });
  switch (input.type == input_type::real ? about.type : about.wide()) {
    case dtype::f64:
      return store(reinterpret_cast<double*>(to), [](double x) { return x; });
    case dtype::f32:
      return store(reinterpret_cast<float*>(to), narrow);
    case dtype::bf16:
      return store(reinterpret_cast<bf16_bits*>(to), [&](double x) { return rounded_to_nearest(narrow(x)); });
  }
}

/// Errors: failure (1) for a number that is no weight.
inline void check_weights(const named_array& given) {
  const auto wrong = std::find_if_not(given.values.begin(), given.values.end(), is_weight);
  if (wrong != given.values.end())
    throw failure(1, "RC6262: element {} of input {} is {}; a weight is 0, or from {} to {}",
                  wrong - given.values.begin(), given.name, *wrong, least_weight, largest_weight);
}

/// Checks the numbers of one input for a microbatch.
/// Errors: failure (1) for a wrong number of values, for a number that is no weight of a label, and for an
/// index that is not an int32 or is out of its range.
inline void check_values(const description& about, const input_row& input, const named_array& given) {
  const std::size_t wanted = count_values(about, input);
  if (given.values.size() != wanted)
    throw failure(1, "RC5072: input {} has {} numbers; it must have {} ({})", input.name, given.values.size(),
                  wanted, sizes_text(about, input));
  if (has_weights_of_labels(about, input)) return check_weights(given);
  if (input.type != input_type::index) return;
  using limits = std::numeric_limits<std::int32_t>;
  const double least = input.below > 0 ? 0 : limits::min(),
               most = input.below > 0 ? input.below - 1 : limits::max();
  const auto is_no_index = [&](double x) { return !(x >= least && x <= most) || x != std::floor(x); };
  const auto wrong = std::find_if(given.values.begin(), given.values.end(), is_no_index);
  if (wrong != given.values.end())
    throw failure(1, "RC5073: element {} of input {} is {}; it must be a whole number from {} to {}",
                  wrong - given.values.begin(), input.name, *wrong, least, most);
}

/// Checks that a microbatch has every input of the program, and no other.
/// Errors: failure (1) for a missing or unknown input, and those of check_values.
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
