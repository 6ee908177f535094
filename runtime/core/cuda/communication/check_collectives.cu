// SPDX-License-Identifier: Apache-2.0
#include "check_collectives.hpp"

#include "../device/device.cuh"
#include "../progress/marks.hpp"
#include "nccl_calls.hpp"
#include "peer_sums.hpp"

#include <algorithm>
#include <cstdint>

namespace rankc::runtime::cuda {
namespace {

constexpr std::size_t most_trials = 64;
constexpr std::size_t most_of_a_member = std::size_t{1} << 22;  // elements
constexpr int blocks = 1024, threads = 256;

/// The test number of a member at an index. It is an integer below `range`, so that bf16 represents every sum
/// of all members exactly.
__device__ float known(int member, std::size_t place, int range) {
  std::uint32_t x =
      static_cast<std::uint32_t>(place) * 2654435761u + static_cast<std::uint32_t>(member) * 0x85ebca6bu;
  x = (x ^ (x >> 15)) * 0xc2b2ae35u;
  return static_cast<float>((x ^ (x >> 16)) % static_cast<std::uint32_t>(range));
}
int range_of(int members) { return std::clamp(256 / members, 2, 64); }

template <class T>
__global__ void fill(T* to, std::size_t count, int member, int range) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = from_float<T>(known(member, i, range));
}

/// Bitwise NOT of the index of the first wrong element. `got` must contain the members' parts in order, each
/// of `part` elements.
template <class T>
__global__ void compare_parts(unsigned long long* wrong, const T* got, std::size_t part, int members,
                              int range) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < part * members;
       i += std::size_t{gridDim.x} * blockDim.x)
    if (to_float(got[i]) != known(static_cast<int>(i / part), i % part, range))
      atomicMax(wrong, ~static_cast<unsigned long long>(i));
}

/// Bitwise NOT of the index of the first wrong element. `got` must contain the sums over all members of the
/// test numbers from index `first` on.
template <class T>
__global__ void compare_sums(unsigned long long* wrong, const T* got, std::size_t count, std::size_t first,
                             int members, int range) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    float sum = 0.0f;
    for (int m = 0; m < members; ++m) sum += known(m, first + i, range);
    if (to_float(got[i]) != sum) atomicMax(wrong, ~static_cast<unsigned long long>(i));
  }
}

/// The operands of a test in the arena: the parts of all members, then one more part.
template <class T>
struct operands {
  int members, range;
  std::size_t part;  // elements of a member's part
  T *all, *own;
  operands(const lane& on, const lane_link& k, const char* what)
      : members(k.mapped != nullptr ? k.mapped->ranks : members_of(on, k, what)),
        range(range_of(members)),
        part(std::min(most_of_a_member,
                      on.of->where->arena_bytes / sizeof(T) / static_cast<std::size_t>(members + 1)) /
             128 * 128),
        all(on.at<T>({0})),
        own(all + whole()) {}
  std::size_t whole() const { return part * static_cast<std::size_t>(members); }
};

}  // namespace

collective_check::collective_check(context& owner) : context_(owner) {
  rank& r = owner.of();
  wrong_ = reinterpret_cast<unsigned long long*>(r[0].workspace);
  told_ = reinterpret_cast<unsigned long long*>(
      owner.more_pinned(most_trials * sizeof(*told_), "results of collectives"));
}

unsigned long long* collective_check::result(const char* name, const lane_link& k, std::size_t elements,
                                             by done) {
  trials_.push_back({std::string(name) + " over " + over_names[static_cast<int>(k.over)], elements, done});
  return wrong_ + (trials_.size() - 1);
}

template <class T>
void collective_check::gather(const lane_link& k, by done) {
  const lane& on = context_.of()[0];
  const char* name = "check of all_gather";
  const operands<T> o(on, k, name);
  launch(on, name, fill<T>, blocks, threads, 0, o.own, o.part, k.place, o.range);
  check(on, cudaMemsetAsync(o.all, 0xff, o.whole() * sizeof(T), on.stream), name);
  const marked place(on, k, name, on.of->place != nullptr);
  if (done == by::peers) gather_from_peers(on, *k.mapped, o.all, o.own, o.part);
  else check(on, ncclAllGather(o.own, o.all, o.part, nccl_type<T>, k.nccl, on.stream), k.nccl, name);
  launch(on, name, compare_parts<T>, blocks, threads, 0, result("all_gather", k, o.whole(), done), o.all,
         o.part, o.members, o.range);
}

