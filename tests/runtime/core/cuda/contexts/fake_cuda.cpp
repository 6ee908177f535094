// SPDX-License-Identifier: Apache-2.0
// The libraries below the CUDA runtime core, without a GPU: device memory is memory of the process, and
// kernels and transfers do nothing. Every call that would create a context records the current GPU of its
// thread. A call that is missing here does not link. The functions have the names of the libraries but none
// of their headers: those that return a handle or memory are written out, the others accept all arguments.
// All of them succeed, except `failing_call`. Another file of an executable may replace graphs
// (fake_graphs.cpp).
#include "fake_cuda.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace {

thread_local int current = 0;  // CUDA's default
thread_local int last_error = 0;

std::mutex mutex;
std::set<int> devices;
void* pinned = nullptr;

int touch() {
  const std::lock_guard lock(mutex);
  devices.insert(current);
  return 0;
}

int status_of(const char* call) { return failing_call == call ? 1 : 0; }

int touch(const char* call) {
  touch();
  return status_of(call);
}

int make(void** handle) {
  static char next[1 << 16];
  static std::size_t made = 0;
  const std::lock_guard lock(mutex);
  *handle = &next[made++ % sizeof next];
  return 0;
}

int allocate(void** memory, std::size_t bytes) {
  *memory = std::calloc(bytes, 1);
  return touch();
}

int release(void* memory, const char* call) {
  std::free(memory);
  return touch(call);
}

int write_stream_words() { return touch("cuStreamBatchMemOp"); }

int move(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return touch();
}

}  // namespace

std::string take_contexts() {
  const std::lock_guard lock(mutex);
  std::string text;
  for (const int device : std::exchange(devices, {}))
    text += (text.empty() ? "" : " ") + std::to_string(device);
  return text;
}

void* last_pinned() { return pinned; }

int multiprocessors = 132;

std::string failing_call = [] {
  const char* given = std::getenv("RANKC_FAKE_FAILS");
  return std::string(given != nullptr ? given : "");
}();

extern "C" {

// Functions that do not use a GPU.
int cudaGetDeviceCount(int* count) {
  *count = 2;
  return 0;
}
int cudaGetDevice(int* device) {
  *device = current;
  return status_of("cudaGetDevice");
}
int cudaGetLastError() { return std::exchange(last_error, 0); }
int cudaDeviceGetPCIBusId(char* id, int) {
  *id = '\0';
  return status_of("cudaDeviceGetPCIBusId");
}
int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return status_of("cudaRuntimeGetVersion");
}
int ncclGetVersion(int* version) {
  *version = 22800;
  return status_of("ncclGetVersion");
}
int cudaDeviceGetAttribute(int* value, int which, int) {
  constexpr int multiprocessor_count = 16;
  if (which == multiprocessor_count) *value = multiprocessors;
  return 0;
}
int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return 0;
}
const char* cudaGetErrorString() { return "a planted error"; }
const char* ncclGetErrorString() { return "a planted error"; }
const char* ncclGetLastError() { return ""; }
const char* cublasLtGetStatusString() { return "a planted error"; }
const char* cudnnGetErrorString() { return ""; }
void cudnnGetLastErrorString() {}
int ncclGetUniqueId(void* id) {
  std::memset(id, 0, 128);
  return 0;
}
void** __cudaRegisterFatBinary() {
  static void* fat = nullptr;
  return &fat;
}
void __cudaRegisterFatBinaryEnd() {}
void __cudaUnregisterFatBinary() {}
void __cudaRegisterFunction() {}
void __cudaRegisterVar() {}
int __cudaGetKernel() { return 0; }
int __cudaPushCallConfiguration() { return 0; }
int __cudaPopCallConfiguration() { return 0; }

// Since CUDA 12, this function creates the context.
int cudaSetDevice(int device) {
  current = device;
  return touch("cudaSetDevice");
}

int cudaMalloc(void** p, std::size_t n) { return allocate(p, n); }
int cudaHostAlloc(void** p, std::size_t n, unsigned) {
  const int taken = allocate(p, n);
  pinned = *p;
  return taken;
}
int ncclMemAlloc(void** p, std::size_t n) { return allocate(p, n); }
int cudaFree(void* p) { return release(p, "cudaFree"); }
int cudaFreeHost(void* p) { return release(p, "cudaFreeHost"); }
int ncclMemFree(void* p) { return release(p, "ncclMemFree"); }
int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 40;
  return touch("cudaMemGetInfo");
}
int cudaMemcpy(void* to, const void* from, std::size_t n, int) { return move(to, from, n); }
int cudaMemcpyAsync(void* to, const void* from, std::size_t n, int, void*) { return move(to, from, n); }

int cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                     int* answer) {
  *function = reinterpret_cast<void*>(&write_stream_words);
  return *answer = 0;
}

int cudaStreamCreateWithPriority(void** s, unsigned, int) {
  make(s);
  return touch();
}
int cudaEventCreate(void** e) {
  make(e);
  return touch();
}
int cudaEventCreateWithFlags(void** e, unsigned) {
  make(e);
  return touch();
}
__attribute__((weak)) int cudaStreamEndCapture(void*, void** graph) {
  make(graph);
  return touch();
}
__attribute__((weak)) int cudaGraphInstantiate(void** made, void*, unsigned long long) {
  make(made);
  return touch();
}
std::size_t cublasLtGetVersion() { return 1; }
int cublasLtCreate(void** handle) {
  make(handle);
  return touch();
}
int ncclCommInitRankConfig(void** c) {
  make(c);
  return touch();
}
int ncclCommGetAsyncError(void*, int* state) {
  *state = 0;
  return 0;
}
int ncclCommCount(void*, int* count) {
  *count = 2;
  return 0;
}
int ncclCommUserRank(void*, int* rank) { return *rank = 0; }
__attribute__((weak)) int __cudaLaunchKernel() { return last_error = touch("__cudaLaunchKernel"); }

#define TAKEN(name) \
  __attribute__((weak)) int name() { return touch(#name); }
TAKEN(cudaDeviceEnablePeerAccess);
TAKEN(cudaGetDeviceProperties);
TAKEN(cudaFuncSetAttribute);
TAKEN(cudaDeviceGetStreamPriorityRange);
TAKEN(cudaDeviceSynchronize);
TAKEN(cudaEventDestroy);
TAKEN(cudaEventElapsedTime);
TAKEN(cudaEventRecord);
TAKEN(cudaEventSynchronize);
TAKEN(cudaFreeAsync);
TAKEN(cudaMallocAsync);
TAKEN(cudaMemset);
TAKEN(cudaMemsetAsync);
TAKEN(cudaGraphDestroy);
TAKEN(cudaGraphExecDestroy);
TAKEN(cudaGraphLaunch);
TAKEN(cudaStreamBeginCapture);
TAKEN(cudaStreamDestroy);
TAKEN(cudaStreamIsCapturing);
TAKEN(cudaStreamQuery);
TAKEN(cudaStreamSynchronize);
TAKEN(cudaStreamWaitEvent);
// NCCL's functions restore the thread's current GPU.
TAKEN(ncclAllGather);
TAKEN(ncclAllReduce);
TAKEN(ncclBroadcast);
TAKEN(ncclReduceScatter);
TAKEN(ncclSend);
TAKEN(ncclRecv);
TAKEN(ncclCommAbort);
TAKEN(ncclCommDestroy);
TAKEN(ncclCommRegister);
TAKEN(ncclCommDeregister);
TAKEN(ncclCommWindowRegister);
TAKEN(ncclCommWindowDeregister);
TAKEN(ncclRedOpCreatePreMulSum);
TAKEN(ncclRedOpDestroy);
TAKEN(ncclGroupStart);
TAKEN(ncclGroupEnd);
TAKEN(cublasLtDestroy);
TAKEN(cublasLtMatmul);
TAKEN(cublasLtMatmulAlgoConfigGetAttribute);
TAKEN(cublasLtMatmulAlgoCapGetAttribute);
TAKEN(cublasLtMatmulAlgoCheck);
TAKEN(cublasLtMatmulAlgoConfigSetAttribute);
TAKEN(cublasLtMatmulAlgoGetHeuristic);
TAKEN(cublasLtMatmulDescCreate);
TAKEN(cublasLtMatmulDescDestroy);
TAKEN(cublasLtMatmulDescSetAttribute);
TAKEN(cublasLtMatmulPreferenceCreate);
TAKEN(cublasLtMatmulPreferenceDestroy);
TAKEN(cublasLtMatmulPreferenceSetAttribute);
TAKEN(cublasLtMatrixLayoutCreate);
TAKEN(cublasLtMatrixLayoutDestroy);
TAKEN(cudnnBackendCreateDescriptor);
TAKEN(cudnnBackendDestroyDescriptor);
TAKEN(cudnnBackendExecute);
TAKEN(cudnnBackendFinalize);
TAKEN(cudnnBackendGetAttribute);
TAKEN(cudnnBackendSetAttribute);
TAKEN(cudnnCreate);
TAKEN(cudnnDestroy);
TAKEN(cudnnSetStream);

}  // extern "C"
