// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/error_file.hpp>

#include <nlohmann/json.hpp>
#include <ctime>
#include <fstream>

namespace rankc::runtime {

void write_error_file(const environment& get, const std::string& text, bool is_victim) {
  const char* file = get("TORCHELASTIC_ERROR_FILE");
  if (file == nullptr || *file == '\0') return;
  const std::string seconds = std::to_string(std::time(nullptr) + (is_victim ? 1 : 0));
  const nlohmann::json content = {
      {"message", {{"message", text}, {"extraInfo", {{"py_callstack", text}, {"timestamp", seconds}}}}}};
  if (is_victim && std::ifstream(file)) return;  // where ranks have one file, the cause's stays
  std::ofstream(file) << content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace rankc::runtime
