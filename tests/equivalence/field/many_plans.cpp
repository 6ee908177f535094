// SPDX-License-Identifier: Apache-2.0
// Draws plans and asks the field and the checker of every program of theirs: field_plans COUNT [SEED].
#include "checker.hpp"
#include "machine.hpp"
#include "plans.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

/// Whether the field and the checker find nothing wrong with a program.
bool is_right(const field::subject& s, unsigned seed) {
  const field::outcome o = field::run_program(s.program, field::run_model(s.model), seed);
  const std::string why = field::check_terms(s.program, s.model);
  if (!o.equal) std::printf("%s differs: %s\n", s.name.c_str(), o.difference.c_str());
  if (!why.empty()) std::printf("%s is refused: %s\n", s.name.c_str(), why.c_str());
  return o.equal && why.empty();
}

struct tally {
  int programs = 0, wrong = 0;
};

void judge(const rankc::plan_data& p, tally& t) {
  using rankc::codegen::dtype;
  using rankc::codegen::target;
  try {
    for (const auto& [type, to] : {std::pair{dtype::f64, target::host}, {dtype::bf16, target::cuda}})
      for (const field::subject& s : field::subjects_of(p, type, to)) {
        ++t.programs;
        t.wrong += !is_right(s, static_cast<unsigned>(t.programs));
      }
  } catch (const std::exception& e) {
    std::printf("%s has no program, or no opinion is had of it: %s\n", p.name.c_str(), e.what());
    ++t.wrong;
  }
}

int run(int count, unsigned seed) {
  const auto begin = std::chrono::steady_clock::now();
  tally t;
  field::each_drawn_plan(seed, count, 8, [&](const rankc::plan_data& p) { judge(p, t); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%d plans, %d programs, %d wrong or refused, %.0f s\n", count, t.programs, t.wrong, seconds);
  return t.wrong > 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return run(argc > 1 ? std::atoi(argv[1]) : 100, argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1);
}
