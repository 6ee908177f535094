// SPDX-License-Identifier: Apache-2.0
// The host's kernels in double precision.
#pragma once
#include "typed_machine.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::test::rows {

inline std::vector<kernel<host::lane>> host_kernels() {
#define RANKC_LINE(k) uniform(#k, &host::k<double>),
  return {RANKC_KERNELS_OF_BOTH(RANKC_LINE) uniform("clear of sums", &host::clear<double>)};
#undef RANKC_LINE
}

class host_machine final : public typed_machine<host::lane, double, double> {
 public:
  host_machine() : typed_machine(&op_row::host, host_kernels(), true) {}
  const char* name() const override { return "host f64"; }
  bool has_gaps() const override { return false; }
  double tolerance() const override { return 1e-12; }

 private:
  void upload(const std::vector<std::byte>& image) override {
    memory_.resize(image.size() / sizeof(double) + 1);
    std::memcpy(memory_.data(), image.data(), image.size());
    rank_.arena = reinterpret_cast<std::byte*>(memory_.data());
  }
  void download(std::vector<std::byte>& image) override { std::memcpy(image.data(), memory_.data(), image.size()); }
  const host::lane& lane() override { return rank_[0]; }

  std::vector<double> memory_;
  host::rank rank_;
};

}  // namespace rankc::test::rows
