// SPDX-License-Identifier: Apache-2.0
// The choices of cuBLASLt's algorithms, one for each shape of product. All ranks of a process share them, and
// a file may keep them.
#pragma once
#include "linear_plans.hpp"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace rankc::runtime::cuda {

/// The machine that a choice is for: on another GPU or library the algorithm may be slower, or missing.
struct product_machine {
  std::string gpu;     // as CUDA names it
  std::size_t cublas;  // version, as the library numbers it
  auto operator<=>(const product_machine&) const = default;
  static product_machine of(int device);
};

/// The choices of a process, by machine and shape, and what a file told of them.
class product_choices {
 public:
  /// The choice for a shape. The first rank to ask makes it by `tune`, which is given what was told of it, if
  /// that was; others wait for that. It stays where it is, and `take` may replace what it says.
  const product_choice& of(const product_machine&, const product_shape&,
                           const std::function<product_choice(const std::optional<product_choice>&)>& tune);

  /// Choices of other ranks, or of a file, as `text` gives them. What is known here already is replaced.
  /// Errors: failure (1) naming the line of `whence` that is no choice.
  void take(const std::string& lines, const std::string& whence);

  /// The choices of shapes that ranks here have asked for, where they were timed: a line each, in order.
  /// Units: milliseconds.
  std::string made() const;
  /// These, and what was told besides.
  std::string text() const;

 private:
  using key = std::pair<product_machine, product_shape>;
  struct entry {
    product_choice choice;
    bool made = false;
  };
  using table = std::map<key, product_choice>;
  table made_here() const;
  static std::string lines_of(const table&);

  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::map<key, entry> by_key_;
  table told_;
};

/// The lines of a file that can be read, and a note about the others; empty where there are none.
struct readable_products {
  std::string lines, note{};
};
readable_products readable_lines(const std::string& lines, const std::string& whence);

/// The lines of a file, which is created if it does not exist.
/// Errors: failure (1) where it cannot be read or written.
std::string open_products(const std::string& file);

/// Add the choices to the file, without its unreadable lines. The file is replaced at once. Where that fails
/// it stays as it was, and the next job tunes again.
void keep_products(const std::string& file, const product_choices&);

}  // namespace rankc::runtime::cuda
