// SPDX-License-Identifier: Apache-2.0
// generate TARGET OUT PARTS: write the plans' programs for the host in f64.
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) {
  const generate_request to(argc, argv);
  std::vector<family_program> programs;
  for (const hugging_face::variant& v : hugging_face::plans()) programs.push_back({v.model, v.layout, "f64", v.plan});
  return write_programs(to, std::move(programs));
}
