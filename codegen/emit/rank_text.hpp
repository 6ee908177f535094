// SPDX-License-Identifier: Apache-2.0
// The functions of a pipeline rank with their loops, and the families of its constants. They are found before
// any of the rank's files is printed, since a loop of one file decides what is an array in another.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <map>
#include <string>
#include <vector>

#include "families.hpp"

namespace rankc::codegen {

/// A function of a stage, before its loops are found.
struct stage_function {
  std::string head;  // "inline void forward(const lane& on, const slot& s) {"
  std::vector<statement> body = {};
};
std::vector<stage_function> stage_functions(const lowered&, const pipeline_rank&, const stage_plan&);
/// The statements of a step, in issue order.
std::vector<statement> order_of(const lowered&, const pipeline_rank&, const step&);

/// The constants whose names may have numbers: of a stage, of its slots (with a dot before the names), and of
/// the rank's memory.
std::vector<declared_constant> stage_constants(const lowered&, const stage_plan&);
std::vector<declared_constant> slot_members(const lowered&, const stage_plan&);
std::vector<declared_constant> value_constants(const lowered&, const pipeline_rank&, const step&);
std::vector<declared_constant> bucket_constants(const pipeline_rank&);
std::vector<declared_constant> shard_constants(const pipeline_rank&);

struct rolled_function {
  std::string head;
  std::vector<rolled> body = {};
};
std::string function_text(const rolled_function&, const families&);

/// `events`: number of events, of which `event_constants` names those in use. `without_loops`: lines of all
/// statements.
struct rolled_rank {
  rolled_function train, evaluate;
  std::vector<std::vector<rolled_function>> functions = {};  // by stage
  families of = {};
  std::vector<declared_constant> event_constants = {};
  std::size_t events = 0;
  long without_loops = 0;
};

/// The files of a pipeline rank, by name. They have loops if these make them a tenth shorter.
struct rank_files {
  std::map<std::string, std::string> text;
  std::size_t events = 0;
};
rank_files emit_rank(const lowered&, const pipeline_rank&);

std::string emit_memory(const lowered&, const pipeline_rank&, const families&);
std::string emit_stage(const lowered&, const pipeline_rank&, const stage_plan&, const rolled_rank&);
std::string emit_pipeline(const lowered&, const pipeline_rank&, const rolled_rank&);

}  // namespace rankc::codegen
