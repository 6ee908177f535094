// SPDX-License-Identifier: Apache-2.0
// A row of the table of ops with its facts, and the sizes that it is tested at. Axes go by the facts'
// letters.
#pragma once
#include <equivalence/facts.hpp>
#include <rankc/ops/fp8.hpp>
#include <rankc/ops/memory.hpp>
#include <rankc/ops/table.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::test::rows {

using codegen::algebra::equation;
using codegen::algebra::fact;
using values = std::vector<double>;
/// What each port holds, in the order of the facts' ports: results first.
using operands = std::vector<values>;

struct row {
  const op_row* op;
  const fact* is;
  std::vector<std::size_t> ports;  // in the op's row, of each port of the facts

  const port& of(std::size_t fact_port) const { return op->ports[ports[fact_port]]; }
  std::size_t results() const { return static_cast<std::size_t>(is->results); }
  bool is_defined_by_others() const { return is->equations[0].is == equation::kind::call; }
};

/// All rows that programs are made of: of the table, fused ones, and those that lowering adds.
std::vector<const op_row*> op_rows();
/// Those that have a kernel, but for chunks of sequences, parts around a ring and operands of eight bits; and
/// these. Errors: std::logic_error where a row has no facts, or other ports than its facts have.
const std::vector<row>& rows();
const std::vector<row>& chunk_rows();
const std::vector<row>& ring_rows();
const std::vector<row>& narrowed_rows();
/// The rows that only models have.
const std::vector<row>& modelled_rows();
const row& find_row(std::string_view name);

/// What an op is called with: a size for each letter ('s' is the op's seq), and what no size says.
struct setting {
  std::map<char, int> size;
  int first = 0;  // of the axis that the row's "@first" is on
  double number = 0.37;
  int gap = 0;   // elements between rows of ports that may have some
  int ring = 1;  // ranks that share out each sequence around a ring
  int seq() const { return size.at('s'); }
};
/// Whether a row has slots of tokens, or makes the order in which they lie: it is tested on parts of tokens
/// by check_slots.
inline bool has_slots(const row& r) { return r.is->arranges || r.is->owns || r.is->by >= 0; }

/// The tokens that an op has of each sequence: of chunks, of which its number says the ranks, not all.
inline int tokens_of_sequence(const row& r, const setting& s) {
  return s.seq() / (r.is->chunks ? static_cast<int>(s.number) : s.ring);
}

/// A dim of a port: whole units of so many elements.
struct extent {
  char letter, unit_letter;  // or '\0'
  int count, unit;
  int elements() const { return count * unit; }
};
std::vector<extent> shape(const row&, std::size_t port, const setting&);
std::size_t count(const row&, std::size_t port, const setting&);
/// The letter of the axis that "@first" is on; '\0' where the row has none.
char first_letter(const row&);
/// What a symbol of a kernel's sizes is.
double size_of_symbol(const row&, std::string_view symbol, const setting&);
std::vector<std::string_view> words(std::string_view text, char separator);

/// Small primes, one token, one of everything, sizes past the kernels' tiles, and sizes that fill them.
setting small(const row&);
std::vector<setting> settings(const row&);

}  // namespace rankc::test::rows
