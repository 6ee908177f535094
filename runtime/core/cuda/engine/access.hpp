// SPDX-License-Identifier: Apache-2.0
// What is read of a rank's memory, and written into it, between steps.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

namespace rankc::runtime::cuda {

/// As engine has them, of the rank of the context. What is written is rounded into the working copy too.
void read(context&, region, std::size_t first, std::size_t count, double* to);
void write(context&, region, std::size_t first, std::size_t count, const double* from);
void logits(context&, std::size_t token, double* to);
void routers(context&, int microbatch, double* to);

}  // namespace rankc::runtime::cuda
