// SPDX-License-Identifier: Apache-2.0
#include "class_table.hpp"

#include <cstdio>
#include <istream>
#include <sstream>

namespace field {

namespace {

constexpr long long class_counts::* columns[]{&class_counts::mutants,       &class_counts::accepted,
                                              &class_counts::different,     &class_counts::over_field,
                                              &class_counts::in_f64,        &class_counts::in_interleaving,
                                              &class_counts::false_accepts, &class_counts::refused_equal};

}  // namespace

void class_table::add(const std::string& name, const class_counts& one) {
  class_counts& sum = classes_[name];
  for (const auto column : columns) sum.*column += one.*column;
  sum.seconds += one.seconds;
}

void class_table::read(std::istream& from) {
  for (std::string line; std::getline(from, line);) {
    std::istringstream words(line);
    class_counts one;
    for (const auto column : columns) words >> one.*column;
    words >> one.seconds >> std::ws;
    std::string name;
    if (std::getline(words, name)) add(name, one);
  }
}

std::string class_table::to_text() const {
  std::string text =
      "mutants accepted different    field      f64 interleaving false accepts refused equal    seconds  "
      "class\n";
  for (const auto& [name, c] : classes_) {
    char buffer[200];
    std::snprintf(buffer, sizeof buffer, "%7lld %8lld %9lld %8lld %8lld %12lld %13lld %13lld %10.1f  ",
                  c.mutants, c.accepted, c.different, c.over_field, c.in_f64, c.in_interleaving,
                  c.false_accepts, c.refused_equal, c.seconds);
    text += buffer + name + "\n";
  }
  return text;
}

}  // namespace field
