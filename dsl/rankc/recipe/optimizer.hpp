// SPDX-License-Identifier: Apache-2.0
// An optimizer is one row: its name, its hyperparameters with their rules, and the moments that it keeps for
// each weight. A recipe holds a row with a number for each hyperparameter.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <span>
#include <string_view>

namespace rankc {

/// The numbers that a hyperparameter may have.
enum class hyperparameter_range : unsigned char {
  fraction,      // at least 0 and less than 1
  non_negative,  // at least 0 and finite
  divisor,       // at least the smallest normal number of the step's precision, and finite
  flag           // 0 or 1
};

struct hyperparameter {
  std::string_view name = "";
  hyperparameter_range range = hyperparameter_range::flag;
  int rule = 265;                 // the id of the rule that checks its range
  std::string_view usual = "";    // "0.9 is usual"
  std::string_view printed = "";  // its name in `describe`; empty: `describe` omits it
  std::string_view needs = "";    // another hyperparameter, which may not be 0 if this one is not 0
  std::string_view because = "";  // the reason for `needs`
};

/// A number that an optimizer keeps for each weight from step to step.
struct moment {
  std::string_view name = "", comment = "";  // both in generated text
};

/// The unit of a parameter that an optimizer updates independently.
enum class granularity : unsigned char {
  element,  // a rank updates the elements of its shards, and STEP communicates nothing
  matrix    // STEP has to gather each sharded matrix
};

/// The hyperparameters that a step_input has. A user's row may have others. Its kernels then get all
/// hyperparameters of the row, in its order, as their last argument.
inline constexpr std::string_view hyperparameters_of_step[]{"beta1", "beta2", "eps", "momentum", "nesterov"};

inline constexpr int max_hyperparameters = 5, max_moments = 2;

/// The row of an optimizer.
/// Units: `flops` in floating-point operations of GEMMs for each weight.
struct optimizer_row {
  std::string_view name;   // its kernels have this name
  std::string_view title;  // its name in `describe`
  hyperparameter hyperparameters[max_hyperparameters]{};
  moment moments[max_moments]{};
  std::string_view moments_need = "";  // a hyperparameter: while it is 0, no moments are kept
  rankc::granularity granularity = rankc::granularity::element;
  double flops = 0;
  std::string_view kernel = "";  // "user::lion", for both targets; empty: the runtime has the kernels
  std::string_view header = "";  // declares the user's kernel

  constexpr std::span<const hyperparameter> used_hyperparameters() const {
    const auto is_unused = [](const hyperparameter& h) { return h.name.empty(); };
    const auto* end = std::find_if(hyperparameters, hyperparameters + max_hyperparameters, is_unused);
    return {hyperparameters, end};
  }
  constexpr std::span<const moment> used_moments() const {
    const auto is_unused = [](const moment& m) { return m.name.empty(); };
    return {moments, std::find_if(moments, moments + max_moments, is_unused)};
  }
  /// The index of a hyperparameter; -1 for an unknown name.
  constexpr int find(std::string_view hyperparameter_name) const {
    for (int i = 0; i < max_hyperparameters; ++i)
      if (!hyperparameters[i].name.empty() && hyperparameters[i].name == hyperparameter_name) return i;
    return -1;
  }
  /// Whether a step_input lacks one of the hyperparameters.
  constexpr bool has_own_hyperparameters() const {
    return std::ranges::any_of(used_hyperparameters(), [](const hyperparameter& h) {
      return std::ranges::find(hyperparameters_of_step, h.name) == std::end(hyperparameters_of_step);
    });
  }
};

/// A struct of hyperparameters with a row, such as `adamw`. numbers() has the order of the row.
template <class T>
concept described_optimizer = requires(const T& t) {
  { T::row } -> std::same_as<const optimizer_row&>;
  t.numbers();
};

/// An optimizer and the numbers of its hyperparameters. It is constructed from adamw{...}, sgd{...} or a
/// user's described_optimizer.
struct optimizer {
  const optimizer_row* row;
  std::array<double, max_hyperparameters> numbers;

  template <described_optimizer T>
  constexpr optimizer(const T& of) : row(&T::row), numbers{} {
    constexpr std::size_t count = T::row.used_hyperparameters().size();
    static_assert(std::tuple_size_v<decltype(of.numbers())> == count,
                  "numbers() has one number for each hyperparameter of the row");
    static_assert(!T::row.has_own_hyperparameters() || !T::row.kernel.empty(),
                  "the runtime's kernels take the hyperparameters of hyperparameters_of_step alone");
    std::ranges::copy(of.numbers(), numbers.begin());
  }

  /// A hyperparameter by its name; `otherwise` if the optimizer does not have it.
  constexpr double number(std::string_view name, double otherwise = 0) const {
    const int i = row->find(name);
    return i < 0 ? otherwise : numbers[static_cast<std::size_t>(i)];
  }
  /// The moments that it keeps for each weight.
  constexpr std::span<const moment> moments() const {
    const bool keeps = row->moments_need.empty() || number(row->moments_need) > 0;
    return keeps ? row->used_moments() : std::span<const moment>{};
  }
  constexpr bool operator==(const optimizer&) const = default;
};

}  // namespace rankc
