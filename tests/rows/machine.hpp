// SPDX-License-Identifier: Apache-2.0
// Where rows are run: a target and a type of activations.
#pragma once
#include "row.hpp"

namespace rankc::test::rows {

/// The memory of an operand is a result's.
struct replacement {
  std::size_t result, operand;
};

class machine {
 public:
  virtual ~machine() = default;
  virtual std::string name() const = 0;
  virtual bool has(const row&) const = 0;
  virtual bool has_gaps() const = 0;
  /// How far results of sums of a few hundred terms may be apart, for numbers near 1.
  virtual double tolerance() const = 0;
  /// The same of products of eight bits.
  virtual double fp8_tolerance() const { return tolerance(); }
  /// What a port keeps of numbers.
  virtual values rounded(const row&, std::size_t port, const values&) const = 0;
  /// Run a row's kernel; what is given of results is there before. What the kernel must leave alone is
  /// checked.
  virtual operands run(const row&, const setting&, operands, bool adds = false,
                       const replacement* = nullptr) = 0;
  /// Of the last result of e4m3_rows: the numbers that lie by columns, in the order of those by rows.
  virtual const values& by_columns() const = 0;
};

/// Random numbers and ids that a port holds; sums of exponentials are above zero, ids partly of other ranks'
/// rows.
values random_port(const machine&, const row&, std::size_t port, const setting&, unsigned seed);
operands random_operands(const machine&, const row&, const setting&, unsigned seed);

/// How far values are apart at most, where they are near `scale`, or 1.
double deviation(const values& got, const values& want, double scale = 1);
double largest(const values&);

}  // namespace rankc::test::rows
