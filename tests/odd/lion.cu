// SPDX-License-Identifier: Apache-2.0
// The kernel of the optimizer, as add_rankc_program(... OPS lion.hpp) compiles it.
#define RANKC_CUDA_KERNELS
#include "lion.hpp"
