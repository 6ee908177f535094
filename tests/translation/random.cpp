// SPDX-License-Identifier: Apache-2.0
// translation_random SEED COUNT [FIRST]: draws plans from index FIRST on, and compares the texts of COUNT
// legal plans, for both targets, with the proof.
#include "texts.hpp"

#include <fmt/format.h>
#include <fuzz/plan.hpp>

#include <chrono>
#include <string>

namespace {

using rankc::runtime::dtype;
using translation::subject;

constexpr std::size_t chunk = 48;  // plans that are compiled together

/// Add a plan's text; targets and types alternate: the host in f64 and in f32, GPUs in f32 and in bf16.
void add_texts(const rankc::plan_data& p, std::uint64_t index, std::vector<subject>& to) {
  to.push_back(translation::make_subject(p, false, index % 2 ? dtype::f32 : dtype::f64));
  to.push_back(translation::make_subject(p, true, index % 2 ? dtype::f32 : dtype::bf16));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return 2;
  const std::uint64_t seed = std::stoull(argv[1]), first = argc > 3 ? std::stoull(argv[3]) : 0;
  const int count = std::stoi(argv[2]);
  const auto begin = std::chrono::steady_clock::now();
  int refused = 0, held = 0, texts = 0, ranks = 0, failed = 0;
  for (std::uint64_t index = first; held < count;) {
    std::vector<subject> subjects;
    for (; held < count && subjects.size() < 2 * chunk; ++index) {
      const rankc::plan_data p = fuzz::make(fuzz::draw_plan(seed, index), fmt::format("p{}", index));
      if (!accepts(p.diagnostics)) {
        ++refused;
        continue;
      }
      ++held;
      ranks += 2 * p.dims.world;
      add_texts(p, index, subjects);
    }
    const auto wrong = translation::validate(subjects, "translation_random", 2);
    texts += static_cast<int>(subjects.size());
    failed += static_cast<int>(wrong.size());
    for (const auto& [name, sentence] : wrong) fmt::print("{}: {}\n", name, sentence);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} plans held to their proof, {} refused: {} texts, {} ranks of them; failed {}; {:.0f} s\n",
             held, refused, texts, ranks, failed, took.count());
  return failed > 0 ? 1 : 0;
}
