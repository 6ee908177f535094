// SPDX-License-Identifier: Apache-2.0
// A step over time, planned or measured, as the pictures and traces of it share it.
#pragma once
#include <rankc/codegen/names.hpp>
#include <rankc/stages/plan_data.hpp>

#include <map>
#include <string>
#include <vector>

namespace rankc::codegen {

/// One thing that a rank does. Units: microseconds.
struct timed {
  int rank, lane;
  std::string name;  // "1F0", "F0: stage 0 -> 1"
  double begin, end;
};

/// How long one forward is drawn in a planned step, whose own unit is the forward.
inline constexpr double planned_forward = 1000;

/// The simulated step, of the first rank (dp 0, tp 0) of each pipeline coordinate: its peers do the same.
std::vector<timed> planned_times(const plan_data&);

/// A step that the plan's program measured (`--trace`), from the file's text; `step` receives its number.
/// Errors: RC7920 to RC7926 where it is not a trace, or its ranks did not run the plan's actions in their
/// order.
std::vector<timed> read_times(const plan_data&, const std::string& text, std::int64_t& step);

/// Of an OVERLAP the first half or the second.
enum class part { whole, first, second };
part part_of(const action_table&, int rank, int action);
bool has_overlaps(const action_table&);

/// The plan's actions by name, and which half of an OVERLAP each is.
struct named_action : action {
  part half;
};
std::map<std::string, named_action> actions_by_name(const plan_data&);

/// The item that begins with action `i` of a table: the action, or the OVERLAP of it and the next.
std::string item_token(const action_table&, int i);

}  // namespace rankc::codegen
