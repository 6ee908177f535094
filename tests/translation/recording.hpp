// SPDX-License-Identifier: Apache-2.0
// The calls of a generated program on one rank, as the recording runtime saw them: in the order of issue,
// with the bytes that each touches and the calls that each waits for.
#pragma once
#include <rankc/contract/attention_setting.hpp>
#include <rankc/contract/targets.hpp>
#include <rankc/contract/load_balance.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {
struct description;
}
namespace rankc::runtime::host {
struct program;
}
namespace rankc::runtime::cuda {
struct program;
}

namespace translation {

/// The bytes of the arena that an operand covers: `runs` pieces of `run` bytes that begin `pitch` bytes
/// apart. Pitch 0: a single contiguous piece.
struct area {
  std::size_t begin, run, runs = 1, pitch = 0;
  bool is_whole() const { return pitch == 0 || run == pitch; }
  std::size_t end() const { return begin + (runs - 1) * pitch + run; }
};

/// A collective or message: the site that the text names, and the communicator of this rank's lane.
struct communication {
  int site;
  std::string name, communicator;
  std::vector<int> members;  // ranks of the world
  std::size_t bytes;         // per rank
};

/// A byte range of weights that are router biases, and how they are moved.
struct bias_range {
  std::size_t begin, end;
  rankc::load_balance by;
};

struct call {
  std::string function;                 // all_reduce_max: all_reduce with reduction::max
  int lane;                             // lane of the rank
  std::vector<std::size_t> operands{};  // addresses, in the order of the arguments
  std::vector<area> reads{}, writes{};  // an output that is added to is in both
  std::optional<double> number{};       // eps, a factor, or the scale of a loss
  rankc::attention_setting attention{};
  std::optional<std::int64_t> slab{};  // rows per member, in exchanges of slots or of their offsets
  std::vector<bias_range> biases{};    // biases that an optimizer moves by the choices of experts
  bool by_rows = false;                // a collective that is row-pipelined with a GEMM
  bool has_padding = false;            // covers ranges of a region, including alignment between tensors
  std::vector<communication> communicates{};  // one at most
  std::vector<int> waits{};                   // calls whose end it waits for by events, ascending
};

struct recording {
  std::vector<call> calls{};
  std::vector<std::string> lanes{};
  std::vector<std::vector<int>> end_waits{};  // by lane: the waits after its last call
  std::string fault{};                        // the first misuse of the runtime; empty if there is none
  std::size_t fault_at = 0;                   // the call with the misuse, or the next one
};

/// Run `train` or `evaluate` of a rank against the recorder.
recording record(const rankc::host::program&, int rank, bool trains);
recording record(const rankc::cuda::program&, int rank, bool trains);

/// The check that the runtime makes of a rank's calls when a program starts.
/// Errors: runtime::failure with its sentence.
void check_calls(const rankc::host::program&, int rank);
void check_calls(const rankc::cuda::program&, int rank);

/// A compiled program as a shared object offers it.
struct text {
  const char* name;
  const rankc::runtime::description* about;
  recording (*record)(int rank, bool trains);
  void (*check_calls)(int rank);
};

}  // namespace translation
