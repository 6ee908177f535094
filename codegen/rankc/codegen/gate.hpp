// SPDX-License-Identifier: Apache-2.0
// The checks that a program passes before text is written of it: the memory of its ranks, and the proof.
#pragma once
#include <rankc/codegen/logits.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/proven_calls.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The facts about a program that its checks find and that its text states.
struct gated {
  std::string not_compared;         // why the program is not compared with the model; empty: it is
  std::vector<step_hash> hashes;    // the proven calls of each step
  std::vector<kept_logits> logits;  // by pipeline coordinate
};

/// Check a program before text is written of it. Every rank must have the memory that it needs (RC401). The
/// programs of all ranks are proven, for training and for evaluation. They must compute the model as it is on
/// one device, and each step must begin with the state that the other leaves. Programs with a user's op that
/// the table of facts lacks are not compared with the model.
/// Errors: std::runtime_error with the sizes that do not fit; RC7903 with the reasons of the proof; RC7904
/// with those of the check.
gated check_or_throw(const lowered&);

}  // namespace rankc::codegen
