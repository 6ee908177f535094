// SPDX-License-Identifier: Apache-2.0
// Calls the tool in a test: the answer to a command line, and the rules that it names.
#pragma once
#include <doctest/doctest.h>

#include "check.hpp"
#include "dims.hpp"
#include "schedule.hpp"

#include <rankc/schedule/check.hpp>

#include "../../said.hpp"

#include <string>
#include <vector>

namespace rankc::tool {

inline json answer(const std::string& line) { return json::parse(answer_line(line, answer_schedule)); }
inline json check(const std::string& line) { return json::parse(answer_line(line, answer_check)); }
inline json dims(const std::string& line) { return json::parse(answer_line(line, answer_dims)); }

/// The rules of the diagnostics in order, without warnings: "RC301 RC305"; empty if the answer is ok.
inline std::string ids(const json& answered) {
  std::string out;
  for (const json& d : answered.at("diagnostics"))
    if (!d.contains("warning")) out += (out.empty() ? "" : " ") + d.at("id").get<std::string>();
  return answered.at("ok") == out.empty() ? out : "ok contradicts the diagnostics";
}

/// The ids of the sentences in the diagnostics, which all are RC300's: "RC8030 RC8031".
inline std::string sentences(const json& answered) {
  std::string out;
  for (const json& d : answered.at("diagnostics")) {
    CHECK(d.at("id") == "RC300");
    out += (out.empty() ? "" : " ") + d.at("text").get<std::string>().substr(0, 6);
  }
  return out;
}

inline std::string text_of(const json& answered) {
  return answered.at("diagnostics").empty() ? "" : answered["diagnostics"][0].at("text").get<std::string>();
}

/// The first diagnostic, which must be a sentence of the tool itself.
inline test::said said_of(const json& answered) {
  if (answered.at("diagnostics").empty()) return {};
  const json& first = answered["diagnostics"][0];
  CHECK(first.at("id") == "RC300");
  return test::said_in(first.at("text").get<std::string>());
}

/// A `--check` line with the program of an answer.
inline json program_of(const json& answered) {
  json out{{"ranks", answered.at("program")}};
  for (const char* field : {"stage_to_rank", "stage_to_rank_rev", "mb_split"})
    if (answered.contains(field)) out[field] = answered[field];
  return out;
}

}  // namespace rankc::tool
