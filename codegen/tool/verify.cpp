// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/verify.hpp>

#include <fstream>
#include <iterator>
#include <ostream>

#include "commands.hpp"

namespace rankc::tool {

namespace {

/// The whole file; empty where it cannot be read.
std::string read(const std::filesystem::path& file) {
  try {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  } catch (const std::ios_base::failure&) {  // a folder can be opened, not read
    return {};
  }
}

}  // namespace

int verify(const std::filesystem::path& file, std::ostream& out, std::ostream& errors) {
  const std::string text = read(file);
  if (text.empty()) {
    errors << "error: cannot read a certificate from " << file.string() << "\n";
    return 1;
  }
  if (const std::string wrong = codegen::verify(text); !wrong.empty()) {
    errors << "error: " << file.string() << ": " << wrong << "\n";
    return 1;
  }
  out << file.string() << ": every claim holds\n";
  return 0;
}

}  // namespace rankc::tool
