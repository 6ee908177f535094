// SPDX-License-Identifier: Apache-2.0
// NCCL's functions for ranks of one process that share a GPU, which NCCL itself refuses. Programs resolve
// them before the library's.
#include "exchange.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

namespace {

using one_gpu::collective;
using one_gpu::what;

/// The state that a communicator's members share.
struct common {
  one_gpu::meeting* at = nullptr;
  int* aborted = nullptr;
  common() {
    cudaMalloc(&at, sizeof(one_gpu::meeting));
    cudaMemset(at, 0, sizeof(one_gpu::meeting));
    cudaHostAlloc(&aborted, sizeof(int), cudaHostAllocMapped);
    *aborted = 0;
    cudaStreamSynchronize(nullptr);
  }
  ~common() {
    cudaFree(at);
    cudaFreeHost(aborted);
  }
  common(const common&) = delete;
  common& operator=(const common&) = delete;
};

std::mutex guard;
int ids = 0;
std::map<int, std::weak_ptr<common>> known;

int number_of(const ncclUniqueId& id) {
  int n = 0;
  std::memcpy(&n, id.internal, sizeof(n));
  return n;
}
std::shared_ptr<common> meeting_of(const ncclUniqueId& id) {
  const std::lock_guard lock(guard);
  std::weak_ptr<common>& of = known[number_of(id)];
  std::shared_ptr<common> found = of.lock();
  if (found == nullptr) of = found = std::make_shared<common>();
  return found;
}

std::size_t bytes_of(ncclDataType_t type) {
  if (type == ncclFloat64) return 8;
  return type == ncclFloat32 ? 4 : 2;
}

/// The factors of scaled sums, by operator numbers above NCCL's own.
std::map<int, double> factors;

}  // namespace

struct ncclComm {
  std::shared_ptr<common> of;
  one_gpu::member member;
};

namespace {

struct pending {
  ncclComm_t of;
  cudaStream_t stream;
  std::vector<one_gpu::message> messages;
};
thread_local int depth = 0;
thread_local std::vector<pending> messages;

ncclResult_t send_or_receive(ncclComm_t c, cudaStream_t stream, const one_gpu::message& m) {
  ncclGroupStart();
  auto of = std::find_if(messages.begin(), messages.end(),
                         [&](const pending& p) { return p.of == c && p.stream == stream; });
  if (of == messages.end()) of = messages.insert(of, {c, stream, {}});
  of->messages.push_back(m);
  return ncclGroupEnd();
}

/// Run a collective. In a group it precedes the messages; rankc's groups contain one kind alone.
ncclResult_t run(ncclComm_t c, cudaStream_t stream, const void* from, void* to, std::size_t count,
                 ncclDataType_t type, what kind, ncclRedOp_t how = ncclSum, int root = 0) {
  if (kind == what::all_reduce && std::getenv("RANKC_WRONG_ALL_REDUCE") != nullptr)
    return ncclSuccess;  // without reducing
  double factor = 1;
  if (how >= ncclNumOps) {
    const std::lock_guard lock(guard);
    factor = factors.at(how);
  }
  one_gpu::enqueue(c->member, collective{kind, from, to, count, type, how == ncclMax, factor, root}, stream);
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(guard);
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->internal, &++ids, sizeof(ids));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int members, ncclUniqueId id, int place,
                                    ncclConfig_t*) {
  if (members > one_gpu::most_members) return ncclInvalidArgument;
  std::shared_ptr<common> of = meeting_of(id);
  *made = new ncclComm{of, {of->at, place, members, of->aborted}};
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t c) {
  delete c;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t c) {
  *static_cast<volatile int*>(c->of->aborted) = 1;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t c, int* count) {
  *count = c->member.members;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t c, int* place) {
  *place = c->member.place;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* status) {
  *status = ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclMemAlloc(void** at, std::size_t bytes) {
  return cudaMalloc(at, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* at) {
  return cudaFree(at) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t, void*, std::size_t, void** handle) {
  *handle = nullptr;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t, void*) { return ncclSuccess; }
ncclResult_t ncclCommWindowRegister(ncclComm_t, void*, std::size_t, ncclWindow_t* window, int) {
  *window = nullptr;
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) { return ncclSuccess; }

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* made, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t, ncclComm_t) {
  if (type != ncclFloat32 && type != ncclFloat64 && type != ncclBfloat16) return ncclInvalidArgument;
  unsigned char bytes[sizeof(double)]{};
  cudaMemcpy(bytes, scalar, bytes_of(type), cudaMemcpyDefault);
  float f32 = 0;
  double f64 = 0;
  std::memcpy(&f32, bytes, sizeof(f32));
  std::memcpy(&f64, bytes, sizeof(f64));
  if (type == ncclBfloat16) {
    const unsigned char wide[4]{0, 0, bytes[0], bytes[1]};
    std::memcpy(&f32, wide, sizeof(f32));
  }
  const std::lock_guard lock(guard);
  const int name = ncclNumOps + static_cast<int>(factors.size());
  factors[name] = type == ncclFloat64 ? f64 : f32;
  *made = static_cast<ncclRedOp_t>(name);
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  for (const pending& p : messages) one_gpu::enqueue(p.of->member, p.messages, p.stream);
  messages.clear();
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t how, ncclComm_t c, cudaStream_t s) {
  return run(c, s, from, to, count, type, what::all_reduce, how);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t c,
                           cudaStream_t s) {
  return run(c, s, from, to, count, type, what::all_gather);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t how, ncclComm_t c, cudaStream_t s) {
  return run(c, s, from, to, count, type, what::reduce_scatter, how);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t c, cudaStream_t s) {
  return run(c, s, from, to, count, type, what::broadcast, ncclSum, root);
}
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t s) {
  if (type != ncclUint8) return ncclInvalidArgument;
  return send_or_receive(c, s, {true, peer, static_cast<std::byte*>(const_cast<void*>(data)), count});
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                      cudaStream_t s) {
  if (type != ncclUint8) return ncclInvalidArgument;
  return send_or_receive(c, s, {false, peer, static_cast<std::byte*>(data), count});
}

}  // extern "C"
