// SPDX-License-Identifier: Apache-2.0
// The host's kernels with numbers of type T.
#pragma once
#include "typed_machine.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::test::rows {

template <class T>
std::vector<kernel<host::lane>> host_kernels() {
#define RANKC_LINE(k) uniform(#k, &host::k<T>),
  return {RANKC_KERNELS_OF_BOTH(RANKC_LINE) uniform("clear of sums", &host::clear<T>)};
#undef RANKC_LINE
}

template <class T>
class host_machine final : public typed_machine<host::lane, T, T> {
 public:
  host_machine() : typed_machine<host::lane, T, T>(&op_row::on_host, host_kernels<T>()) {}
  std::string name() const override { return is_f64 ? "host f64" : "host f32"; }
  bool has_gaps() const override { return false; }
  double tolerance() const override { return is_f64 ? 1e-12 : 2e-5; }

 private:
  static constexpr bool is_f64 = std::is_same_v<T, double>;

  void upload(const std::vector<std::byte>& image) override {
    memory_.resize(image.size() / sizeof(double) + 1);
    std::memcpy(memory_.data(), image.data(), image.size());
    rank_.arena = reinterpret_cast<std::byte*>(memory_.data());
  }
  void download(std::vector<std::byte>& image) override {
    std::memcpy(image.data(), memory_.data(), image.size());
  }
  const host::lane& lane() override { return rank_[0]; }

  std::vector<double> memory_;
  host::rank rank_;
};

}  // namespace rankc::test::rows
