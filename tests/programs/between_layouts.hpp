// SPDX-License-Identifier: Apache-2.0
// A checkpoint of any plan loads into any other plan of the same model: weights, moments and the following
// steps have the same bits as if whole tensors had been gathered and scattered again.
#pragma once
#include <doctest/doctest.h>
#include <rankc/trainer/checkpoint.hpp>
#include <unistd.h>

#include <filesystem>

#include "run.hpp"

namespace between_layouts {

namespace fs = std::filesystem;
using namespace rankc::runtime;

inline constexpr region regions[]{region::weights, region::first_moment, region::second_moment};

using state_of_run = std::map<region, tensors>;
inline state_of_run state_of(run& r) {
  state_of_run all;
  for (const region w : regions) all[w] = r.tensors(w);
  return all;
}

/// Scatter whole tensors to the ranks of a run.
inline void split(run& r, const state_of_run& from) {
  for (const global_parameter& p : global_parameters(r.about))
    for (const region w : regions) {
      if (w != region::weights && !p.trained) continue;
      const std::vector<double>& values = from.at(w).at(p.name);
      write(*r.engine, p, w, [&](std::size_t first, std::span<double> to) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
      });
    }
}

inline std::vector<const registered*> programs_of(const std::string& family,
                                                  const std::vector<std::string>& layouts) {
  std::vector<const registered*> some;
  for (const registered& program : host_registry)
    if (program.job == family &&
        (layouts.empty() || std::count(layouts.begin(), layouts.end(), program.layout)))
      some.push_back(&program);
  return some;
}

/// The programs that load the n-th one's checkpoint: all, or for a sample the n-th one and the next.
inline std::vector<const registered*> loaders_of(std::size_t n,
                                                 const std::vector<const registered*>& programs) {
  if (host_has_every_program || programs.size() == 1) return programs;
  return {programs[n], programs[(n + 1) % programs.size()]};
}

/// Save a checkpoint under each of the programs and load it under others. The family has `all` programs.
inline void save_and_load(const std::vector<const registered*>& programs, int all) {
  const int found = static_cast<int>(programs.size());
  REQUIRE(found == expected_of(found, all));
  const int steps_after = host_has_every_program ? 5 : 2;
  const fs::path folder = fs::temp_directory_path() / ("rankc_checkpoints_" + std::to_string(getpid()));
  for (std::size_t n = 0; n < programs.size(); ++n) {
    const registered* saved = programs[n];
    CAPTURE(saved->job);
    CAPTURE(saved->layout);
    run from(*saved, "arith", 1e-2);
    for (int step = 0; step < 3; ++step) from.step();
    const state_of_run expected = state_of(from);
    fs::remove_all(folder);
    fs::create_directories(folder);
    const run_state state{.step = 3,
                          .samples = 0,
                          .init = "",
                          .data = "",
                          .train = from.about.train,
                          .plan_hash = from.about.plan_hash};
    const fs::path at = save_checkpoint(*from.engine, state, folder);
    for (const registered* loaded : loaders_of(n, programs)) {
      CAPTURE(loaded->layout);
      run to(*loaded, "arith", 1e-2), by_hand(*loaded, "arith", 1e-2);
      load_checkpoint(*to.engine, at);
      split(by_hand, expected);
      REQUIRE((state_of(to) == expected));
      to.steps = by_hand.steps = 3;
      for (int step = 0; step < steps_after; ++step) {
        const step_output a = to.step(), b = by_hand.step();
        REQUIRE(a.loss == b.loss);
        REQUIRE(a.grad_norm == b.grad_norm);
        if (loaded != saved) continue;
        const step_output c = from.step();  // the run that continues without a stop
        REQUIRE(a.loss == c.loss);
        REQUIRE(a.grad_norm == c.grad_norm);
      }
      REQUIRE((state_of(to) == state_of(by_hand)));
      if (loaded == saved) REQUIRE((state_of(to) == state_of(from)));
    }
  }
  fs::remove_all(folder);
}

}  // namespace between_layouts
