// SPDX-License-Identifier: Apache-2.0
// What every plan of a family must be, lowered for either target.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <vector>

/// Check the programs of plans for training and evaluation: of each plan in f64 for the host, in f32 and in
/// bf16 for CUDA, or in one of these in turn (some_of.hpp). Each program is proven and is the model, and its
/// arena has the bytes that are counted; on the host its certificate is accepted too.
/// Returns: how many programs were checked.
int check_lowered(const std::vector<rankc::plan_data>& plans);

/// The number of programs that check_lowered checks of `plans` plans.
int lowered_programs_of(int plans);
