// SPDX-License-Identifier: Apache-2.0
// The samples that a program trains on, each a function of its number: the order of samples over steps,
// microbatches and ranks is therefore the same for every parallel layout with the same global batch.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/tools/token_file.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// What `--data` may name.
struct data_spec {
  enum class source { arith, rand, files } from;
  std::uint64_t seed = 0;  // arith, rand
  std::string path;        // files
};

/// Read `arith:SEED`, `rand:SEED`, FILE.txt, FILE.bin or a directory.
/// Errors: failure (2) for anything else.
data_spec parse_data_spec(std::string_view text);

class dataset {
 public:
  /// Open what `spec` names for sequences of `seq` tokens below `vocab`.
  /// Errors: failure (1) for a file that cannot serve, by name.
  dataset(const data_spec& spec, int vocab, int seq);

  /// Write the tokens of sample `s`, and as targets the tokens after them.
  /// arith: (start + stride t) % vocab; rand: a hash of s (seq + 1) + t; files: consecutive pieces, from the
  /// start again after the last. Shapes: tokens, targets (seq).
  void sample(std::uint64_t s, std::int32_t* tokens, std::int32_t* targets) const;

  /// One line for the console; for text it gives the entropy of its bytes, for scale.
  std::string text() const;

 private:
  int token(std::uint64_t s, std::uint64_t t) const;

  data_spec spec_;
  std::uint64_t vocab_, seq_;
  token_file file_;
};

/// Set the whole batch of a step: sample `first` is row 0 of data-parallel rank 0 in microbatch 0; rows come
/// first, then data-parallel ranks, then microbatches.
void set_batch(engine&, const dataset&, std::uint64_t first);

}  // namespace rankc::runtime
