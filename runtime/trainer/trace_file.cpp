// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/trace_file.hpp>

#include <rankc/runtime/output_file.hpp>
#include <rankc/runtime/trace_events.hpp>

#include <fmt/format.h>

namespace rankc::runtime {

trace_file::trace_file(const std::filesystem::path& file) : file_(file) {
  const output_file can_be_written(file_, 1);
}

std::string trace_file::write(const description& about, std::int64_t step, std::span<const traced> times) {
  trace_head head{about.name, "measured", step, {about.ranks.begin(), about.ranks.end()}, {}};
  for (const layout& l : about.layouts) {
    std::vector<std::string>& names = head.lanes.emplace_back();
    for (const lane_row& lane : l.lanes) names.push_back(lane.name);
  }
  write_output(file_, trace_events(head, times), 1);
  return fmt::format("trace of step {} in {}", step, file_.string());
}

}  // namespace rankc::runtime
