// SPDX-License-Identifier: Apache-2.0
// Draws plans by number, and compares the verdicts of the field and the checker on each program.
#include "checker.hpp"
#include "../machine/machine.hpp"
#include "../plans/plans.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <exception>

namespace {

struct settings {
  std::uint64_t seed = 1, from = 0, count = 100;
};

/// Whether neither the field nor the checker finds a fault in a program.
bool is_right(const field::subject& s, unsigned seed) {
  const field::outcome o = field::run_program(s.program, field::run_model(s.model), seed);
  const std::string why = field::check_terms(s.program, s.model);
  if (!o.equal) std::printf("%s differs: %s\n", s.name.c_str(), o.difference.c_str());
  if (!why.empty()) std::printf("%s is refused: %s\n", s.name.c_str(), why.c_str());
  return o.equal && why.empty();
}

struct tally {
  int plans = 0, programs = 0, wrong = 0;
};

void judge(const rankc::plan_data& p, tally& t) {
  using rankc::codegen::dtype;
  using rankc::codegen::target;
  ++t.plans;
  try {
    for (const auto& [type, to] : {std::pair{dtype::f64, target::host}, {dtype::bf16, target::cuda}})
      for (const field::subject& s : field::subjects_of(p, type, to)) {
        ++t.programs;
        t.wrong += !is_right(s, static_cast<unsigned>(t.programs));
      }
  } catch (const std::exception& e) {
    std::printf("%s was not judged: %s\n", std::string(p.name).c_str(), e.what());
    ++t.wrong;
  }
}

int run(const settings& with) {
  const auto begin = std::chrono::steady_clock::now();
  tally t;
  for (std::uint64_t i = with.from; i < with.from + with.count; ++i)
    if (const auto p = field::drawn_plan(with.seed, i, 8)) judge(*p, t);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("draws %llu to %llu of seed %llu: %d valid plans, %d programs, %d wrong or refused, %.0f s\n",
              static_cast<unsigned long long>(with.from),
              static_cast<unsigned long long>(with.from + with.count - 1),
              static_cast<unsigned long long>(with.seed), t.plans, t.programs, t.wrong, seconds);
  return t.wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  CLI::App app{"Draws plans, and asks the field and the checker about their programs."};
  settings with;
  app.add_option("--seed", with.seed);
  app.add_option("--from", with.from, "index of the first draw");
  app.add_option("--count", with.count, "draws");
  CLI11_PARSE(app, argc, argv);
  return run(with);
}
