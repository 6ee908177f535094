// SPDX-License-Identifier: Apache-2.0
// CUDA's kernels with activations of type T, on the first GPU.
#pragma once
// Included before the language's headers, which have another `placement`.
#include <rankc/runtime/cuda/context.hpp>
#include <rankc/runtime/cuda/kernels.hpp>

#include "../runtime/core/cuda/lone_rank.hpp"
#include "typed_machine.hpp"

namespace rankc::test::rows {

template <class T>
std::vector<kernel<cuda::lane>> cuda_kernels() {
#define RANKC_LINE(k) uniform(#k, &cuda::k<T>),
  return {RANKC_KERNELS_OF_BOTH(RANKC_LINE) RANKC_KERNELS_OF_CUDA(RANKC_LINE)
              uniform("clear of sums", &cuda::clear<float>)};
#undef RANKC_LINE
}

template <class T>
class cuda_machine final : public typed_machine<cuda::lane, T, float> {
 public:
  cuda_machine() : typed_machine<cuda::lane, T, float>(&op_row::on_cuda, cuda_kernels<T>()) {}
  std::string name() const override { return is_f32 ? "CUDA f32" : "CUDA bf16"; }
  bool has_gaps() const override { return true; }
  double tolerance() const override {
    return is_f32 ? 2e-5 : 0x1p-6;
  }  // bf16: four roundings to 8 bits, each half a unit
  double fp8_tolerance() const override {
    return std::max(tolerance(), 0x1p-10);
  }  // tensor cores add up 32 terms in 14 bits

 private:
  static constexpr bool is_f32 = std::is_same_v<T, float>;

  void upload(const std::vector<std::byte>& image) override {
    REQUIRE(image.size() <= alone_.layout.arena_bytes);
    REQUIRE(cudaMemcpy(context_.of().arena, image.data(), image.size(), cudaMemcpyHostToDevice) ==
            cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);  // the copy may outlast its call
  }
  void download(std::vector<std::byte>& image) override {
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpy(image.data(), context_.of().arena, image.size(), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
  }
  const cuda::lane& lane() override { return context_.of()[0]; }
  bool has_columns() const override { return true; }

  cuda::test::lone_rank alone_{std::size_t{64} << 20, true};
  cuda::context context_{0, alone_.about, 0};
};

}  // namespace rankc::test::rows
