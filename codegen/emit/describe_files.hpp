// SPDX-License-Identifier: Apache-2.0
// A model's Hugging Face format as JSON. The trainer reads it in hugging_face_names.cpp.
#pragma once
#include <rankc/models/hugging_face.hpp>

#include <nlohmann/json_fwd.hpp>

namespace rankc::codegen {

nlohmann::json describe_files(const hugging_face_format&);

}  // namespace rankc::codegen
