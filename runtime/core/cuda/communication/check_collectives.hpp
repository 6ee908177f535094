// SPDX-License-Identifier: Apache-2.0
// Checks that collectives give right results on this machine, before a step relies on them: NCCL's, and those
// of kernels that read the other GPUs' memory. NCCL 2.28.3 was seen to write a tenth of a tensor wrongly in
// one form of call. Such a fault raises no error, and training continues with wrong numbers.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include <string>
#include <vector>

namespace rankc::runtime::cuda {

/// Runs each collective that a communicator of a rank is used for, once, on known integers in the arena, and
/// compares each element. Exchanges and pairs are not checked, because their members may have arenas of
/// different sizes.
class collective_check {
 public:
  explicit collective_check(context&);

  /// Enqueues all checks on lane 0, together with the other ranks. The arena's contents are lost.
  void enqueue();
  /// Reads the results after the checks are done.
  /// Errors: failure (70) that names the first wrong collective and its first wrong element.
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
  unsigned long long *wrong_ = nullptr,
                     *told_ =
                         nullptr;  // by trial: NOT of the first wrong index, or 0; on the device, and pinned
};

}  // namespace rankc::runtime::cuda
