// SPDX-License-Identifier: Apache-2.0
// Functions of the driver, which the CUDA runtime looks up: nothing links the driver.
#pragma once
#include "check.hpp"

#include <string>

namespace rankc::runtime::cuda {

/// The function as CUDA 12.0 has it. Errors: failure (70) where the driver has none.
template <class Function>
Function driver_function(const rank& r, const char* name) {
  constexpr unsigned since = 12000;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
  check(r, cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &answer),
        "cudaGetDriverEntryPointByVersion");
  if (answer != cudaDriverEntryPointSuccess) fail(r, std::string("the driver has no ") + name);
  return reinterpret_cast<Function>(found);
}

}  // namespace rankc::runtime::cuda
