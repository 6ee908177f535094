// SPDX-License-Identifier: Apache-2.0
// A certificate as it is written in its file. schema.hpp lists the fields of each struct.
#pragma once
#include <rankc/codegen/certificate.hpp>
#include <rankc/runtime/failure.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace rankc::codegen::schema {

inline constexpr const char* format = "rankc certificate 10";

/// Ends the reading or the check of a certificate: the sentence is the answer.
template <class... T>
[[noreturn]] void refuse(runtime::sentence<std::type_identity_t<T>...> about, const T&... facts) {
  throw runtime::failure(1, about, facts...);
}

inline bool is_message(const op& o) { return o.kind == op_kind::send || o.kind == op_kind::receive; }
inline bool communicates(const op& o) { return is_message(o) || o.kind == op_kind::collective; }

/// An op in the numbers of its program. Each rank that runs it says which values and communicators these
/// numbers are, and where its shards begin. The peer of a message is an index into the communicator's ranks.
struct listed_op : op {
  int position = -1;  // in an order of all joint events of the step
};

/// The ops of one rank or of several like ranks.
struct listed_program {
  std::size_t arena_bytes = 0;
  std::vector<listed_op> ops;
};

/// Values: `count` numbers from `first` on. Begins of shards: `first`, `count` times.
struct number_run {
  std::int64_t first = 0, count = 0;
};

/// A rank: the program that it runs, and its values and communicators for the program's numbers.
struct listed_rank {
  int number = 0;   // among the ranks of the world
  int program = 0;  // among those of the step
  std::vector<int> communicators;
  std::vector<number_run> value_runs = {}, first_runs = {};
  std::vector<int> values = {};           // from the runs
  std::vector<std::int64_t> firsts = {};  // where shards begin: of the views of each op, then of its boxes
};

/// A step of the plan.
struct step {
  std::string name;
  kernel_set calls;
  int streams = 0;
  std::vector<communicator> communicators;
  std::vector<listed_program> programs;
  std::vector<listed_rank> ranks;
  int world = 0;                  // of the file, as is the mesh
  std::vector<listed_axis> mesh;  // empty: the step has all ranks
};

/// A certificate.
struct file {
  std::string format, plan;
  std::string plan_hash;             // 16 hexadecimal digits
  std::vector<std::string> trusted;  // what no checker can know from the file
  int world = 0;
  std::vector<listed_axis> mesh;
  specification model;  // without layers: the file has no model
  std::vector<step> steps;
};

/// Errors: runtime::failure where the text is not a certificate.
file read(const std::string& json_text);

/// The steps as programs of all ranks.
certified to_programs(file);

/// The fields of all structs, as a page of Markdown.
std::string describe();

}  // namespace rankc::codegen::schema
