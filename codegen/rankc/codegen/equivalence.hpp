// SPDX-License-Identifier: Apache-2.0
// Checks that the programs of all ranks together compute what the model computes on one device.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/specification.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rankc::codegen {

/// A seed from the machine's entropy.
std::uint64_t random_seed();

/// The prime fields in which terms are compared. They are drawn when the check runs.
struct fingerprints {
  std::uint64_t seed = 0;  // the primes follow from it
  std::array<std::uint64_t, 2> primes{};
  /// For a result that holds: a bound of the probability that the check accepts a program that does not
  /// compute the model. It applies to programs that were written before the draw.
  double chance = 1;
};

struct equivalence {
  bool holds = false;
  bool has_unknown_row = false;      // the checker has no facts of an op's row: nothing is claimed
  std::vector<std::string> reasons;  // why it does not hold: the op, the tensor, expected and found
  std::vector<std::string> claims;   // the claims that hold, as sentences
  fingerprints drawn;
};

/// Byte ranges: the end of each, by its begin.
using byte_ranges = std::map<std::size_t, std::size_t>;

/// A tensor that a rank has at the start of a step and leaves to the next step, with its bytes: a weight, a
/// working copy, a moment, a rotary table or padding.
struct kept_tensor {
  access at;
  holding what;
};
struct kept_state {
  struct rank {
    int number;  // rank number in the world
    std::vector<kept_tensor> tensors;
    byte_ranges tails = {};  // behind tensors: kernels of an optimizer or a norm process these bytes too
    std::vector<access> written = {};  // without padding
  };
  std::string step;
  kernel_set calls;
  std::vector<rank> ranks;
};
kept_state kept_by(const program&);
/// "cuda, deterministic"
std::string name_of(const kernel_set&);

/// Checks that programs are the steps of one plan: evaluation, and training if the model trains a parameter.
/// All call the kernels of one target. Each begins with the same tensors, of the same types, in the same
/// bytes of every rank. `check_equivalence` shows that a step leaves the tensors that it begins with, or the
/// model's updates of them.
equivalence check_steps(const std::vector<kept_state>&, const specification&);

/// Interprets a program over terms and compares the tensors that it leaves with the specification. `order` is
/// a verdict of the program: an order of its ops in which every read follows the write of its value.
using equivalence_check = std::function<equivalence(const program&, const verdict& order)>;

/// Makes the check of all steps of a plan. It draws the fields and builds the model's terms once. Equal seeds
/// give equal results. The specification must outlive the check.
equivalence_check check_against(const specification&, std::uint64_t seed = random_seed());

/// Compares one program with the model of its plan.
equivalence check_equivalence(const program&, const verdict& order, const specification&,
                              std::uint64_t seed = random_seed());

}  // namespace rankc::codegen
