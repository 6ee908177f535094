// SPDX-License-Identifier: Apache-2.0
// Faults of published cases: the sound programs that they are planted in, and what plants them.
#pragma once
#include "refused.hpp"

#include <functional>
#include <string>

namespace equivalence_tests {

/// A published case and the sentence that names it.
struct published_case {
  std::string name;        // its source and number, and what it is
  const subject& (*of)();  // the sound program
  int id;                  // of the sentence
  std::string names;       // what else the sentence names
  std::function<void(subject&)> plant;
};

/// Plants each case. The comparison with the model refuses it, in the order that was proven of the sound
/// program.
void check_cases(const std::vector<published_case>&);
/// Plants each case. The proof of order, messages and memory refuses it.
void check_proofs(const std::vector<published_case>&);

/// GPT by dp 2, tp 2 with sequence parallelism and pp 2; a Llama by dp 2 and tp 2, for CUDA and for the host.
const subject& gpt();
const subject& llama();
const subject& llama_on_host();

void each_rank(subject&, const std::function<void(int)>& change);
/// On all ranks, the n-th op of a name is left out; what it would have written is what it read.
void leave_out(subject&, const char* name, std::size_t n = 0);
void replace(subject&, const char* name, collective_kind by);
void multiply(subject&, const char* row, double factor);
/// The collectives of a name run over the communicator of another.
void retarget(subject&, const char* name, const char* to);
/// An operand holds what another one does.
void read_instead(access& own, const access& other);

}  // namespace equivalence_tests
