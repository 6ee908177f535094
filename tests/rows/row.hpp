// SPDX-License-Identifier: Apache-2.0
// A row of the table of ops with its facts, and the sizes at which it is tested. Axes are named by the facts'
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
/// The values of each port, in the order of the facts' ports: results first.
using operands = std::vector<values>;

struct row {
  const op_row* op;
  const fact* is;
  std::vector<std::size_t> ports;  // the index in the op's row, by port of the facts

  const port& of(std::size_t fact_port) const { return op->ports[ports[fact_port]]; }
  std::size_t results() const { return static_cast<std::size_t>(is->results); }
  bool is_defined_by_others() const { return is->equations[0].is == equation::kind::call; }
};

/// All rows in programs: the table's, fused ones, and rows that lowering adds.
std::vector<const op_row*> op_rows();
/// The rows with a kernel, except rows on chunks of sequences, on parts in a ring and on fp8 operands. The
/// lists of these follow. Errors: std::logic_error if a row's facts are missing or have different ports.
const std::vector<row>& rows();
const std::vector<row>& chunk_rows();
const std::vector<row>& ring_rows();
const std::vector<row>& narrowed_rows();
/// The rows that occur in models alone.
const std::vector<row>& modelled_rows();
const row& find_row(std::string_view name);

/// The sizes of a call, one per letter ('s' is the op's seq), and its other attributes.
struct setting {
  std::map<char, int> size;
  int first = 0;  // offset along the axis of the row's "@first"
  double number = 0.37;
  int gap = 0;   // elements between rows of strided ports
  int ring = 1;  // ranks of the ring that shards each sequence
  int seq() const { return size.at('s'); }
};
/// Whether a row has slots of tokens, or arranges them. check_slots tests it on parts of tokens.
inline bool has_slots(const row& r) { return r.is->arranges || r.is->owns || r.is->by >= 0; }

/// The tokens that an op has of each sequence. On chunks, `number` is the number of ranks that shard it.
inline int tokens_of_sequence(const row& r, const setting& s) {
  return s.seq() / (r.is->chunks ? static_cast<int>(s.number) : s.ring);
}

/// A dim of a port: `count` units of `unit` elements.
struct extent {
  char letter, unit_letter;  // '\0': none
  int count, unit;
  int elements() const { return count * unit; }
};
std::vector<extent> shape(const row&, std::size_t port, const setting&);
std::size_t count(const row&, std::size_t port, const setting&);
/// The letter of the axis of "@first"; '\0' if the row has no "@first".
char first_letter(const row&);
/// The value of a symbol in a kernel's sizes.
double size_of_symbol(const row&, std::string_view symbol, const setting&);
std::vector<std::string_view> words(std::string_view text, char separator);

/// Small primes, one token, one of everything, sizes past the kernels' tiles, and sizes that fill them.
setting small(const row&);
std::vector<setting> settings(const row&);

}  // namespace rankc::test::rows
