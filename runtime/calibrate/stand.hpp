// SPDX-License-Identifier: Apache-2.0
// Times a kernel on a single rank on device 0, whose arena holds random numbers: briefly, at the GPU's boost
// clock, and under a sustained load, at the clock that its power limit allows.
#pragma once
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "meter.hpp"

#include <cstddef>
#include <functional>

namespace rankc::calibrate {

using cuda::bf16;
using cuda::lane;
using runtime::at;

/// Allocates the operands of one call.
class operands {
 public:
  explicit operands(std::size_t begin) : used_(begin) {}
  at take(std::size_t elements, std::size_t size = sizeof(bf16)) {
    const at where{used_};
    used_ += (elements * size + 255) / 256 * 256;
    return where;
  }
  std::size_t used() const { return used_; }

 private:
  std::size_t used_;
};

/// Runs one call; it allocates its operands in the same order each time.
using call = std::function<void(const lane&, operands&)>;

class stand {
 public:
  stand();
  ~stand();
  stand(const stand&) = delete;
  stand& operator=(const stand&) = delete;

  /// The time of a call, measured for some milliseconds after a pause: the mean of many calls in a CUDA
  /// graph, each on operands that are not in the cache.
  /// Units: seconds. Errors: runtime::failure if a CUDA call fails, or if the operands are larger than the
  /// arena.
  double time(const call& one) { return run(one, 0.01, 0.02).seconds; }

  /// The same over more than a second, with the GPU's power.
  /// Units: seconds, watts.
  struct loaded {
    double seconds, watts;
  };
  loaded load(const call& one) { return run(one, 1.0, 1.5); }

  runtime::layout& about_memory() { return layout_; }
  const lane& on() { return context_.of()[0]; }
  cudaDeviceProp device() const;

 private:
  static constexpr runtime::lane_row compute[]{{"compute", true}};
  static constexpr std::size_t arena_bytes = std::size_t{32} << 30, rotated = std::size_t{512} << 20;
  void fill();
  loaded run(const call&, double warm, double timed);

  runtime::layout layout_{};
  runtime::rank_row row_{};
  runtime::description about_;
  cuda::context context_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  meter power_{0};
};

/// Throw unless the CUDA call succeeded.
void require(cudaError_t);

/// Write a line for each shape of a kind of kernels.
void write_products(stand&);
void write_attention(stand&);
void write_passes(stand&);
/// Write the GPU's power under each kind of load.
void write_power(stand&);

}  // namespace rankc::calibrate
