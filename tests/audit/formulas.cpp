// SPDX-License-Identifier: Apache-2.0
#include "formulas.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace audit {

std::vector<formula> read_formulas(const std::string& path) {
  std::ifstream in(path);
  std::vector<formula> rows;
  std::string line;
  if (!std::getline(in, line) || !line.starts_with("id,technique,"))
    throw std::runtime_error(path + " is no table of formulas");
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    formula f;
    std::string id;
    std::getline(cells, id, ',');
    f.id = std::stoi(id);
    for (std::string* cell : {&f.technique, &f.variant, &f.phase, &f.scope, &f.op, &f.axis, &f.count,
                              &f.elements, &f.sent, &f.type, &f.evidence})
      if (!std::getline(cells, *cell, ',')) throw std::runtime_error(path + ": row " + id + " lacks cells");
    rows.push_back(std::move(f));
  }
  return rows;
}

const formula& find(const std::vector<formula>& rows, int id) {
  for (const formula& f : rows)
    if (f.id == id) return f;
  throw std::out_of_range("no formula has the number " + std::to_string(id));
}

}  // namespace audit
