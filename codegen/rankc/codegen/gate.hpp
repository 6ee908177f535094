// SPDX-License-Identifier: Apache-2.0
// The checks that a program must pass before its text is written: the memory of its ranks, and the proof.
#pragma once
#include <rankc/codegen/logits.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/proven_calls.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// Facts about a program that the checks find and the text states.
struct gated {
  std::string not_compared;         // why the program is not compared with the model; empty if it is
  std::vector<step_hash> hashes;    // of the proven calls, for each step
  std::vector<kept_logits> logits;  // one for each pipeline coordinate
};

/// Checks a program before its text is written. Every rank must have the memory that it needs (RC401). The
/// programs of all ranks are proven, for training and for evaluation. They must compute the model on one
/// device. Each step must begin with the state that the other step leaves. Programs with a user's op without
/// facts are not compared with the model.
/// Errors: std::runtime_error with the sizes that do not fit; RC7903 with the reasons of the proof; RC7904
/// with those of the comparison.
gated check_or_throw(const lowered&);

}  // namespace rankc::codegen
