// SPDX-License-Identifier: Apache-2.0
// The documents of a file: the whole file, or one text field of each JSON line.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace rankc::tool {

/// Calls `visit` with each line of a file that is not blank, without its line break, and with its number from
/// 1 on. The file may be compressed (byte_source.hpp).
/// Errors: failure (1) that names the file; also for a line of 2^31 bytes or more.
void for_each_line(const std::filesystem::path&,
                   const std::function<void(const std::string& line, std::size_t number)>& visit);

/// A text, and the weight of its labels if it has one.
struct text_document {
  std::string text;
  std::optional<float> weight{};
};

/// The keys of JSON lines. Without `text` the whole file is one document. Without `weight` documents have no
/// weight.
struct line_fields {
  std::string text, weight;
};

/// Calls `visit` with each document of a file, which may be compressed (byte_source.hpp). Blank lines are
/// skipped.
/// Errors: failure (1) that names the file, and the line if it is not an object with a text and a weight in
/// these fields; also for a document of 2^31 bytes or more.
void for_each_document(const std::filesystem::path&, const line_fields&,
                       const std::function<void(text_document)>& visit);

}  // namespace rankc::tool
