// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankc::codegen {

/// Kinds of contents of the arena. The other numbers of a content identify it within its kind.
enum content_kind {
  weight,
  gradient,
  first_moment,
  second_moment,
  working_copy,
  gathered,
  full_gradient,
  arrived,
  rope,
  step_input,
  loss,
  norm,
  routers,
  microbatch_value,
  temp,
  chain,
  padding
};

}  // namespace rankc::codegen
