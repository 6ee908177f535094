// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/verify.hpp>

#include "verify_schedule.hpp"

namespace rankc::codegen {

std::string verify(const std::string& json_text) {
  try {
    const verifying::file file = verifying::read(json_text);
    for (const auto& document : file.steps) {
      const auto schedule = verifying::check_schedule(document);
      verifying::check_operands(document, schedule);
      verifying::check_represented(document);
      verifying::check_by_rows(document);
      verifying::check_memory(document, schedule);
    }
    return {};
  } catch (const runtime::failure& refused) {
    return refused.what();
  }
}

}  // namespace rankc::codegen
