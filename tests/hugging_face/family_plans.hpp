// SPDX-License-Identifier: Apache-2.0
// Plans of the models in oracles/families. A job is a folder there.
#pragma once
#include "../families/plan_list.hpp"

namespace hugging_face {

void add_family_plans(plan_list&);

}  // namespace hugging_face
