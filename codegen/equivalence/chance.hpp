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
/// A term is a sum of leaves and functions x_i, each times a number c_i, a fraction with a power of two below
/// it. Let the numerators have at most B bits. Two different terms differ in some c_i. They are equal in one
/// field only in two cases. First, the prime divides the difference of the numerators: at most B / 61 primes
/// above 2^61 do, of more than 2^55 that the prime is drawn of. Second, the hash of x_i is the one element
/// that makes the terms equal: the chance is below 2^-60. Both fields are drawn apart, so that the chance is
/// below e = (2^-60 + B / 61 * 2^-55)^2 for one pair of terms.
///
/// The check refuses a program at the first stored value whose term the model does not have. That one term,
/// and the terms of the model among themselves, are all that is compared; with the axes and orders that are
/// made of them these are fewer than (512 known)^2 pairs. To this is added that the seed has 64 bits, and
/// that a program can be fitted to B / 61 seeds.
double chance_of_wrong_accept(const program&, const specification&, std::size_t known);

}  // namespace rankc::codegen::algebra
