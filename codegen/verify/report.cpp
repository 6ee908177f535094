// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/proven_calls.hpp>
#include <rankc/runtime/printable.hpp>
#include <rankc/runtime/proven.hpp>

#include <fmt/format.h>
#include <command_line.hpp>
#include <read_file.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <map>
#include <ostream>
#include <sstream>

#include "../certificate/model_schema.hpp"
#include "../certificate/writer.hpp"
#include "schedule.hpp"

namespace rankc::codegen {

namespace {

/// The number of elements of a parameter. It is unsigned, because a file may give any shape.
std::uint64_t count(const std::vector<std::int64_t>& shape) {
  std::uint64_t n = 1;
  for (const std::int64_t size : shape) n *= static_cast<std::uint64_t>(size);
  return n;
}

/// A hash of the model in the file.
std::uint64_t hash_of(const specification& model) {
  std::string text;
  schema::writer::write_struct<schema::model_schema>(text, model);
  runtime::hasher h;
  h.add(std::string_view(text));
  return h.value();
}

/// "6 layers, 28 parameters of 3312 elements, 2048 tokens a step, hash 0f1e2d3c4b5a6978"
std::string text_of(const specification& model) {
  std::map<std::string, std::uint64_t> elements;  // by parameter, because layers may share one
  for (const specification::use& u : model.uses) {
    const specification::layer& l = model.layers.at(static_cast<std::size_t>(u.layer));
    for (std::size_t i = 0; i < u.parameters.size(); ++i)
      elements[u.parameters[i]] =
          count(l.values.at(static_cast<std::size_t>(l.parameters.at(i).value)).shape);
  }
  std::uint64_t all = 0;
  for (const auto& [name, n] : elements) all += n;
  return fmt::format("{} layers, {} parameters of {} elements, {} tokens a step, hash {:016x}",
                     model.uses.size(), elements.size(), all, model.tokens, hash_of(model));
}

void print_list(const std::string& title, const std::vector<std::string>& sentences, std::ostream& out) {
  out << title << "\n";
  for (const std::string& s : sentences) out << "  " << s << "\n";
}

std::uint64_t fingerprint_of(const certified& c) {
  std::vector<step_hash> hashes;
  for (const proven& s : c.steps)
    for (step_hash& f : hash_calls(s.program)) hashes.push_back(std::move(f));
  return runtime::fingerprint_of(hashes);
}

/// The fingerprint of the calls of all steps.
/// Errors: RC8121.
std::uint64_t fingerprint_of(const certified& c, const std::filesystem::path& file) {
  try {
    return fingerprint_of(c);
  } catch (const runtime::failure& refused) {
    throw runtime::failure(1, "RC8121: the certificate {} is refused: {}", file, refused.what());
  }
}

/// Prints the plan of the certificate.
void print_plan(const certified& c, std::ostream& out) {
  const program& p = c.steps.front().program;
  const int listed = static_cast<int>(p.ranks.size()), world = p.world_size();
  out << fmt::format("plan {}, hash {:016x}\n", p.plan, p.plan_hash);
  out << fmt::format("world: {} ranks{}\n", world,
                     listed < world ? fmt::format(", for which {} stand", listed) : "");
  if (!c.model.layers.empty()) out << "model: " << text_of(c.model) << "\n";
  out << "kernels: " << name_of(p.calls) << "\n";
}

/// The random draw of a check, and the probability that it accepts a file that it should refuse.
struct draw {
  std::uint64_t seed;
  fingerprints of{};
  double chance = 0;
};

void print_draw(const draw& d, std::ostream& out) {
  out << fmt::format(
      "terms are compared modulo the primes {} and {}, drawn by seed {}; a file that was written before the "
      "draw and does not compute the model is accepted with a chance below 2^{:.0f}\n",
      d.of.primes[0], d.of.primes[1], d.seed, std::ceil(std::log2(d.chance)));
}

/// "the kernel of the user's row silu computes y = x of y(t w) x(t w); its gradients are x = step(dy, x)"
std::string trusted_of(const specification::row_facts& r) {
  std::string text = fmt::format("the kernel of the user's row {} computes {} of {}", r.row, r.rule, r.ports);
  if (!r.needs.empty()) text += fmt::format("; it needs {}", r.needs);
  if (!r.attributes.empty()) text += fmt::format("; it depends on {}", r.attributes);
  if (!r.gradients.empty()) text += fmt::format("; its gradients are {}", r.gradients);
  return text;
}

/// The file's sentences about what is trusted, and the facts of a user's rows.
std::vector<std::string> trusted_by(const certified& c) {
  std::vector<std::string> all = c.trusted;
  for (const specification::row_facts& r : c.model.rows) all.push_back(trusted_of(r));
  return all;
}

/// Prints the claims of a step. Returns the reason why it is not compared with the model; empty if it is.
/// Errors: RC8120.
std::string check_step(const proven& s, const equivalence_check& check, const std::filesystem::path& file,
                       draw& by, std::ostream& out) {
  const auto begin = std::chrono::steady_clock::now();
  const equivalence e = check(s.program, s.verdict);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (e.has_unknown_row) return e.reasons.front();
  if (!e.holds)
    throw runtime::failure(1, "RC8120: step {} of {} does not compute the model: {}; repeat with --seed {}",
                           s.program.step, file, e.reasons.front(), by.seed);
  by.of = e.drawn;
  by.chance += e.drawn.chance;
  print_list(fmt::format("{}: computes the model in {:.2f} s", s.program.step, took.count()), e.claims, out);
  return "";
}

/// Prints the plan, the claims and the trusted sentences. Returns the reason why the steps are not compared
/// with the model; empty if they are.
/// Errors: RC8120, RC8124.
std::string check_model(const certified& c, const std::filesystem::path& file, std::uint64_t seed,
                        std::ostream& out) {
  print_plan(c, out);
  draw by{seed};
  const equivalence_check check = check_against(c.model, seed);
  std::vector<kept_state> steps;
  std::string not_compared;
  if (c.model.layers.empty()) not_compared = runtime::say("RC8125: the certificate has no model");
  for (const proven& s : c.steps) {
    steps.push_back(kept_by(s.program));
    if (c.model.layers.empty()) continue;
    if (const std::string why = check_step(s, check, file, by, out); !why.empty()) not_compared = why;
  }
  const equivalence together = check_steps(steps, c.model);
  if (!together.holds)
    throw runtime::failure(1, "RC8124: the steps of {} do not belong together: {}", file,
                           together.reasons.front());
  print_list("steps: belong together", together.claims, out);
  out << fmt::format("calls: {:016x}, as --version of the program says\n", fingerprint_of(c, file));
  if (by.chance > 0) print_draw(by, out);
  print_list("trusted, and not shown by the certificate:", trusted_by(c), out);
  return not_compared;
}

/// Reads a certificate, and checks its schedule, communication and memory.
/// Errors: RC8121.
certified read_checked(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  try {
    schema::file file = schema::read(text);
    verifying::check(file);
    return to_programs(std::move(file));
  } catch (const runtime::failure& refused) {
    throw runtime::failure(1, "RC8121: the certificate {} is refused: {}", path, refused.what());
  }
}

}  // namespace

int report(const std::filesystem::path& file, std::optional<std::uint64_t> seed, std::ostream& out,
           std::ostream& errors) try {
  std::ostringstream shown;  // printed unless something is refused
  const std::string not_compared = check_model(read_checked(file), file, seed.value_or(random_seed()), shown);
  out << shown.str();
  if (not_compared.empty()) {
    out << runtime::printable(file.string()) << ": every claim holds\n";
    return 0;
  }
  const std::string text = runtime::say(
      "RC8126: the programs of {} are sound and not compared with a model: {}", file, not_compared);
  errors << "warning: " << runtime::error_line(text) << "\n";
  return 3;
} catch (const runtime::failure& e) {
  errors << "error: " << runtime::error_line(e.what()) << "\n";
  return e.code;
} catch (const std::exception& e) {
  const std::string text =
      runtime::say("RC8122: the programs of {} cannot be checked: {}", file, sentence_of(e));
  errors << "error: " << runtime::error_line(text) << "\n";
  return 1;
}

}  // namespace rankc::codegen
