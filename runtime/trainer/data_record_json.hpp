// SPDX-License-Identifier: Apache-2.0
// The part of run.json that says what a run has read.
#pragma once
#include <rankc/trainer/data_record.hpp>

#include <nlohmann/json.hpp>

namespace rankc::runtime {

nlohmann::ordered_json json_of_record(const data_record&);

/// Errors: exceptions of JSON where a value is missing or of another type; std::invalid_argument for other
/// values.
data_record record_of_json(const nlohmann::ordered_json&);

}  // namespace rankc::runtime
