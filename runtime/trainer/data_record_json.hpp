// SPDX-License-Identifier: Apache-2.0
// The part of run.json that records the data that a run has read.
#pragma once
#include <rankc/trainer/data_record.hpp>

#include <nlohmann/json.hpp>

namespace rankc::runtime {

nlohmann::ordered_json json_of_record(const data_record&);

/// Errors: JSON exceptions for a value that is missing or of another type; std::invalid_argument for other
/// values that are not legal.
data_record record_of_json(const nlohmann::ordered_json&);

}  // namespace rankc::runtime
