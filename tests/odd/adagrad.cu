// SPDX-License-Identifier: Apache-2.0
// The kernel of the optimizer, as add_rankc_program(... OPS adagrad.hpp) compiles it.
#define RANKC_CUDA_KERNELS
#include "adagrad.hpp"
