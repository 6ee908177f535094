// SPDX-License-Identifier: Apache-2.0
// CUDA's bf16 by name and size: the recorder computes nothing.
#pragma once
struct __nv_bfloat16 {
  unsigned short bits;
};