template <class T>
void collective_check::reduce_scatter(const lane_link& k, by done) {
  const lane& on = context_.of()[0];
  const char* name = "check of reduce_scatter";
  const operands<T> o(on, k, name);
  launch(on, name, fill<T>, blocks, threads, 0, o.all, o.whole(), k.place, o.range);
  check(on, cudaMemsetAsync(o.own, 0xff, o.part * sizeof(T), on.stream), name);
  const marked place(on, k, name, on.of->place != nullptr);
  if (done == by::peers) sum_of_peers(on, *k.mapped, o.own, o.all, o.part);
  else
    check(on, ncclReduceScatter(o.all, o.own, o.part, nccl_type<T>, ncclSum, k.nccl, on.stream), k.nccl,
          name);
  launch(on, name, compare_sums<T>, blocks, threads, 0, result("reduce_scatter", k, o.part, done), o.own,
         o.part, o.part * static_cast<std::size_t>(k.place), o.members, o.range);
}

template <class T>
void collective_check::all_reduce(const lane_link& k, by done) {
  const lane& on = context_.of()[0];
  const char* name = "check of all_reduce";
  const operands<T> o(on, k, name);
  launch(on, name, fill<T>, blocks, threads, 0, o.all, o.part, k.place, o.range);
  const marked place(on, k, name, on.of->place != nullptr);
  if (done == by::peers) sum_among_peers(on, *k.mapped, o.all, o.part);
  else check(on, ncclAllReduce(o.all, o.all, o.part, nccl_type<T>, ncclSum, k.nccl, on.stream), k.nccl, name);
  launch(on, name, compare_sums<T>, blocks, threads, 0, result("all_reduce", k, o.part, done), o.all, o.part,
         std::size_t{0}, o.members, o.range);
}

void collective_check::enqueue() {
  rank& r = context_.of();
  if (r.place != nullptr) r.place->enqueue(0);
  const lane& on = r[0];
  check(r, cudaMemsetAsync(wrong_, 0, most_trials * sizeof(*wrong_), on.stream), "check of collectives");
  const auto try_out = [&](const lane_link& k, bool of_peers, auto element) {
    using T = decltype(element);
    const bool of_layers = k.over == over::tp || k.over == over::cp || k.over == over::etp,
               of_shards = k.over == over::shard || k.over == over::efsdp;
    for (const by done : {by::nccl, by::peers}) {
      if (done == by::nccl ? k.nccl == nullptr : !of_peers) continue;
      if (of_layers || of_shards) gather<T>(k, done);
      if (of_layers) {
        reduce_scatter<T>(k, done);
        all_reduce<T>(k, done);
      }
      if (of_shards) reduce_scatter<float>(k, done);
      if (k.over == over::dp) all_reduce<float>(k, done);
    }
  };
  for (const lane_communicator& row : r.row->links)
    for (const lane_link& k : r[row.lane].links) {
      if (k.communicator != row.communicator) continue;
      const bool of_peers = reads_peers(r[row.lane], k);
      if (r.about->type == dtype::bf16) try_out(k, of_peers, bf16{});
      else try_out(k, of_peers, float{});
    }
  check(r, cudaMemcpyAsync(told_, wrong_, most_trials * sizeof(*told_), cudaMemcpyDeviceToHost, on.stream),
        "check of collectives");
}

void collective_check::judge() const {
  int version = 0;
  check(context_.of(), ncclGetVersion(&version), nullptr, "ncclGetVersion");
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (told_[i] == 0) continue;
    const trial& wrong = trials_[i];
    if (wrong.done == by::peers)
      fail(context_.of(),
           "RC5117: {} by kernels that read the memory of other GPUs: element {} of {} is wrong, and nothing "
           "was trained; give --peers off (placement::maps_peers = false), so that NCCL does it",
           wrong.what, ~told_[i], wrong.elements);
    fail(context_.of(),
         "RC5118: {} by NCCL {}: element {} of {} is wrong, and nothing was trained; use another version of "
         "NCCL, or set NCCL_WIN_ENABLE=0",
         wrong.what, version, ~told_[i], wrong.elements);
  }
}

}  // namespace rankc::runtime::cuda
