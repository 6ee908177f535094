// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rankc/codegen/body.hpp>

namespace rankc::codegen {

/// Makes identifiers for everything that the text of a lowered layer names, from the trace that it was
/// lowered from.
body_names name_layer(const body&, const trace&);

}  // namespace rankc::codegen
