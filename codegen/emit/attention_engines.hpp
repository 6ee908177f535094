// SPDX-License-Identifier: Apache-2.0
// Which kernels do the attention of a program's layers.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// Layers whose attention the same kernels do: cuDNN's, or rankc's own for a reason.
struct attention_engine {
  std::string
      // why cuDNN's do not: "the head dim is 12, and cuDNN's take multiples of 8 up to 128"; empty: they do
      because;
  int layers = 0;
  bool own_forward = false,
       own_gradient = false;  // on GPUs of compute capability 9.0 rankc's kernels are fast at it
  bool by_cudnn() const { return because.empty(); }
};
/// None of a program for the host, and of layers without attention.
std::vector<attention_engine> attention_engines(const lowered&);

/// "attention: 8 layers by cuDNN"; a line for each kind of engine.
std::string attention_text(const lowered&);

/// What a bf16 program says before it runs where its attention is by slow kernels; else empty.
std::string slow_attention(const lowered&);

}  // namespace rankc::codegen
