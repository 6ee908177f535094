// SPDX-License-Identifier: Apache-2.0
// Whether collectives are right on this machine, before a step relies on them: NCCL's, and those of kernels
// that read the other GPUs' memory. NCCL 2.28.3 was seen to give a tenth of a tensor wrongly in one form of
// call; such a fault shows in no error, and training goes on with wrong numbers.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include <string>
#include <vector>

namespace rankc::runtime::cuda {

/// The collectives that each communicator of a rank is for, once, on known whole numbers in the arena, each
/// element compared. Exchanges and pairs are left out: their members may have arenas of different sizes.
class collective_check {
 public:
  explicit collective_check(context&);

  /// Enqueue all of them on lane 0, together with the other ranks. The arena's contents are lost.
  void enqueue();
  /// After they are done. Errors: failure (70) naming the first collective that is wrong, and the first such
  /// element.
  void judge() const;

 private:
  enum class by { nccl, peers };
  struct trial {
    std::string what;
    std::size_t elements;
    by done;
  };
  template <class T>
  void gather(const lane_link&, by);
  template <class T>
  void reduce_scatter(const lane_link&, by);
  template <class T>
  void all_reduce(const lane_link&, by);
  unsigned long long* result(const char* name, const lane_link&, std::size_t elements, by);

  context& context_;
  std::vector<trial> trials_;
  unsigned long long
      *wrong_ = nullptr,
      *told_ =
          nullptr;  // by trial, the complement of the first wrong element, or 0; on the device, and pinned
};

}  // namespace rankc::runtime::cuda
