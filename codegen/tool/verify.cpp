// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/verify.hpp>

#include <fmt/format.h>
#include <read_file.hpp>

#include <chrono>
#include <cmath>
#include <exception>
#include <ostream>

#include "commands.hpp"

namespace rankc::tool {

namespace {

/// Print what holds of the steps of a certificate beside the claims of the proof.
/// Errors: RC8120.
void check_model(const std::string& text, const std::filesystem::path& file, std::uint64_t seed,
                 std::ostream& out) {
  const codegen::certified c = codegen::read_certificate(text);
  codegen::fingerprints drawn;
  double chance = 0;
  for (const codegen::proven& s : c.steps) {
    if (c.model.layers.empty()) {
      out << fmt::format("{}: the certificate has no model to compare with\n", s.program.step);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    const codegen::equivalence e = codegen::check_equivalence(s.program, s.verdict, c.model, seed);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!e.holds && !e.has_unknown_row)
      throw runtime::failure(1, "RC8120: step {} of {} does not compute the model: {}; repeat with --seed {}",
                             s.program.step, file, e.reasons.front(), seed);
    drawn = e.drawn;
    chance += e.drawn.chance;
    out << fmt::format("{}: {} in {:.2f} s\n", s.program.step,
                       e.holds ? "computes the model" : "not compared with the model", took.count());
    for (const std::string& sentence : e.holds ? e.claims : e.reasons) out << "  " << sentence << "\n";
  }
  if (c.model.layers.empty()) return;
  out << fmt::format(
      "terms are compared modulo the primes {} and {}, drawn by seed {}; a file that was written before the "
      "draw and does not compute the model is accepted with a chance below 2^{:.0f}\n",
      drawn.primes[0], drawn.primes[1], seed, std::ceil(std::log2(chance)));
  out << "not claimed: rounding, the types that kernels sum in, the optimizer's formula and scalars; "
         "kernels, collectives "
         "and the loader are taken to do what is said of them\n";
}

}  // namespace

int verify(const std::filesystem::path& file, std::optional<std::uint64_t> seed, std::ostream& out,
           std::ostream& errors) try {
  const std::string text = codegen::read_file(file);
  if (const std::string wrong = codegen::verify(text); !wrong.empty())
    throw runtime::failure(1, "RC8121: the certificate {} is refused: {}", file, wrong);
  check_model(text, file, seed.value_or(codegen::random_seed()), out);
  out << file.string() << ": every claim holds\n";
  return 0;
} catch (const runtime::failure& e) {
  errors << "error: " << e.what() << "\n";
  return e.code;
} catch (const std::exception& e) {
  errors << "error: " << runtime::say("RC8122: the programs of {} cannot be checked: {}", file, e.what())
         << "\n";
  return 1;
}

}  // namespace rankc::tool
