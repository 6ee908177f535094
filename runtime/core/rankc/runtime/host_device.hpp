// SPDX-License-Identifier: Apache-2.0
// Marks functions that run on both the host and the device for CUDA's compiler.
#pragma once

#if defined(__CUDACC__)
#define RANKC_HOST_DEVICE __host__ __device__
#else
#define RANKC_HOST_DEVICE
#endif
