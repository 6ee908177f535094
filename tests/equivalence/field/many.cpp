// SPDX-License-Identifier: Apache-2.0
// Judges many mutants: field_mutants COUNT [SEED [PLANS]]. Of tiny plans, with experts on ranks of their own
// and losses of routers too, and of as many plans that are drawn.
#include "checker.hpp"
#include "judge.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace {

int run(int count, unsigned seed, int drawn) {
  using namespace field;
  std::vector<rankc::plan_data> plans = tiny_plans();
  for (auto& more : {spread_plans(), balanced_plans(), drawn_plans(seed, drawn, 8)})
    plans.insert(plans.end(), more.begin(), more.end());
  const auto begin = std::chrono::steady_clock::now();
  const report r = judge_mutants(subjects_of(plans), check_terms, count, seed);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s%zu plans, %.0f s\n", to_text(r).c_str(), plans.size(), seconds);
  for (const auto& [kind, texts] : r.strict)
    for (std::size_t i = 0; i < std::min<std::size_t>(texts.size(), 3); ++i)
      std::printf("refused though equal: %s\n", texts[i].c_str());
  for (const auto& [list, what] : {std::pair{&r.field_only, "different over the field, equal in f64"},
                                   std::pair{&r.f64_only, "equal over the field, different in f64"}})
    for (const auto& [kind, texts] : *list)
      for (const std::string& text : texts) std::printf("%s: %s\n", what, text.c_str());
  for (const std::string& text : r.wrong_programs)
    std::printf("NO MUTANT, AND REFUSED OR DIFFERENT: %s\n", text.c_str());
  for (const std::string& text : r.failures) std::printf("THE CHECKER FAILED: %s\n", text.c_str());
  for (const std::string& text : r.false_accepts) std::printf("FALSE ACCEPT: %s\n", text.c_str());
  return r.false_accepts.empty() && r.failures.empty() && r.wrong_programs.empty() && r.total.mutants == count
             ? 0
             : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run(argc > 1 ? std::atoi(argv[1]) : 1000, argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1,
               argc > 3 ? std::atoi(argv[3]) : 30);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 2;
  }
}
