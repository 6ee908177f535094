// SPDX-License-Identifier: Apache-2.0
#include "stream_words.hpp"

#include "driver_function.hpp"

#include <cuda.h>

#include <chrono>
#include <initializer_list>
#include <string>

namespace rankc::runtime::cuda {
namespace {

CUdeviceptr address(volatile std::uint32_t* word) { return reinterpret_cast<CUdeviceptr>(word); }

CUstreamBatchMemOpParams write_of(volatile std::uint32_t* word, std::uint32_t value) {
  CUstreamBatchMemOpParams op{};
  op.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                   .address = address(word),
                   .value = value,
                   .flags = CU_STREAM_WRITE_VALUE_DEFAULT,
                   .alias = 0};
  return op;
}
CUstreamBatchMemOpParams wait_for(volatile std::uint32_t* word, std::uint32_t value) {
  CUstreamBatchMemOpParams op{};
  op.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                  .address = address(word),
                  .value = value,
                  .flags = CU_STREAM_WAIT_VALUE_EQ,
                  .alias = 0};
  return op;
}

void enqueue(const lane& on, std::initializer_list<CUstreamBatchMemOpParams> ops) {
  using batch_ops = CUresult (*)(CUstream, unsigned, const CUstreamBatchMemOpParams*, unsigned);
  static const auto call = driver_function<batch_ops>(on, "cuStreamBatchMemOp");
  if (const CUresult result = call(on.stream, static_cast<unsigned>(ops.size()), ops.begin(), 0);
      result != CUDA_SUCCESS)
    fail(on, "cuStreamBatchMemOp: error " + std::to_string(static_cast<int>(result)));
}

}  // namespace

stream_words::stream_words(const rank& r, std::size_t count, const char* what)
    : words_(r, pinned_memory(), (count + 1) * sizeof(std::uint32_t), what), count_(count) {
  set(0);
}

void stream_words::set(std::uint32_t value) const {
  for (std::size_t i = 0; i < count_; ++i) *at(i) = value;
}

void stream_words::let_go() {
  if (letting_go_.joinable()) return;
  letting_go_ = std::jthread([this](const std::stop_token& is_over) {
    for (; !is_over.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) set(1);
  });
}

void write_word(const lane& on, volatile std::uint32_t* word, std::uint32_t value) {
  enqueue(on, {write_of(word, value)});
}

void take_word(const lane& on, volatile std::uint32_t* word) {
  enqueue(on, {wait_for(word, 1), write_of(word, 0)});
}

}  // namespace rankc::runtime::cuda
