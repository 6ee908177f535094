// SPDX-License-Identifier: Apache-2.0
#include "meter.hpp"

#include <rankc/runtime/engine.hpp>

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <string>

namespace rankc::calibrate {

namespace {
void require(int status, const char* what) {
  if (status != 0) throw runtime::failure(70, "RC5200: {} of NVML failed with status {}", what, status);
}
}  // namespace

void* meter::find(const char* name) const {
  if (void* found = library_ ? dlsym(library_, name) : nullptr) return found;
  throw runtime::failure(70, "RC5201: libnvidia-ml.so.1 does not have {}", name);
}

meter::meter(int device) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  char bus[32]{};
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess)
    throw runtime::failure(70, "RC5202: device {} has no bus id", device);
  require(reinterpret_cast<int (*)()>(find("nvmlInit_v2"))(), "nvmlInit");
  require(
      reinterpret_cast<int (*)(const char*, void**)>(find("nvmlDeviceGetHandleByPciBusId_v2"))(bus, &device_),
      "nvmlDeviceGetHandleByPciBusId");
  energy_ =
      reinterpret_cast<int (*)(void*, unsigned long long*)>(find("nvmlDeviceGetTotalEnergyConsumption"));
}

meter::~meter() { dlclose(library_); }

double meter::read() const {
  unsigned long long millijoules = 0;
  require(energy_(device_, &millijoules), "nvmlDeviceGetTotalEnergyConsumption");
  return static_cast<double>(millijoules) / 1000;
}

}  // namespace rankc::calibrate
