// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/trace_file.hpp>

#include <rankc/launch/refusal.hpp>
#include <rankc/runtime/trace_events.hpp>

#include <cerrno>
#include <cstring>

namespace rankc::runtime {

trace_file::trace_file(const std::filesystem::path& file) : name_(file.string()), out_(file) {
  if (!out_) throw refusal(1, "{}: cannot be written: {}", name_, std::strerror(errno));
}

std::string trace_file::write(const description& about, std::int64_t step, std::span<const traced> times) {
  trace_head head{about.name, "measured", step, {about.ranks.begin(), about.ranks.end()}, {}};
  for (const layout& l : about.layouts) {
    std::vector<std::string>& names = head.lanes.emplace_back();
    for (const lane_row& lane : l.lanes) names.push_back(lane.name);
  }
  out_ << trace_events(head, times) << std::flush;
  if (!out_) throw refusal(1, "{}: cannot be written: {}", name_, std::strerror(errno));
  return fmt::format("trace of step {} in {}", step, name_);
}

}  // namespace rankc::runtime
