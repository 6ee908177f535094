// SPDX-License-Identifier: Apache-2.0
// Plants faults in a generated text, by its statements: a call's name, its arguments, or the statement
// itself.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace translation {

using files = std::map<std::string, std::string>;  // name -> text

struct statement {
  std::string before, name, type;  // e.g. "  ", "linear", "<real>"
  std::vector<std::string> arguments;
  std::string lane;  // the lane of a kernel's struct, whose members are the arguments; empty for a call
  std::string text() const;
  /// The member ".member = what".
  std::string& operator[](const std::string& member);
};

/// Changes a text. Errors: throws if the text has no such place.
using fault = std::function<void(files&)>;

/// Replace the nth call of `function`, over all files in order, by `edit`'s result.
fault in_call(const std::string& function, int nth, std::function<std::string(statement)> edit);
/// Edits of a call.
std::function<std::string(statement)> dropped();
std::function<std::string(statement)> doubled();
std::function<std::string(statement)> renamed(const std::string& to);
std::function<std::string(statement)> swapped(const std::string& member, const std::string& other);
/// Replace a member, or an argument; "@" in `to` stands for the old value.
std::function<std::string(statement)> with(const std::string& member, const std::string& to);
std::function<std::string(statement)> on(const std::string& lane);
std::function<std::string(statement)> argument(std::size_t index, const std::string& to);

/// Replace the first match of a regular expression, in any file.
fault matched(const std::string& expression, const std::string& to);

/// Read the compiled files of FOLDER; below, write them into FOLDER with the text's namespace NAME renamed to
/// `to`.
files read_text(const std::string& folder);
void write_text(files, const std::string& folder, const std::string& name, const std::string& to);

}  // namespace translation
