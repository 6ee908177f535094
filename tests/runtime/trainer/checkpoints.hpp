// SPDX-License-Identifier: Apache-2.0
// State that the tests save and compare.
#pragma once
#include <rankc/trainer/hash.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/run_state.hpp>

#include "fake_engine.hpp"

#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Fills weights and moments with distinct values.
inline void fill_engine(engine& e) {
  for (const region w : {region::weights, region::first_moment, region::second_moment})
    for (const global_parameter& p : global_parameters(e.about()))
      write(e, p, w, [&](std::size_t first, std::span<double> values) {
        hash_uniform(p.name, 0.5, 100 + static_cast<std::uint64_t>(w), first, values.size(), values.data());
      });
}

inline std::map<std::string, std::vector<double>> contents_of(engine& e) {
  std::map<std::string, std::vector<double>> tensors;
  for (const region w : {region::weights, region::first_moment, region::second_moment})
    for (const global_parameter& p : global_parameters(e.about()))
      read(e, p, w, [&](std::size_t, std::span<const double> values) {
        auto& to = tensors[std::to_string(static_cast<int>(w)) + p.name];
        to.insert(to.end(), values.begin(), values.end());
      });
  return tensors;
}

inline run_state example_state(const description& about, std::int64_t step) {
  return {.step = step,
          .samples = static_cast<std::uint64_t>(8 * step),
          .init = "hash:1",
          .data = "arith:5",
          .train = about.train,
          .plan_hash = about.plan_hash};
}

}  // namespace rankc::runtime
