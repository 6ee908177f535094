// SPDX-License-Identifier: Apache-2.0
// A certificate in the form of its file. schema.hpp lists the fields of each struct.
#pragma once
#include <rankc/codegen/certificate.hpp>
#include <rankc/runtime/failure.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace rankc::codegen::schema {

inline constexpr const char* format = "rankc certificate 10";

/// Ends the reading or the check of a certificate. The sentence is the answer.
template <class... T>
[[noreturn]] void refuse(runtime::sentence<std::type_identity_t<T>...> about, const T&... facts) {
  throw runtime::failure(1, about, facts...);
}

inline bool is_message(const op& o) { return o.kind == op_kind::send || o.kind == op_kind::receive; }
inline bool communicates(const op& o) { return is_message(o) || o.kind == op_kind::collective; }

/// An op with local numbers of its program. Each rank that runs the op lists the values and communicators
/// that these numbers mean, and the offsets of its shards. The peer of a message is an index into the
/// communicator's ranks.
struct listed_op : op {
  int position = -1;  // place in an order of all joint events of the step
};

/// The ops of one rank, or of several ranks that run the same ops.
struct listed_program {
  std::size_t arena_bytes = 0;
  std::vector<listed_op> ops;
};

/// A run of numbers. For values: `count` numbers from `first` on. For offsets of shards: `first`, `count`
/// times.
struct number_run {
  std::int64_t first = 0, count = 0;
};

/// A rank: its program, and the values and communicators that the program's numbers mean on it.
struct listed_rank {
  int number = 0;   // rank number in the world
  int program = 0;  // index in the step
  std::vector<int> communicators;
  std::vector<number_run> value_runs = {}, first_runs = {};
  std::vector<int> values = {};           // the numbers of value_runs
  std::vector<std::int64_t> firsts = {};  // offsets of shards: of the views of each op, then of its boxes
};

/// A step of the plan.
struct step {
  std::string name;
  kernel_set calls;
  int streams = 0;
  std::vector<communicator> communicators;
  std::vector<listed_program> programs;
  std::vector<listed_rank> ranks;
  int world = 0;                  // from the file, like the mesh
  std::vector<listed_axis> mesh;  // empty: the step has all ranks
};

/// A certificate.
struct file {
  std::string format, plan;
  std::string plan_hash;             // 16 hexadecimal digits
  std::vector<std::string> trusted;  // assumptions that no checker can verify from the file
  int world = 0;
  std::vector<listed_axis> mesh;
  specification model;  // without layers if the file has no model
  std::vector<step> steps;
};

/// Errors: runtime::failure if the text is not a certificate.
file read(const std::string& json_text);

/// The steps as programs of all ranks.
certified to_programs(file);

/// Describes the fields of all structs, as a page of Markdown.
std::string describe();

}  // namespace rankc::codegen::schema
