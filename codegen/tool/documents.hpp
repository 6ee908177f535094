// SPDX-License-Identifier: Apache-2.0
// The documents of a file: the whole file, or one text field of each JSON line.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace rankc::tool {

/// Calls `visit` with each line of a file that is not blank, without its line break, and with its number from
/// 1 on. The file may be compressed (byte_source.hpp).
/// Errors: failure (1) that names the file; also for a line of 2^31 bytes or more.
void for_each_line(const std::filesystem::path&,
                   const std::function<void(const std::string& line, std::size_t number)>& visit);

/// Calls `visit` with each document of a file, which may be compressed (byte_source.hpp). `field` is the key
/// of JSON lines; empty: the whole file is one document. Blank lines are skipped.
/// Errors: failure (1) that names the file, and the line if it is not an object with a text in the field;
/// also for a document of 2^31 bytes or more.
void for_each_document(const std::filesystem::path&, const std::string& field,
                       const std::function<void(std::string text)>& visit);

}  // namespace rankc::tool
