// SPDX-License-Identifier: Apache-2.0
// The bound on the chance that a check accepts a program that does not compute the model. It is stated for a
// program that was written before the fields were drawn, and takes the seeded hash for a function that is
// drawn at random.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

namespace rankc::codegen::algebra {

/// `known` is how many terms the model has.
///
/// A term is a sum of leaves and results of rows x_i, each times a number c_i, a fraction whose denominator
/// is a power of two. Let the numerators of all terms, and of their differences, have at most B bits. Two
/// different terms differ in some c_i. They are equal in one field only in two cases. First, the prime
/// divides the numerator of that difference: at most B / 61 primes above 2^61 do, of more than 2^55 from
/// which the prime is drawn. Second, the hash of x_i is the one element that makes the sums equal: the
/// chance is below 2^-60. The fields are drawn independently. The chance for one pair of terms is below
///
///     e = (2^-60 + B / 61 * 2^-55)^2.
///
/// The check refuses a program at the first value that the model does not have. The exception are parts of
/// sums with many addends, which are compared when they are read (`sums.cpp`). So the terms that are
/// compared are the model's, the axes and orders that are made of them, and at most one more for each op:
/// fewer than n = 512 known + ops. The bound is n^2 e, and B / 61 * 2^-64 in addition: the seed has 64 bits,
/// and numbers of B bits can be fitted to B / 61 seeds.
double chance_of_wrong_accept(const program&, const specification&, std::size_t known);

}  // namespace rankc::codegen::algebra
