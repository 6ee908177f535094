// SPDX-License-Identifier: Apache-2.0
// The kernels of the loss, as add_rankc_program(... OPS square_loss.hpp) has them compiled.
#define RANKC_CUDA_KERNELS
#include "square_loss.hpp"
