// SPDX-License-Identifier: Apache-2.0
// Plans and the texts that the generator writes for them: written, compiled against the recorder, and
// compared with the proof.
#pragma once
#include "recording.hpp"

#include <rankc/codegen/program.hpp>
#include <rankc/stages/plan_data.hpp>
#include <rankc/runtime/program.hpp>

#include <map>
#include <string>
#include <vector>

namespace translation {

/// A plan for a target. Its name is unique and ends with type and target; it is also the namespace of its
/// text.
struct subject {
  rankc::plan_data plan;
  bool cuda;
  rankc::runtime::dtype type;
};
subject make_subject(rankc::plan_data, bool cuda, rankc::runtime::dtype);

/// The program that is proven before its text is written.
rankc::codegen::program proven(const subject&, bool trains);

/// Write the text into FOLDER/NAME. Returns: empty, or the reason why there is none.
std::string write(const subject&, const std::string& folder);

/// Compiled texts as shared objects, which link to the recorder in this executable.
struct objects {
  std::map<std::string, std::string> object_of, wrong;  // by name: the file, or the compiler's first error
};
objects compile(const std::string& folder, const std::vector<std::string>& names, bool cuda, int at_once);
text load(const objects&, const std::string& name);

/// Compare a text with the programs of a plan. Returns: empty, or a sentence about the first difference.
std::string hold(const text&, const subject&);

/// The sentence with which the runtime refuses to start a text; empty if it starts every rank.
std::string refusal_of(const text&);

/// Write, compile and compare each subject in a separate process, `at_once` at a time. FOLDER is created, and
/// removed at the end. Returns: the faults by name, of the subjects that have any.
std::map<std::string, std::string> validate(const std::vector<subject>&, const std::string& folder,
                                            int at_once);

}  // namespace translation
