// SPDX-License-Identifier: Apache-2.0
// Checks of every plan of a family after lowering for the host and for CUDA.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <vector>

namespace rankc::codegen {
struct lowered;
}

/// Checks the training and evaluation programs of plans. Each plan is lowered in f64 for the host, and in f32
/// and in bf16 for CUDA, or in one of these in turn (some_of.hpp). Each program is proven and matches the
/// model, and its arena has the predicted size. On the host its certificate is accepted too.
/// Returns: the number of checked programs.
int check_lowered(const std::vector<rankc::plan_data>& plans);

/// Checks that the arena of each pipeline rank has the size that the language predicts.
void check_arenas(const rankc::codegen::lowered&);

/// The number of programs that check_lowered checks for `plans` plans.
int lowered_programs_of(int plans);
