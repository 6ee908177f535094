// SPDX-License-Identifier: Apache-2.0
// What every program passes before anything is written of it: the memory of its ranks, and the proof.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/proven_calls.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// A program of which text may be written.
struct gated {
  std::string not_compared;      // why it is not compared with the model; empty: it is
  std::vector<step_fold> folds;  // of the calls that are proven, step by step
};

/// Refuse a program of which nothing may be written: what every rank needs must fit into what it has (RC401),
/// the programs of all ranks are proven, they compute what the model is on one device, for training and for
/// evaluation, and each step begins with what the other leaves. Programs with an op that the table of facts
/// lacks, a user's, are not compared with the model.
/// Errors: std::runtime_error with the sizes that do not fit; RC7903 with the reasons of the proof; RC7904
/// with those of the check.
gated check_or_throw(const lowered&);

}  // namespace rankc::codegen
