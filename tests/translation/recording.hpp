// SPDX-License-Identifier: Apache-2.0
// What a generated program does on one rank, as the recording runtime saw it: its calls in the order of
// issue, with the bytes that each touches and what each waits for.
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

/// Bytes of the arena that an operand covers: `runs` pieces of `run` bytes whose beginnings are `pitch` bytes
/// apart; 0: one piece that is no column of rows.
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

/// Bytes of weights that are biases of routers, and how they are moved.
struct bias_range {
  std::size_t begin, end;
  rankc::load_balance by;
};

struct call {
  std::string function;                 // all_reduce_max is the one with reduction::max
  int lane;                             // of the rank
  std::vector<std::size_t> operands{};  // where each begins, in the order of the arguments
  std::vector<area> reads{}, writes{};  // an output that is added to is in both
  std::optional<double> number{};       // eps, a factor, the scale of a loss
  rankc::attention_setting attention{};
  std::optional<std::int64_t> slab{};  // rows of each member's, where slots or their offsets are exchanged
  std::vector<bias_range> biases{};    // that an optimizer moves by the choices of experts
  bool by_rows = false;                // a collective: its rows move while a GEMM runs
  bool has_padding = false;            // it covers ranges of a region, alignment between tensors included
  std::vector<communication> communicates{};  // one at most
  std::vector<int> waits{};                   // calls whose end it waits for by events, ascending
};

struct recording {
  std::vector<call> calls{};
  std::vector<std::string> lanes{};
  std::vector<std::vector<int>> end_waits{};  // per lane: what its end waits for, after its last call
  std::string fault{};                        // the first misuse of the runtime, or empty
  std::size_t fault_at = 0;                   // the call that it is in, or that comes after it
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
