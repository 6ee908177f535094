// SPDX-License-Identifier: Apache-2.0
// Simulates the number of GPUs that RANKC_RANKS_ON_ONE_GPU gives; all of them are the first GPU. Programs
// resolve these functions of the CUDA runtime before the library's.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>

namespace {

thread_local int current = 0;

template <class Function>
Function* of_library(Function*, const char* name) {
  static Function* const found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return found;
}
#define RANKC_OF_LIBRARY(f) of_library(&f, #f)

int devices() {
  const char* text = std::getenv("RANKC_RANKS_ON_ONE_GPU");
  return text != nullptr ? std::atoi(text) : 1;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t status = RANKC_OF_LIBRARY(cudaGetDeviceCount)(count);
  if (status == cudaSuccess && *count > 0) *count = devices();
  return status;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return RANKC_OF_LIBRARY(cudaSetDevice)(-1);
  current = device;
  return RANKC_OF_LIBRARY(cudaSetDevice)(0);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  return RANKC_OF_LIBRARY(cudaDeviceGetAttribute)(value, which, 0);
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int) {
  return RANKC_OF_LIBRARY(cudaDeviceGetPCIBusId)(text, length, 0);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

/// Other ranks' work on the GPU may wait for this rank, so only this rank's stream is synchronised.
cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }

}  // extern "C"
