// SPDX-License-Identifier: Apache-2.0
// Faults planted into a generated text, by its statements: a call's name, its arguments, the statement
// itself.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace translation {

using files = std::map<std::string, std::string>;  // name -> text

struct statement {
  std::string before, name, type;  // "  ", "linear", "<real>"
  std::vector<std::string> arguments;
  std::string lane;  // on which a kernel's struct is run, whose members are the arguments
  std::string text() const;
  /// ".member = what"
  std::string& operator[](const std::string& member);
};

/// Changes a text; throws where it has no such place.
using fault = std::function<void(files&)>;

/// The nth call of `function`, over all files in order, becomes what `edit` says.
fault in_call(const std::string& function, int nth, std::function<std::string(statement)> edit);
/// Edits of a call.
std::function<std::string(statement)> dropped();
std::function<std::string(statement)> doubled();
std::function<std::string(statement)> renamed(const std::string& to);
std::function<std::string(statement)> swapped(const std::string& member, const std::string& other);
/// A member, or an argument, where "@" in `to` stands for what it is.
std::function<std::string(statement)> with(const std::string& member, const std::string& to);
std::function<std::string(statement)> on(const std::string& lane);
std::function<std::string(statement)> argument(std::size_t index, const std::string& to);

/// The first match of a regular expression, in any file.
fault matched(const std::string& expression, const std::string& to);

/// The files of FOLDER that are compiled; and into FOLDER, with the text's namespace NAME as `to`.
files read_text(const std::string& folder);
void write_text(files, const std::string& folder, const std::string& name, const std::string& to);

}  // namespace translation
