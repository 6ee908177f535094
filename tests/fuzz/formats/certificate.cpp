// SPDX-License-Identifier: Apache-2.0
// A certificate: the check of its claims, and the programs that are compared with the model.
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/verify.hpp>

#include <certificate/document.hpp>

#include "accepted_or_refused.hpp"

using namespace rankc;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  if (!codegen::verify(text).empty()) return 0;
  fuzz::accept_or_refuse([&] { codegen::schema::to_programs(codegen::schema::read(text)); });
  return 0;
}
