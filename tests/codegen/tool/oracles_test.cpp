// SPDX-License-Identifier: Apache-2.0
// Programs of real systems: correct ones are accepted, wrong ones are refused by the rule that they break,
// and the schedules that rankc also has are equal.
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "answers.hpp"

namespace rankc::tool {

namespace {

const std::filesystem::path folder = RANKC_ORACLES;

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// The forwards and backwards of a program.
json compute_of(const json& ranks) {
  json out = json::array();
  for (const json& rank : ranks) {
    out.push_back(json::array());
    for (const json& token : rank) {
      const std::string text = token.get<std::string>();
      const std::size_t letters = text.find_first_not_of("0123456789");
      const bool computes = (text[letters] == 'F' || text[letters] == 'B') && std::isdigit(text[letters + 1]);
      if (computes) out.back().push_back(text);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the programs of every system get their verdict") {
  int files = 0, good = 0, bad = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jsonl") continue;
    ++files;
    for (const std::string& line : lines_of(entry.path())) {
      const std::string expected = json::parse(line).at("expect");
      CAPTURE(line);
      CHECK(ids(check(line)) == expected);
      ++(expected.empty() ? good : bad);
    }
  }
  CHECK(files == 36);
  CHECK(good > 200);
  CHECK(bad > 30);
}

TEST_CASE("GPipe and 1F1B compute in the order of PyTorch and of Sea AI Lab's code") {
  for (const auto& [file, name, count] : {std::tuple("torch-2.14.1__GPipe__runtime.jsonl", "gpipe", 36),
                                          std::tuple("torch-2.14.1__1F1B__runtime.jsonl", "one_f_one_b", 31),
                                          std::tuple("sail__1F1B__compute.jsonl", "one_f_one_b", 36)}) {
    int compared = 0;
    for (const std::string& line : lines_of(folder / file)) {
      const json record = json::parse(line);
      if (record["ranks"].empty()) continue;
      const json a = answer(
          json{{"schedule", name}, {"pp", record["pp"]}, {"microbatches", record["microbatches"]}}.dump());
      CAPTURE(line);
      CHECK(a["compute"] == compute_of(record["ranks"]));
      CHECK(a["stage_to_rank"] == record["stage_to_rank"]);
      ++compared;
    }
    CHECK(compared == count);
  }
}

}  // namespace rankc::tool
