// SPDX-License-Identifier: Apache-2.0
// The machine that rows run on: a target and a type of activations.
#pragma once
#include "row.hpp"

namespace rankc::test::rows {

/// A result that replaces an operand in its memory.
struct replacement {
  std::size_t result, operand;
};

class machine {
 public:
  virtual ~machine() = default;
  virtual std::string name() const = 0;
  virtual bool has(const row&) const = 0;
  virtual bool has_gaps() const = 0;
  /// The tolerance for sums of a few hundred terms near 1.
  virtual double tolerance() const = 0;
  /// The same for fp8 GEMMs.
  virtual double fp8_tolerance() const { return tolerance(); }
  /// Numbers rounded to the type of a port.
  virtual values rounded(const row&, std::size_t port, const values&) const = 0;
  /// Run a row's kernel. Given results are in memory before the call. Checks that other memory is unchanged.
  virtual operands run(const row&, const setting&, operands, bool adds = false,
                       const replacement* = nullptr) = 0;
  /// The transposed copy in the last e4m3_rows result, in row order.
  virtual const values& by_columns() const = 0;
};

/// Random numbers and ids for a port. Sums of exponentials are positive; some ids belong to other ranks'
/// rows.
values random_port(const machine&, const row&, std::size_t port, const setting&, unsigned seed);
operands random_operands(const machine&, const row&, const setting&, unsigned seed);

/// The largest difference, relative to `scale` or 1.
double deviation(const values& got, const values& want, double scale = 1);
double largest(const values&);

}  // namespace rankc::test::rows
