// SPDX-License-Identifier: Apache-2.0
// A build without cuDNN. rankc's own kernels compute attention.
#include "attention_plans.hpp"

namespace rankc::runtime::cuda {

attention_plans* make_attention_plans() { return nullptr; }
void destroy(attention_plans*) {}

bool attention_cudnn(const lane&, at, at, at, at, at, at, const attention_sizes&) { return false; }
bool attention_grad_cudnn(const lane&, at, at, at, at, at, at, at, at, at, at, const attention_sizes&) {
  return false;
}

bool has_attention_plan(const lane&, bool, const attention_sizes&) { return false; }

}  // namespace rankc::runtime::cuda
