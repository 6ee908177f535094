// SPDX-License-Identifier: Apache-2.0
#include "tensor_map.hpp"

#include "check.hpp"
#include "driver_function.hpp"

#include <string>

namespace rankc::runtime::cuda {

bool is_hopper(const lane& on) {
  return device_attribute(on, cudaDevAttrComputeCapabilityMajor) == 9 &&
         device_attribute(on, cudaDevAttrComputeCapabilityMinor) == 0;
}

CUtensorMap tensor_map(const lane& on, const bf16* matrix, std::size_t rows, int columns, int stride) {
  static const auto encode = driver_function<decltype(&cuTensorMapEncodeTiled)>(on, "cuTensorMapEncodeTiled");
  const cuuint64_t size[]{static_cast<cuuint64_t>(columns), rows},
      apart[]{static_cast<cuuint64_t>(stride) * sizeof(bf16)};
  constexpr cuuint32_t box[]{box_side, box_side}, every[]{1, 1};
  CUtensorMap made;
  const CUresult result = encode(&made, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<bf16*>(matrix), size,
                                 apart, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    fail(on, "cuTensorMapEncodeTiled of " + std::to_string(rows) + " x " + std::to_string(columns) +
                 ": error " + std::to_string(static_cast<int>(result)));
  return made;
}

}  // namespace rankc::runtime::cuda
