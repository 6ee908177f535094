// SPDX-License-Identifier: Apache-2.0
// Tells whether a source has samples from files that were trained on.
#pragma once
#include <rankc/trainer/sample_source.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace rankc::runtime {

/// The file that proves that samples of a source are among those of `trained` files; null if none does. For
/// token files, one trained file is enough. For arrays, all files must be among `trained`, and the first is
/// returned. Masks, indexes and labels are not compared, because those of other samples may have the same
/// bytes. `files` are marks_of(source), and `is_same` compares a file of the source with a trained one.
template <class Same>
const file_mark* trained_file(const opened_source& source, const std::vector<file_mark>& files,
                              const std::vector<file_mark>& trained, const Same& is_same) {
  const std::span compared(files.data(), source.tokens ? source.tokens->files() : files.size());
  const auto is_trained = [&](const file_mark& f) {
    return f.bytes > 0 &&
           std::any_of(trained.begin(), trained.end(), [&](const file_mark& t) { return is_same(f, t); });
  };
  if (source.arrays && !std::all_of(compared.begin(), compared.end(), is_trained)) return nullptr;
  const auto at = std::find_if(compared.begin(), compared.end(), is_trained);
  return at == compared.end() ? nullptr : &*at;
}

}  // namespace rankc::runtime
