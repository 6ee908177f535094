// SPDX-License-Identifier: Apache-2.0
// The kernels of the op, as add_rankc_program(... OPS silu.hpp) has them compiled.
#define RANKC_CUDA_KERNELS
#include "silu.hpp"
