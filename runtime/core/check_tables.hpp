// SPDX-License-Identifier: Apache-2.0
// Checks of a program's tables that all targets share.
#pragma once
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/program.hpp>

#include <algorithm>
#include <cstddef>

namespace rankc::runtime {

/// Errors: failure (1) where the program was generated for another version of the interface.
inline void check_version(const description& about) {
  if (about.interface_version != interface_version)
    throw failure(1,
                  "RC5030: program {} was generated for interface {}; this runtime has {}: generate it again",
                  about.name, about.interface_version, interface_version);
}

/// Errors: failure (1) where the tables and the functions of a program differ in whether it trains.
inline void check_training_step(const description& about, bool has_step) {
  if (about.trains && !has_step)
    throw failure(1, "RC5031: program {} is to train, but has no training step; generate it again",
                  about.name);
  if (!about.trains && has_step)
    throw failure(
        1, "RC5032: program {} is to run forward passes only, but has a training step; generate it again",
        about.name);
}

/// Errors: failure (1) where a program that a generator has made lacks the proven calls of one of its steps.
inline void check_proven(const description& about, int pp, bool trains) {
  const bool is_by_hand = about.plan_hash == 0;
  const auto is_of = [&](const proven_step& s) { return s.pp == pp && s.trains == trains; };
  if (!is_by_hand && std::ranges::none_of(about.proven, is_of))
    throw failure(
        1,
        "RC5149: program {} has no proven calls of the {} step of pipeline coordinate {}; generate it "
        "again",
        about.name, trains ? "training" : "evaluation", pp);
}

/// Errors: failure (1) where lane 0 of a pipeline coordinate is missing or does not compute.
inline void check_first_lanes(const description& about) {
  for (std::size_t pp = 0; pp < about.layouts.size(); ++pp)
    if (const auto lanes = about.layouts[pp].lanes; lanes.empty() || !lanes[0].computes)
      throw failure(1, "RC5033: program {}: lane 0 of pipeline coordinate {} must exist and compute",
                    about.name, pp);
}

}  // namespace rankc::runtime
