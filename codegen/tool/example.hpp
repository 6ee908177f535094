// SPDX-License-Identifier: Apache-2.0
// An example: tokens that a model is trained on together. Some of them are labels.
#pragma once
#include <token_mask_format.hpp>

#include <functional>
#include <vector>

namespace rankc::tool {

/// `labels` has label_counts or label_is_ignored for each token. The first token of an example is never a
/// label, since the token before it belongs to another example. `weights` has a number for each token; it is
/// empty without --weights-field.
struct example {
  std::vector<int> ids;
  std::vector<char> labels;
  std::vector<float> weights{};
};

using visit_example = std::function<void(example)>;

}  // namespace rankc::tool
