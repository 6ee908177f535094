// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/error_file.hpp>

#include <nlohmann/json.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <ctime>

namespace rankc::runtime {

namespace {

/// Whether a file may be overwritten: it is a stream, is empty, or has a failure in the launchers' format.
bool is_report(const std::filesystem::path& file) {
  if (is_stream(file)) return true;
  const std::string there = beginning_of(file);
  return there.empty() || there.starts_with("{\"message\":");
}

}  // namespace

void write_error_file(const environment& get, const std::string& text, bool is_victim) {
  const char* file = get("TORCHELASTIC_ERROR_FILE");
  if (file == nullptr || *file == '\0') return;
  const std::string seconds = std::to_string(std::time(nullptr) + (is_victim ? 1 : 0));
  const nlohmann::json content = {
      {"message", {{"message", text}, {"extraInfo", {{"py_callstack", text}, {"timestamp", seconds}}}}}};
  std::error_code none;
  const bool is_there = std::filesystem::exists(file, none);
  if (is_victim && is_there) return;  // if ranks share a file, the cause's report stays
  if (is_there && !is_report(file)) return;
  try {
    write_output(file, content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", 1);
  } catch (const failure&) {  // the failure is already on stderr
  }
}

}  // namespace rankc::runtime
