// SPDX-License-Identifier: Apache-2.0
// What a GPU has taken so far, by the driver's NVML: found where programs run, since not every toolkit has
// its header.
#pragma once

namespace rankc::calibrate {

class meter {
 public:
  /// Of a CUDA device. Errors: runtime::failure where there is no NVML, or it has no such count.
  explicit meter(int device);
  ~meter();
  meter(const meter&) = delete;
  meter& operator=(const meter&) = delete;

  /// Units: joules, since the driver was loaded.
  double read() const;

 private:
  void* find(const char* name) const;

  void* library_;
  void* device_ = nullptr;
  int (*energy_)(void*, unsigned long long*) = nullptr;
};

}  // namespace rankc::calibrate
