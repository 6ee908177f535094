// SPDX-License-Identifier: Apache-2.0
// A certificate as the checker sees it, read strictly: every field present, of the right type and in the
// range of its type, and no field that the checker would ignore.
#pragma once
#include <rankc/codegen/specification.hpp>
#include <rankc/runtime/failure.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankc::codegen::verifying {

/// Ends the check: the sentence is the answer.
template <class... T>
[[noreturn]] void refuse(runtime::sentence<std::type_identity_t<T>...> about, const T&... facts) {
  throw runtime::failure(1, about, facts...);
}

struct range {
  std::uint64_t begin, end;
  int value;  // in the numbers of the routine
  std::string type;
  int replaces = -1;  // of a write: the read that it is made over
};

/// What a kernel is given for a port; where a shard begins is said by the worker.
struct port_view {
  std::string port, use;  // in, out or add
  int first, count;       // of the accesses of its side
  std::uint64_t offset;
  std::vector<std::int64_t> shape;
  std::int64_t unit, stride;
  load_balance balances{};
};

/// What an access of begin or end is.
struct held {
  std::string kind, name;
  std::vector<std::int64_t> counts;  // of the box
  std::int64_t positions, dim;
  double theta;
  rope_scaling scaling{};
};

struct instruction {
  std::string kind, name;
  int stream, position;
  std::vector<int> waits;
  std::vector<range> reads, writes;
  std::vector<port_view> views;
  std::vector<held> holds;
  std::string row;  // of a computation
  std::int64_t rows = 0, seq = 0;
  double number = 0;
  std::vector<double> given;  // sizes and the number of its call
  std::vector<std::size_t> operands;
  bool communicates = false, point_to_point = false;
  int communicator = -1;  // in the numbers of the routine
  int peer = -1;          // among the ranks of the communicator
  int message = -1;
  std::uint64_t bytes = 0;
  std::string does;  // a collective
  bool in_bf16 = false;
  int by_rows = 0;  // to the product it goes with, in instructions
};

/// Something that is summed up, and what is said of it.
struct total {
  std::string kind, name;
  std::uint64_t begin, end;
  std::vector<std::pair<int, char>> over;        // communicator in the numbers of the routine; P, R, S or D
  std::pair<std::uint64_t, std::uint64_t> from;  // where contributions are added up
  int terms;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> updates;
  bool counted;
};

/// What one rank or several run.
struct routine {
  std::uint64_t arena_bytes;
  std::vector<instruction> instructions;
  std::vector<total> totals;
};

/// A rank: what it runs, and what the numbers in there mean to it.
struct worker {
  int number;  // among the ranks of the world
  int routine;
  std::vector<int> groups, values;
  std::vector<std::int64_t>
      firsts;  // where shards begin: of the views of each instruction, then of its boxes
};

struct group {
  std::string name;
  std::vector<int> ranks;
  int size;                // in the world
  bool one_layout;         // members find each other's operands at their own offsets
  std::vector<int> along;  // axes of the mesh along which members are left out
};

/// An axis of the mesh of all ranks, outermost first; a step has the ranks at the first `listed` indices.
struct listed_axis {
  std::string name;
  int size, listed;
};

/// One of the plan's programs.
struct document {
  std::string step;
  bool on_host, deterministic;  // its kernels
  int streams;
  std::vector<group> groups;
  std::vector<routine> routines;
  std::vector<worker> workers;
  int world;
  std::vector<listed_axis> mesh;  // empty: the step has all ranks
};

/// A certificate.
struct file {
  std::string plan, plan_hash;       // the hash as 16 hexadecimal digits
  std::vector<std::string> trusted;  // what no checker can know from the file
  std::vector<document> steps;
  specification model;  // without layers: the file has none
};

/// Errors: runtime::failure where the text is not a certificate.
file read(const std::string& json_text);

}  // namespace rankc::codegen::verifying
