// SPDX-License-Identifier: Apache-2.0
// The kernels that compute the attention of a program's layers.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// Layers whose attention the same kernels compute: cuDNN's, or rankc's own and the reason.
struct attention_engine {
  // Why not cuDNN's: "the head dim is 12, and cuDNN's take multiples of 8 up to 128"; empty: cuDNN's are
  // used.
  std::string because;
  int layers = 0;
  // On GPUs of compute capability 9.0 rankc's kernels compute it on tensor cores.
  bool own_forward = false, own_gradient = false;
  bool by_cudnn() const { return because.empty(); }
};
/// Empty for the host, and for layers without attention.
std::vector<attention_engine> attention_engines(const lowered&);

/// "attention: 8 layers by cuDNN"; a line for each kind of engine.
std::string attention_text(const lowered&);

/// A note if a bf16 program computes attention without tensor cores; otherwise empty.
std::string slow_attention(const lowered&);

}  // namespace rankc::codegen
