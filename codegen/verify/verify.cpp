// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/verify.hpp>

#include "schedule.hpp"

namespace rankc::codegen {

void verifying::check(const schema::file& file) {
  for (const step& s : file.steps) {
    const schedule order = check_schedule(s);
    check_operands(s, order);
    check_represented(s);
    check_by_rows(s);
    check_memory(s, order);
  }
}

std::string verify(const std::string& json_text) {
  try {
    verifying::check(schema::read(json_text));
    return {};
  } catch (const runtime::failure& refused) {
    return refused.what();
  }
}

}  // namespace rankc::codegen
