// SPDX-License-Identifier: Apache-2.0
// A program of a family: a plan and the element type of its program.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <string>

struct family_program {
  std::string job, layout, type;  // type: "f64", "f32", "bf16"
  rankc::plan_data plan;
};
