// SPDX-License-Identifier: Apache-2.0
// A table of mutants by class, as text that can be read again. The tables of several runs can be added.
#pragma once
#include <iosfwd>
#include <map>
#include <string>

namespace field {

struct class_counts {
  long long mutants = 0, accepted = 0;
  long long different = 0;  // over the field, in f64, or in an interleaving
  // Parts of `different`, by the first oracle that finds a difference.
  long long over_field = 0, in_f64 = 0, in_interleaving = 0;
  long long false_accepts = 0;  // accepted, but different
  long long refused_equal = 0;  // refused, but not different
  double seconds = 0;
};

class class_table {
 public:
  void add(const std::string& name, const class_counts&);
  /// Add the lines of a table; other lines are ignored.
  void read(std::istream&);
  std::string to_text() const;

 private:
  std::map<std::string, class_counts> classes_;
};

}  // namespace field
