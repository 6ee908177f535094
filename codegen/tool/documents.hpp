// SPDX-License-Identifier: Apache-2.0
// The texts of a file, each of which is a document: the whole file, or one field of each JSON line.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace rankc::tool {

/// Call `visit` with each line of a file that is not blank, without its end, and with its number from 1 on.
/// The file may be compressed (byte_source.hpp).
/// Errors: failure (1) that names the file; also for a line of 2^31 bytes or more.
void for_each_line(const std::filesystem::path&,
                   const std::function<void(const std::string& line, std::size_t number)>& visit);

/// Call `visit` with each document of a file, which may be compressed (byte_source.hpp). `field` is the key
/// of JSON lines; empty: the whole file is one document. Blank lines are skipped.
/// Errors: failure (1) that names the file, and the line where a line is not an object with a text in the
/// field; also for a document of 2^31 bytes or more.
void for_each_document(const std::filesystem::path&, const std::string& field,
                       const std::function<void(std::string text)>& visit);

}  // namespace rankc::tool
