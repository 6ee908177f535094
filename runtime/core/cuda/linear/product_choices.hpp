// SPDX-License-Identifier: Apache-2.0
// The GEMM cache: cuBLASLt's algorithm for each shape. All ranks of a process share it, and a file may store
// it.
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

/// The machine of a choice. On another GPU or library the algorithm may be slower, or missing.
struct product_machine {
  std::string gpu;     // CUDA's name of the GPU
  std::size_t cublas;  // version, in the library's numbering
  auto operator<=>(const product_machine&) const = default;
  static product_machine of(int device);
};

/// The choices of a process, by machine and shape, and those read from a file or received from other ranks.
class product_choices {
 public:
  /// The choice for a shape. The first rank that asks makes it with `tune`, which receives the cached choice,
  /// if there is one. Other ranks wait for the result. The reference stays valid, and `take` may replace the
  /// choice behind it.
  const product_choice& of(const product_machine&, const product_shape&,
                           const std::function<product_choice(const std::optional<product_choice>&)>& tune);

  /// Takes the choices of other ranks, or of a file, as `text` writes them. They replace existing ones.
  /// Errors: failure (1) that names the invalid line of `whence`.
  void take(const std::string& lines, const std::string& whence);

  /// The timed choices of shapes that ranks of this process have asked for: one line each, sorted.
  /// Units: milliseconds.
  std::string made() const;
  /// The lines of `made`, and of all other cached choices.
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
  table cached_;
};

/// The valid lines of a file, and a note about the others; the note is empty if all are valid.
struct readable_products {
  std::string lines, note{};
};
readable_products readable_lines(const std::string& lines, const std::string& whence);

/// The lines of a file, which is created if it does not exist.
/// Errors: failure (1) if it cannot be read or written.
std::string open_products(const std::string& file);

/// Adds the choices to the file, without its invalid lines. The file is replaced atomically. On failure it is
/// unchanged, and the next job tunes again.
void keep_products(const std::string& file, const product_choices&);

}  // namespace rankc::runtime::cuda
