// SPDX-License-Identifier: Apache-2.0
// The energy that a GPU has used, read through the driver's NVML. The library is loaded at run time, because
// some toolkits lack its header.
#pragma once

namespace rankc::calibrate {

class meter {
 public:
  /// Measure a CUDA device. Errors: runtime::failure if there is no NVML, or if the device does not count
  /// energy.
  explicit meter(int device);
  ~meter();
  meter(const meter&) = delete;
  meter& operator=(const meter&) = delete;

  /// The energy used since the driver was loaded. Units: joules.
  double read() const;

 private:
  void* find(const char* name) const;

  void* library_;
  void* device_ = nullptr;
  int (*energy_)(void*, unsigned long long*) = nullptr;
};

}  // namespace rankc::calibrate
