// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/verify.hpp>

#include <fmt/format.h>

#include <chrono>
#include <exception>
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

/// Print what holds of the steps of a certificate beside the claims of the proof; says whether none is wrong.
bool check_model(const std::string& text, const std::filesystem::path& file, std::ostream& out,
                 std::ostream& errors) {
  const codegen::certified c = codegen::read_certificate(text);
  for (const codegen::proven& s : c.steps) {
    if (c.model.layers.empty()) {
      out << fmt::format("{}: the certificate has no model to compare with\n", s.program.step);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    const codegen::equivalence e = codegen::check_equivalence(s.program, s.verdict, c.model);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!e.holds && !e.has_unknown_row) {
      errors << fmt::format("error: {}: {}: {}\n", file.string(), s.program.step, e.reasons.front());
      return false;
    }
    out << fmt::format("{}: {} in {:.2f} s\n", s.program.step,
                       e.holds ? "computes the model" : "not compared with the model", took.count());
    for (const std::string& sentence : e.holds ? e.claims : e.reasons) out << "  " << sentence << "\n";
  }
  if (!c.model.layers.empty())
    out << "not claimed: rounding, the types that kernels sum in, the optimizer's formula and scalars; "
           "kernels, collectives "
           "and the loader are taken to do what is said of them\n";
  return true;
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
  try {
    if (!check_model(text, file, out, errors)) return 1;
  } catch (const std::exception& e) {
    errors << "error: " << file.string() << ": its programs cannot be read: " << e.what() << "\n";
    return 1;
  }
  out << file.string() << ": every claim holds\n";
  return 0;
}

}  // namespace rankc::tool
