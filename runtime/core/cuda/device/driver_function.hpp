// SPDX-License-Identifier: Apache-2.0
// Driver functions, which the CUDA runtime looks up, so that nothing links the driver.
#pragma once
#include "check.hpp"

#include <string>

namespace rankc::runtime::cuda {

/// The function in its version of CUDA 12.0.
/// Errors: failure (70) if the driver does not have it.
template <class Function>
Function driver_function(const rank& r, const char* name) {
  constexpr unsigned since = 12000;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
  check(r, cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &answer),
        "cudaGetDriverEntryPointByVersion");
  if (answer != cudaDriverEntryPointSuccess) fail(r, "RC5107: the driver does not have {}", name);
  return reinterpret_cast<Function>(found);
}

}  // namespace rankc::runtime::cuda
