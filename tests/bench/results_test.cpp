// SPDX-License-Identifier: Apache-2.0
// The tables of pages show the measured steps in results/. A comment above a table names the field of each
// column, and "-" a column that is not compared.
#include "results.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

namespace {

using bench::result;
using bench::results;
using texts = std::vector<std::string>;

std::string read(const std::string& path) {
  std::ifstream file(std::string(RANKC_SOURCE) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string trimmed(const std::string& text) {
  const auto is_blank = [](char c) { return c == ' '; };
  const auto first = std::find_if_not(text.begin(), text.end(), is_blank);
  const auto last = std::find_if_not(text.rbegin(), text.rend(), is_blank).base();
  return first < last ? std::string(first, last) : "";
}

/// The cells of "| a | b |".
texts cells_of(const std::string& row) {
  texts cells;
  std::istringstream in(row.substr(row.find('|') + 1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

/// The value of a column, with as many decimals as the cell has. "a x b" is two values, "a / b" a ratio.
/// Empty if the line lacks a field.
std::optional<std::string> value_of(const result& r, const std::string& column, const std::string& cell) {
  if (const std::size_t times = column.find(" x "); times != column.npos) {
    const auto first = value_of(r, column.substr(0, times), ""),
               second = value_of(r, column.substr(times + 3), "");
    return first && second ? std::optional(*first + " x " + *second) : std::nullopt;
  }
  const std::size_t over = column.find(" / ");
  const std::string field = column.substr(0, over);
  if (!r.line.contains(field)) return std::nullopt;
  double value = r.line.at(field);
  if (over != column.npos) {
    const std::string divisor = column.substr(over + 3);
    if (!r.line.contains(divisor)) return std::nullopt;
    value /= r.line.at(divisor).get<double>();
  }
  const std::size_t point = cell.find('.');
  return fmt::format("{:.{}f}", value, point == cell.npos ? 0 : cell.size() - point - 1);
}

bool shows(const texts& row, const texts& columns, const result& r) {
  if (!r.is_on(row.front().find("H100") == std::string::npos ? "h200" : "h100")) return false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == "-") continue;
    const auto value = value_of(r, columns[i], row[i]);
    if (value.value_or("not measured") != row[i]) return false;
  }
  return true;
}

/// Checks the rows of a page's tables.
/// Returns: the number of rows.
int check_tables(const std::string& page) {
  std::istringstream in(read(page));
  texts columns;
  int rows = 0;
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view mark = "<!-- results: ";
    if (line.starts_with(mark)) {
      columns = cells_of(
          "|" + line.substr(mark.size(), line.size() - mark.size() - std::string_view(" -->").size()) + "|");
      std::getline(in, line);  // the head of the table
      std::getline(in, line);
    } else if (!line.starts_with("|")) {
      columns.clear();
    } else if (!columns.empty()) {
      ++rows;
      const texts row = cells_of(line);
      REQUIRE_MESSAGE(row.size() == columns.size(), line);
      const auto count = std::count_if(results().begin(), results().end(),
                                       [&](const result& r) { return shows(row, columns, r); });
      CHECK_MESSAGE(count == 1, page << ": " << count << " results are as in " << line);
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("the tables of measured steps show the files of results") {
  CHECK(check_tables("README.md") == 5);
  CHECK(check_tables("tests/bench/README.md") == 46);
  CHECK(check_tables("dsl/rankc/recipe/README.md") == 2);
}

TEST_CASE("the README states the range of the ratios") {
  std::istringstream in(read("tests/bench/README.md"));
  std::vector<std::string> ratios;
  for (std::string line; std::getline(in, line) && (ratios.empty() || line.starts_with("|"));)
    if (const texts row = cells_of(line);
        line.starts_with("|") && row.size() == 6 && std::isdigit(row[5][0]) != 0)
      ratios.push_back(row[5]);
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  const std::string text = read("README.md");
  CHECK(text.find(fmt::format("{} to {} times the fastest form", *least, *most)) != text.npos);
  CHECK(text.find(fmt::format("the {} rows of", ratios.size())) != text.npos);
}

TEST_CASE("each result is of a GPU, a commit and a program that exists") {
  const std::string plans = read("tests/bench/gpu_plans.hpp");
  const std::set<std::string> gpus{"h100", "h200"};
  CHECK(results().size() > 70);
  for (const result& r : results()) {
    INFO(r.file << ": " << r.line.dump());
    CHECK(gpus.contains(r.file.substr(0, 4)));
    CHECK(r.file.size() == 13);
    CHECK(
        std::all_of(r.file.begin() + 5, r.file.end(), [](unsigned char c) { return std::isxdigit(c) != 0; }));
    CHECK(plans.find(" " + r.line.at("program").get<std::string>() + " =") != plans.npos);
    for (const auto& [key, value] : r.line.items())
      if (key.ends_with("_ms")) CHECK(value.get<double>() > 0);
  }
}
