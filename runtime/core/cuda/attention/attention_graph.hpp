// SPDX-License-Identifier: Apache-2.0
// A cuDNN operation graph, built operation by operation, and the execution plan made from it. Every tensor
// has four dims. It is an operand in memory, a number passed by value, or a virtual result inside the graph.
#pragma once
#include "../device/check.hpp"
#include "../device/teardown.hpp"

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace rankc::runtime::cuda {

void check(const rank&, cudnnStatus_t, const char* call);
inline void check_teardown(cudnnStatus_t status, const char* call) noexcept {
  if (status != CUDNN_STATUS_SUCCESS) teardown_failed(call, cudnnGetErrorString(status));
}

using extents = std::array<std::int64_t, 4>;

/// Owns one cuDNN descriptor.
struct destroy_descriptor {
  void operator()(void* d) const {
    check_teardown(cudnnBackendDestroyDescriptor(d), "cudnnBackendDestroyDescriptor");
  }
};
using descriptor = std::unique_ptr<void, destroy_descriptor>;

/// An execution plan of cuDNN.
/// Units: workspace in bytes.
struct attention_plan {
  descriptor of;
  std::size_t workspace = 0;
};

/// A tensor of a graph. The graph owns its descriptor.
struct tensor {
  cudnnBackendDescriptor_t of = nullptr;
  extents shape{};
};

/// Builds a graph. Each function appends an operation or a tensor.
/// Errors: failure (70) with cuDNN's text if cuDNN refuses a tensor or an operation.
class attention_graph {
 public:
  explicit attention_graph(const rank& r) : r_(r) {}

  /// An operand in memory. A run of the plan passes its address under `id`.
  /// Units: `strides` in elements.
  tensor operand(std::int64_t id, cudnnDataType_t, extents shape, extents strides);
  /// An f32 passed by value.
  tensor number(std::int64_t id);

  /// An elementwise operation in f32. The second operand may have extents of 1. `type`: the result's.
  tensor pointwise(cudnnPointwiseMode_t, tensor x, tensor b = {}, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  void pointwise_to(tensor result, cudnnPointwiseMode_t, tensor x, tensor b = {});
  /// Selects `other` if row < column, else x. Rows and columns are the last two dims.
  tensor causal(tensor x, tensor other);
  /// Reduces over the dims in which the result has extent 1, or fewer heads.
  tensor reduce(cudnnReduceTensorOp_t, tensor x, extents shape);
  void reduce_to(tensor result, cudnnReduceTensorOp_t, tensor x);
  /// A matrix product over the last two dims. Heads of b may be shared. `type`: the result's.
  tensor matmul(tensor a, tensor b, extents shape, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  void matmul_to(tensor result, tensor a, tensor b);
  /// x with its last two dims exchanged, in bf16. `strides`: the result's.
  tensor transposed(tensor x, extents strides);

  /// The first plan in cuDNN's order that needs at most `limit` bytes, or the smallest if none is that small.
  /// Its descriptor is null if cuDNN offers no plan. With `deterministic`, plans whose results may differ
  /// from run to run are skipped.
  attention_plan plan(cudnnHandle_t, std::size_t limit, bool deterministic);

 private:
  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t);
  void finish(cudnnBackendDescriptor_t, const char* what);
  void add(cudnnBackendDescriptor_t operation) { operations_.push_back(operation); }
  tensor inside(cudnnDataType_t, extents shape, extents strides);
  tensor inside(cudnnDataType_t, extents shape);
  void elementwise(cudnnPointwiseMode_t, cudnnDataType_t math, int axis, tensor result, tensor x, tensor b,
                   tensor t);

  const rank& r_;
  std::int64_t next_ = 1000;  // ids of virtual tensors
  std::vector<descriptor> made_;
  std::vector<cudnnBackendDescriptor_t> operations_;
};

}  // namespace rankc::runtime::cuda
