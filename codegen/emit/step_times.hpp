// SPDX-License-Identifier: Apache-2.0
// A step over time, planned or measured. Pictures and traces show it.
#pragma once
#include <rankc/codegen/names.hpp>
#include <rankc/stages/plan_data.hpp>

#include <map>
#include <string>
#include <vector>

namespace rankc::codegen {

/// An event of a rank. Units: microseconds.
struct timed {
  int rank, lane;
  std::string name;  // "1F0", "F0: stage 0 -> 1"
  double begin, end;
};

/// The length of one forward in a planned step, whose own unit is the forward.
inline constexpr double planned_forward = 1000;

/// The simulated step on the first rank (dp 0, tp 0) of each pipeline coordinate. Its peers do the same.
std::vector<timed> planned_times(const plan_data&);

/// A step that the plan's program measured (`--trace`), from the file's text; `step` receives its number.
/// Errors: RC7920 to RC7926 if it is not a trace, or if its ranks did not run the plan's actions in order.
std::vector<timed> read_times(const plan_data&, const std::string& text, std::int64_t& step);

/// The half of an OVERLAP that an action is.
enum class part { whole, first, second };
part part_of(const action_table&, int rank, int action);
bool has_overlaps(const action_table&);

/// The plan's actions by name, each with the half of an OVERLAP that it is.
struct named_action : action {
  part half;
};
std::map<std::string, named_action> actions_by_name(const plan_data&);

/// The item that begins with action `i` of a table: the action, or the OVERLAP of it and the next.
std::string item_token(const action_table&, int i);

}  // namespace rankc::codegen
