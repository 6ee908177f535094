// SPDX-License-Identifier: Apache-2.0
#include "access.hpp"

#include <rankc/runtime/bf16.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/check.hpp"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

/// A copy from pageable memory may still be in flight when the call returns, and the streams do not wait for
/// it.
template <class T>
void copy(context& owner, const char* call, T* to, const T* from, std::size_t count) {
  check(owner.of(), cudaSetDevice(owner.device()), "cudaSetDevice");
  check(owner.of(), cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDefault), call);
  check(owner.of(), cudaDeviceSynchronize(), call);
}

void read_as(dtype type, context& owner, const char* call, at from, std::size_t count, double* to) {
  if (type == dtype::bf16) {
    std::vector<bf16_bits> narrow(count);
    copy(owner, call, narrow.data(), owner.of().at<bf16_bits>(from), count);
    std::transform(narrow.begin(), narrow.end(), to, widened);
    return;
  }
  std::vector<float> values(count);
  copy(owner, call, values.data(), owner.of().at<float>(from), count);
  std::copy(values.begin(), values.end(), to);
}

/// Updates the bf16 working copy after weights were written.
void round(context& owner, std::size_t first, std::size_t count) {
  rank& r = owner.of();
  working_copy(r[0], r.where->working_copy + first * sizeof(bf16), r.where->weights + first * sizeof(float),
               count);
  check(r, cudaStreamSynchronize(r[0].stream), "write: cudaStreamSynchronize");
}

}  // namespace

void read(context& owner, region which, std::size_t first, std::size_t count, double* to) {
  const rank& r = owner.of();
  const at from = place_of(*r.about, r.index, which, first, count);
  read_as(type_at(*r.about, r.index, which, first), owner, "read: cudaMemcpy", from, count, to);
}

void write(context& owner, region which, std::size_t first, std::size_t count, const double* from) {
  const rank& r = owner.of();
  const at to = place_of(*r.about, r.index, which, first, count);
  std::vector<float> values(from, from + count);
  if (type_at(*r.about, r.index, which, first) == dtype::bf16) {
    std::vector<bf16_bits> narrow(count);
    std::transform(values.begin(), values.end(), narrow.begin(), rounded_to_nearest);
    return copy(owner, "write: cudaMemcpy", r.at<bf16_bits>(to), narrow.data(), count);
  }
  copy(owner, "write: cudaMemcpy", r.at<float>(to), values.data(), count);
  if (which == region::weights && r.about->type == dtype::bf16) round(owner, first, count);
}

void logits(context& owner, std::size_t token, double* to) {
  const rank& r = owner.of();
  const at from = place_of_logits(*r.about, r.index, token);
  read_as(r.about->type, owner, "logits: cudaMemcpy", from, static_cast<std::size_t>(r.where->logits.columns),
          to);
}

void routers(context& owner, int microbatch, double* to) {
  const rank& r = owner.of();
  const routers_place& kept = r.where->routers;
  const at from = place_of_routers(*r.about, r.index, microbatch);
  read_as(r.about->wide(), owner, "routers: cudaMemcpy", from,
          static_cast<std::size_t>(kept.rows) * static_cast<std::size_t>(kept.experts), to);
}

}  // namespace rankc::runtime::cuda
