// SPDX-License-Identifier: Apache-2.0
// What every plan of a family must be, lowered for either target.
#pragma once
#include <rankc/stages/plan_data.hpp>

/// Programs of a plan: for training and evaluation, in f64 of the host, in f32 and bf16 of CUDA. Each is
/// proven and is the model, and its arena is what is counted; on the host its certificate is accepted too.
int check_lowered(const rankc::plan_data&);
