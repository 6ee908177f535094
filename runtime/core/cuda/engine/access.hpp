// SPDX-License-Identifier: Apache-2.0
// Access to a rank's memory between steps.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

namespace rankc::runtime::cuda {

/// Read and write the rank of the context, as in engine. write also rounds the weights into the working copy.
void read(context&, region, std::size_t first, std::size_t count, double* to);
void write(context&, region, std::size_t first, std::size_t count, const double* from);
void logits(context&, std::size_t token, double* to);
void routers(context&, int microbatch, double* to);

}  // namespace rankc::runtime::cuda
