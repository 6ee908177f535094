// SPDX-License-Identifier: Apache-2.0
// The comment at the head of a pipeline coordinate's step: its ranks, stages, memory, neighbours and groups.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>

namespace rankc::codegen {

std::string rank_head(const lowered&, const pipeline_rank&);

}  // namespace rankc::codegen
