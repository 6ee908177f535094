// SPDX-License-Identifier: Apache-2.0
// The certificate of a plan: its programs and an order of the joint events of each, as JSON, so that someone
// who trusts neither the lowering nor the proof can check both.
#pragma once
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/specification.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

/// A program and what the proof found of it.
struct proven {
  codegen::program program;
  codegen::verdict verdict;
};

/// Write programs of one plan and the witnesses of their verdicts as JSON, one op a line: same programs, same
/// bytes. Ranks that run the same ops are given them once: with communicators and values by numbers of their
/// own, which each rank's line says the meaning of. The certificate of a program that was not proven is
/// refused by `verify`, as it should be.
std::string certificate(const std::vector<proven>&, const specification& model = {});
std::string certificate(const program&, const verdict&);

/// Whether a text that begins so is a certificate.
bool is_certificate(std::string_view beginning);

/// The programs of a certificate, their witnesses and the model: what `check_equivalence` asks for.
struct certified {
  std::vector<proven> steps;
  specification model;               // without layers where the certificate has no model
  std::vector<std::string> trusted;  // what no checker can know from the certificate
};
/// Read a certificate that `verify` has accepted.
/// Errors: runtime::failure where the text is not a certificate.
certified read_certificate(const std::string& json_text);

}  // namespace rankc::codegen
