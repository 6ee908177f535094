// SPDX-License-Identifier: Apache-2.0
// Samples in a folder of .npy files: a file NAME.npy for each input of a step, with a row for each sample.
#pragma once
#include <rankc/runtime/named_inputs.hpp>
#include <rankc/trainer/npy_file.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Destinations for the values of one sample. Pointers are null for inputs that the program does not have.
/// Shapes: tokens, targets (seq); inputs: one sample of each declared input; document_begins (seq + 1).
struct sample_view {
  std::int32_t *tokens = nullptr, *targets = nullptr;
  std::span<double* const> inputs{};
  std::uint8_t* document_begins = nullptr;  // zeros; null: the plan has no documents
};

/// The count of numbers that one sample has of an input.
std::size_t count_of_sample(const description&, const input_row&);

class array_folder {
 public:
  /// Opens the files of a program's inputs: tokens and targets if its model reads them, and all declared
  /// inputs. The first dim of a file is the sample. The second is the token, if the input has a row for each
  /// token. The last is the numbers of a row.
  /// Errors: failure (1) for an input with one row per step, a missing file, another shape, and numbers in an
  /// index file that are not whole.
  array_folder(const std::filesystem::path&, const description&);

  std::uint64_t samples() const { return samples_; }
  /// The length of the token stream whose windows of seq tokens are these samples: all windows and one token
  /// more.
  std::uint64_t size() const { return samples_ * seq_ + 1; }
  std::vector<std::filesystem::path> paths() const;
  /// "100 samples in patches.npy, labels.npy"
  std::string text() const;

  /// Writes the values of a sample.
  /// Errors: failure (1), with the file and the sample, for an index that is out of range, for a number that
  /// is no weight of a label, and for a number that is not finite in the program's type.
  void copy(std::uint64_t sample, const sample_view& to) const;

 private:
  struct array {
    npy_file file;
    input_row is;
    std::size_t count;                      // per sample
    std::optional<std::int32_t> ignored{};  // a label outside the range that the plan ignores
    bool has_weights = false;               // weights of labels
  };
  void open(const std::filesystem::path& folder, const input_row&, const description&);
  void read(const array&, std::uint64_t sample, double* to) const;
  void check_index(const array&, std::uint64_t sample, std::span<const double>) const;
  void check_weights(const array&, std::uint64_t sample, std::span<const double>) const;
  void check_finite(const array&, std::uint64_t sample, std::span<const double>) const;

  std::uint64_t samples_ = 0, seq_;
  double largest_;  // the largest finite number of the program's type
  bool has_tokens_;
  std::vector<array> arrays_;  // tokens and targets first, if the model reads them
};

}  // namespace rankc::runtime
