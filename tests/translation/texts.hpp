// SPDX-License-Identifier: Apache-2.0
// Plans and the texts that the generator writes of them: written, compiled against the recorder, held to the
// proof.
#pragma once
#include "recording.hpp"

#include <rankc/codegen/program.hpp>
#include <rankc/stages/plan_data.hpp>
#include <rankc/runtime/program.hpp>

#include <map>
#include <string>
#include <vector>

namespace translation {

/// A plan for a target. Its name, of which there is no other, ends with the target: that of its text's
/// namespace.
struct subject {
  rankc::plan_data plan;
  bool cuda;
  rankc::runtime::dtype type;
};
subject make_subject(rankc::plan_data, bool cuda, rankc::runtime::dtype);

/// The programs that are proven of it before a text is written.
rankc::codegen::program proven(const subject&, bool trains);

/// The text into FOLDER/NAME; returns empty, or why there is none.
std::string write(const subject&, const std::string& folder);

/// Texts as shared objects, which find the recorder in this executable.
struct objects {
  std::map<std::string, std::string> object_of, wrong;  // by name: the file, or the compiler's first error
};
objects compile(const std::string& folder, const std::vector<std::string>& names, bool cuda, int at_once);
text load(const objects&, const std::string& name);

/// Hold a text to the programs of a plan; returns empty, or a sentence on the first difference.
std::string hold(const text&, const subject&);

/// The sentence with which the runtime refuses to start a text; empty: it starts every rank.
std::string refusal_of(const text&);

/// Write, compile and hold each in a process of its own, some at once. FOLDER is made, and removed in the
/// end. Returns: name -> what is wrong, for those where something is.
std::map<std::string, std::string> validate(const std::vector<subject>&, const std::string& folder,
                                            int at_once);

}  // namespace translation
