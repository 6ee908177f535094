// SPDX-License-Identifier: Apache-2.0
// Builds cuDNN's descriptors, attribute by attribute, and chooses among the engines that cuDNN proposes.
// Source: cuDNN graph API, backend reference.
#include "attention_graph.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rankc::runtime::cuda {

void check(const rank& r, cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  std::string text = cudnnGetErrorString(status);
  if (*detail != '\0') text += std::string(" (") + detail + ")";
  fail_in_call(r, call, text);
}

namespace {

/// cuDNN's attribute type for a value of each C++ type.
constexpr cudnnBackendAttributeType_t type_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
constexpr cudnnBackendAttributeType_t type_of(cudnnPointwiseMode_t) { return CUDNN_TYPE_POINTWISE_MODE; }
constexpr cudnnBackendAttributeType_t type_of(cudnnReduceTensorOp_t) {
  return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
}
constexpr cudnnBackendAttributeType_t type_of(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }
constexpr cudnnBackendAttributeType_t type_of(cudnnBackendDescriptor_t) {
  return CUDNN_TYPE_BACKEND_DESCRIPTOR;
}
constexpr cudnnBackendAttributeType_t type_of(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
constexpr cudnnBackendAttributeType_t type_of(std::int64_t) { return CUDNN_TYPE_INT64; }
constexpr cudnnBackendAttributeType_t type_of(bool) { return CUDNN_TYPE_BOOLEAN; }

template <class V>
void set(const rank& r, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, const V& value) {
  check(r, cudnnBackendSetAttribute(d, name, type_of(value), 1, &value), "cudnnBackendSetAttribute");
}
template <class V>
void set_all(const rank& r, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, const V& values) {
  check(r,
        cudnnBackendSetAttribute(d, name, type_of(values[0]), static_cast<std::int64_t>(values.size()),
                                 values.data()),
        "cudnnBackendSetAttribute");
}

descriptor create(const rank& r, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t d = nullptr;
  check(r, cudnnBackendCreateDescriptor(type, &d), "cudnnBackendCreateDescriptor");
  return descriptor(d);
}

extents row_major(const extents& shape) {
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

/// The engine configurations that cuDNN proposes, best first; empty if the heuristic rejects the graph.
std::vector<descriptor> proposals(const rank& r, cudnnBackendDescriptor_t graph,
                                  cudnnBackendHeurMode_t mode) {
  constexpr std::int64_t most = 16;
  const descriptor heuristics = create(r, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(r, heuristics.get(), CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(r, heuristics.get(), CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (cudnnBackendFinalize(heuristics.get()) != CUDNN_STATUS_SUCCESS) return {};
  std::vector<descriptor> found;
  std::vector<cudnnBackendDescriptor_t> places;
  for (std::int64_t i = 0; i < most; ++i) {
    found.push_back(create(r, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    places.push_back(found.back().get());
  }
  std::int64_t count = 0;
  check(r,
        cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, places.data()),
        "cudnnBackendGetAttribute");
  found.resize(static_cast<std::size_t>(std::min(count, most)));
  return found;
}

/// True if the configuration's engine reports that the order of its sums may differ from run to run.
bool may_vary(const rank& r, cudnnBackendDescriptor_t configuration) {
  const descriptor engine = create(r, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t place = engine.get();
  std::int64_t count = 0;
  check(r,
        cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &count, &place),
        "cudnnBackendGetAttribute");
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  check(r,
        cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
        "cudnnBackendGetAttribute");
  return std::find(notes, notes + count, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != notes + count;
}

}  // namespace

cudnnBackendDescriptor_t attention_graph::make(cudnnBackendDescriptorType_t type) {
  made_.push_back(create(r_, type));
  return made_.back().get();
}

void attention_graph::finish(cudnnBackendDescriptor_t d, const char* what) {
  check(r_, cudnnBackendFinalize(d), what);
}

tensor attention_graph::operand(std::int64_t id, cudnnDataType_t type, extents shape, extents strides) {
  const cudnnBackendDescriptor_t t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(r_, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  set(r_, t, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  set(r_, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  set_all(r_, t, CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  set_all(r_, t, CUDNN_ATTR_TENSOR_STRIDES, strides);
  finish(t, "attention: tensor");
  return {t, shape};
}

tensor attention_graph::number(std::int64_t id) {
  const extents one{1, 1, 1, 1};
  const cudnnBackendDescriptor_t t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(r_, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  set(r_, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(r_, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  set(r_, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  set_all(r_, t, CUDNN_ATTR_TENSOR_DIMENSIONS, one);
  set_all(r_, t, CUDNN_ATTR_TENSOR_STRIDES, one);
  finish(t, "attention: number");
  return {t, one};
}

tensor attention_graph::inside(cudnnDataType_t type, extents shape, extents strides) {
  const cudnnBackendDescriptor_t t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(r_, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, next_++);
  set(r_, t, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  set(r_, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  set(r_, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  set_all(r_, t, CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  set_all(r_, t, CUDNN_ATTR_TENSOR_STRIDES, strides);
  finish(t, "attention: tensor inside");
  return {t, shape};
}

tensor attention_graph::inside(cudnnDataType_t type, extents shape) {
  return inside(type, shape, row_major(shape));
}

void attention_graph::elementwise(cudnnPointwiseMode_t mode, cudnnDataType_t math, int axis, tensor result,
                                  tensor x, tensor b, tensor t) {
  const cudnnBackendDescriptor_t what = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(r_, what, CUDNN_ATTR_POINTWISE_MODE, mode);
  set(r_, what, CUDNN_ATTR_POINTWISE_MATH_PREC, math);
  if (mode == CUDNN_POINTWISE_GEN_INDEX) set(r_, what, CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{axis});
  finish(what, "attention: pointwise");
  const cudnnBackendDescriptor_t op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(r_, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  set(r_, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.of);
  if (b.of != nullptr) set(r_, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b.of);
  if (t.of != nullptr) set(r_, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t.of);
  set(r_, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result.of);
  finish(op, "attention: pointwise operation");
  add(op);
}

tensor attention_graph::pointwise(cudnnPointwiseMode_t mode, tensor x, tensor b, cudnnDataType_t type) {
  const tensor result = inside(type, x.shape);
  elementwise(mode, CUDNN_DATA_FLOAT, 0, result, x, b, {});
  return result;
}

void attention_graph::pointwise_to(tensor result, cudnnPointwiseMode_t mode, tensor x, tensor b) {
  elementwise(mode, CUDNN_DATA_FLOAT, 0, result, x, b, {});
}

tensor attention_graph::causal(tensor x, tensor other) {
  const tensor row = inside(CUDNN_DATA_INT32, x.shape), column = inside(CUDNN_DATA_INT32, x.shape),
               seen = inside(CUDNN_DATA_BOOLEAN, x.shape), result = inside(CUDNN_DATA_FLOAT, x.shape);
  elementwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2, row, x, {}, {});
  elementwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3, column, x, {}, {});
  elementwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0, seen, row, column, {});
  elementwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0, result, x, other, seen);
  return result;
}

tensor attention_graph::reduce(cudnnReduceTensorOp_t by, tensor x, extents shape) {
  const tensor result = inside(CUDNN_DATA_FLOAT, shape);
  reduce_to(result, by, x);
  return result;
}

void attention_graph::reduce_to(tensor result, cudnnReduceTensorOp_t by, tensor x) {
  const cudnnBackendDescriptor_t what = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set(r_, what, CUDNN_ATTR_REDUCTION_OPERATOR, by);
  set(r_, what, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  finish(what, "attention: reduction");
  const cudnnBackendDescriptor_t op = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  set(r_, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
  set(r_, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.of);
  set(r_, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result.of);
  finish(op, "attention: reduction operation");
  add(op);
}

tensor attention_graph::matmul(tensor a, tensor b, extents shape, cudnnDataType_t type) {
  const tensor result = inside(type, shape);
  matmul_to(result, a, b);
  return result;
}

void attention_graph::matmul_to(tensor result, tensor a, tensor b) {
  const cudnnBackendDescriptor_t what = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set(r_, what, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  finish(what, "attention: matmul");
  const cudnnBackendDescriptor_t op = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  set(r_, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
  set(r_, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.of);
  set(r_, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.of);
  set(r_, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, result.of);
  finish(op, "attention: matmul operation");
  add(op);
}

tensor attention_graph::transposed(tensor x, extents strides) {
  const tensor result =
      inside(CUDNN_DATA_BFLOAT16, {x.shape[0], x.shape[1], x.shape[3], x.shape[2]}, strides);
  const cudnnBackendDescriptor_t op = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  set(r_, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.of);
  set(r_, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, result.of);
  finish(op, "attention: reshape operation");
  add(op);
  return result;
}

attention_plan attention_graph::plan(cudnnHandle_t handle, std::size_t limit, bool deterministic) {
  const cudnnBackendDescriptor_t graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(r_, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  set_all(r_, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  finish(graph, "attention: operation graph");

  attention_plan best;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const descriptor& configuration : proposals(r_, graph, mode)) {
      if (deterministic && may_vary(r_, configuration.get())) continue;
      attention_plan made{create(r_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), 0};
      set(r_, made.of.get(), CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
      set(r_, made.of.get(), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration.get());
      if (cudnnBackendFinalize(made.of.get()) != CUDNN_STATUS_SUCCESS) continue;
      std::int64_t bytes = 0, count = 0;
      check(r_,
            cudnnBackendGetAttribute(made.of.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &count, &bytes),
            "cudnnBackendGetAttribute");
      made.workspace = static_cast<std::size_t>(bytes);
      if (best.of == nullptr || made.workspace < best.workspace) best = std::move(made);
      if (best.workspace <= limit) return best;
    }
  return best;
}

}  // namespace rankc::runtime::cuda
