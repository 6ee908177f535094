// SPDX-License-Identifier: Apache-2.0
// The certificate of a plan as JSON: its programs, and for each an order of its joint events. A reader who
// trusts neither the lowering nor the proof can check both with it.
#pragma once
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/specification.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

/// A program and its verdict.
struct proven {
  codegen::program program;
  codegen::verdict verdict;
};

/// Writes the programs of one plan and the witnesses of their verdicts as JSON, one op a line. Equal programs
/// give equal bytes. Ranks that run the same ops share one listing, with local numbers for communicators and
/// values. Each rank's line maps these numbers to global ones. `verify` refuses the certificate of a program
/// that was not proven.
std::string certificate(const std::vector<proven>&, const specification& model = {});
std::string certificate(const program&, const verdict&);

/// True if a text with this beginning is a certificate.
bool is_certificate(std::string_view beginning);

/// The contents of a certificate: programs, witnesses and the model, as `check_equivalence` takes them.
struct certified {
  std::vector<proven> steps;
  specification model;               // without layers if the certificate has no model
  std::vector<std::string> trusted;  // assumptions that no checker can verify from the certificate
};
/// Reads a certificate that `verify` has accepted.
/// Errors: runtime::failure if the text is not a certificate.
certified read_certificate(const std::string& json_text);

}  // namespace rankc::codegen
