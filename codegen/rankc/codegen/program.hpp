// SPDX-License-Identifier: Apache-2.0
// The rank program after lowering. Every rank has a list of ops in issue order. An op has its stream, the
// events that it waits for, the bytes that it reads and writes, its kernel's arguments and its message. The
// proof, the certificate and the hash of calls are made from this program. A value is a name for the contents
// of some bytes: one op writes it and others read it. An accumulation reads one value and writes the next.
// All ops are asynchronous on their streams.
#pragma once
#include <rankc/contract/load_balance.hpp>
#include <rankc/contract/attention_setting.hpp>
#include <rankc/contract/rope_scaling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

enum class element_type { bytes, i32, bf16, f32, f64, e4m3, e5m2, e4m3_rows };
inline constexpr const char* element_type_names[]{"bytes", "i32",  "bf16", "f32",
                                                  "f64",   "e4m3", "e5m2", "e4m3_rows"};
constexpr bool is_fp8(element_type t) { return t >= element_type::e4m3; }
/// Units: bytes.
constexpr std::size_t element_size(element_type t) {
  constexpr std::size_t sizes[]{1, 4, 2, 4, 8, 1, 1, 1};
  static_assert(std::size(sizes) == std::size(element_type_names));
  return sizes[static_cast<int>(t)];
}

/// Bytes [begin, end) of the rank's arena holding `value` (unique within the whole program).
struct access {
  std::size_t begin = 0, end = 0;
  int value = -1;
  element_type type = element_type::bytes;
  int replaces = -1;  // of a write: index of the op's read that it overwrites in place; -1: none
  bool operator==(const access&) const = default;
};

enum class op_kind {
  begin,    // first op of a rank: writes the values that exist before the step; every stream starts after it
  compute,  // a kernel
  send,     // to `peer`, on `communicator`
  receive,
  collective,  // all members of `communicator` issue it in the same order
  end,         // last op of a rank: waits for every stream, reads the values that must exist after the step
};

/// The data that a collective moves.
///   all_reduce, all_reduce_max  as many bytes out as in
///   all_gather                  out: the input of every member
///   reduce_scatter              in: a part for every member
///   all_to_all                  in: a member's tokens, all heads; out: all tokens, its heads; or the reverse
///   shift, shift_back           two tensors, from the member before in the ring (shift), or after it
///   to_experts, from_experts    slots of tokens
///   share_offsets               the offset tables of slots
///   gather_offsets              the results of share_offsets, as if the op's slabs were contiguous
/// The `seq` of an all_to_all is the length of a sequence. A shift is one exchange, in which each member
/// sends and receives. The slots of a member's experts are in slabs of rows, one slab for each member. The
/// second read of to_experts and from_experts is the offset table of the member's own tokens. An all_to_all,
/// and the exchanges of slots and offsets, also write scratch, after their result.
enum class collective_kind {
  all_reduce,
  all_reduce_max,
  all_gather,
  reduce_scatter,
  all_to_all,
  shift,
  shift_back,
  to_experts,
  from_experts,
  share_offsets,
  gather_offsets
};
inline constexpr const char* collective_kind_names[]{
    "all_reduce", "all_reduce_max", "all_gather",   "reduce_scatter", "all_to_all",    "shift",
    "shift_back", "to_experts",     "from_experts", "share_offsets",  "gather_offsets"};
constexpr bool is_shift(collective_kind k) {
  return k == collective_kind::shift || k == collective_kind::shift_back;
}
/// True if the collective adds elements up or takes their maximum.
constexpr bool sums(collective_kind k) {
  return k == collective_kind::all_reduce || k == collective_kind::all_reduce_max ||
         k == collective_kind::reduce_scatter;
}
constexpr bool exchanges_slots(collective_kind k) { return k >= collective_kind::to_experts; }

/// Consecutive indices.
struct index_range {
  int first = 0, count = 0;
  struct iterator {
    int at;
    int operator*() const { return at; }
    iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const iterator&) const = default;
  };
  std::size_t size() const { return static_cast<std::size_t>(count); }
  int operator[](std::size_t i) const { return first + static_cast<int>(i); }
  iterator begin() const { return {first}; }
  iterator end() const { return {first + count}; }
  bool operator==(const index_range&) const = default;
};

/// The sizes of a tensor of at most two dims.
struct tensor_shape {
  std::int64_t dim[2]{};
  std::uint8_t ndim = 0;
  void push_back(std::int64_t size) { dim[ndim++] = size; }
  std::size_t size() const { return ndim; }
  bool empty() const { return ndim == 0; }
  std::int64_t operator[](std::size_t d) const { return dim[d]; }
  const std::int64_t* begin() const { return dim; }
  const std::int64_t* end() const { return dim + ndim; }
  bool operator==(const tensor_shape&) const = default;
};

/// The tensor that a kernel gets for one port of its row. It is row-major, its rows are `stride` elements
/// apart, and it begins `offset` bytes into an access of the op.
struct view {
  std::string_view port;      // such as "dw"; points into the table of ops, which outlives the program
  bool written = false;       // false: read
  bool adds = false;          // written: added to the old contents, which the op reads too
  index_range accesses = {};  // indices into the op's writes or reads; each access continues the one before
  std::size_t offset = 0;     // bytes
  tensor_shape shape = {};    // on this rank; empty: a number
  std::int64_t unit = 1;      // elements of a unit (a head) of the dim that the row's port measures in units
  std::int64_t stride = 1;    // elements from one row to the next; 1 with fewer than two dims
  std::int64_t first = 0;  // "vocab@first": the offset of this rank's part in the dim that the row marks so
  // Until whole_program.cpp sets `first` for each rank, the rank's offset is first * (coordinate on tp, or on
  // ep) + next_first * (coordinate on cp / alike).
  std::int64_t next_first = 0;
  int alike = 1;
  bool of_experts = false;     // `first` is the offset of rank 1 of ep; false: of rank 1 of tp
  load_balance balances = {};  // of an update: how a router's bias is updated
  bool operator==(const view&) const = default;
};

/// The role of a tensor that a rank has at the start or at the end of a step.
enum class holding_kind {
  weight,
  working_copy,
  first_moment,
  second_moment,
  padding,
  rotary,
  ids,
  targets,
  starts,
  loss,
  norm,
  input
};
inline constexpr const char* holding_names[]{"weight",  "working copy", "first moment", "second moment",
                                             "padding", "rotary",       "ids",          "targets",
                                             "starts",  "loss",         "norm",         "input"};
/// True for the inputs of a step. Of these only `input` has a name.
constexpr bool is_input(holding_kind k) {
  using enum holding_kind;
  return k == ids || k == targets || k == starts || k == input;
}
/// True if the next step begins with the tensor that a step leaves, in the same bytes.
constexpr bool is_kept(holding_kind k) {
  return !is_input(k) && k != holding_kind::loss && k != holding_kind::norm;
}

/// Part of a tensor of the model: the indices [first, first + count) of a dim.
struct box_range {
  std::int64_t first = 0, count = 0;
  bool operator==(const box_range&) const = default;
};

/// The contents of an access of `begin` or `end`: a box of a parameter or of its moments; parts of the ids of
/// all tokens of a step, of their targets or of the starts of their documents; or cosines and sines of
/// `positions` positions, of all or of those in the box.
struct holding {
  holding_kind kind = holding_kind::weight;
  std::string name = {};            // of a parameter, or of an input that the model declares
  std::vector<box_range> box = {};  // weights, moments: one range for each dim; others: consecutive parts
  // Weights and moments of experts, until whole_program.cpp sets the box of each rank: rows of each rank of
  // ep; 0: no experts.
  std::int64_t expert_rows = 0;
  std::int64_t positions = 0, dim = 0;  // rotary
  double theta = 0;
  rope_scaling scaling{};
  bool operator==(const holding&) const = default;
};

struct op {
  op_kind kind = op_kind::compute;
  // "1F0: block 2: linear wq". A communication has one name on both sides: "F0: stage 0 -> 1".
  std::string name;
  int stream = 0;          // index of a lane of the rank
  std::vector<int> waits;  // earlier ops of this rank whose end this op waits for
  std::vector<access> reads, writes;
  int communicator = -1;  // communication only: index into program::communicators
  int peer = -1;          // send, receive: the other rank, an index into program::ranks
  std::size_t bytes = 0;  // communication only: per rank; both sides must agree
  int message = -1;       // communication only: index of its site, the same on all sides
  collective_kind does = collective_kind::all_reduce;  // collective only
  bool in_bf16 = false;  // collective only: members send their f32 parts of the sum in bf16
  // Row-pipelined collective only: the distance in ops to its GEMM, which follows an all_gather and precedes
  // a reduce_scatter; 0: the collective runs alone. The two run at once, in parts of rows, and the op between
  // them runs meanwhile. The input of such a reduce_scatter is destroyed.
  int by_rows = 0;
  std::string function = {};               // the function that the text calls; empty: the op only waits
  std::vector<std::size_t> operands = {};  // byte offsets in argument order
  std::vector<double> given = {};          // the sizes and the number in its call
  std::string_view row = {};       // row of the table of ops, or sum_squares, adamw, clear; empty: no kernel
  std::vector<view> views = {};    // one for each port of the row, in order, without scratch
  std::int64_t rows = 0, seq = 0;  // attributes of the row; rows of a slab if slots are exchanged
  double number = 0;               // the kernel's number argument; 0: none
  attention_setting attention = {};
  std::vector<holding> holds = {};  // begin: one for each write; end: one for each read
};

/// The access in which a view's tensor begins.
inline const access& first_access(const op& o, const view& v) {
  return (v.written ? o.writes : o.reads).at(static_cast<std::size_t>(v.accesses.first));
}

struct rank_program {
  std::vector<op> ops;
  std::size_t arena_bytes = 0;
  int number = -1;  // rank number in the world; -1: the index
  int alike = 0;    // equal for ranks that run the same ops; in a plan, the pipeline coordinate
};

struct communicator {
  std::string name;
  std::vector<int> ranks;
  int size = 0;  // members in the world if the program leaves some out; 0: `ranks` has all
  // True if the members' arenas have one layout. Operands then lie at equal offsets, where the runtime finds
  // those of other members.
  bool one_layout = false;
  std::vector<int> along = {};  // indices into program::mesh: the axes along which members are left out
  int members() const { return size == 0 ? static_cast<int>(ranks.size()) : size; }
};

/// An axis of the mesh of all ranks of the world; the outermost axis is first. If some ranks stand for all,
/// the program has the ranks at the first `listed` indices. The other ranks behave like those at the last of
/// these.
struct listed_axis {
  std::string name;
  int size = 1, listed = 1;
};

/// The kernels that a program calls. Their scratch depends on it.
struct kernel_set {
  bool on_host = false, deterministic = false;
  bool operator==(const kernel_set&) const = default;
};

struct program {
  std::string plan;  // the plan's name
  std::uint64_t plan_hash = 0;
  int streams = 0;
  std::vector<communicator> communicators;
  std::vector<rank_program> ranks;
  int world = 0;               // more than ranks.size() if some ranks stand for all; 0: ranks.size()
  std::string step = "train";  // or "evaluate"
  kernel_set calls = {};
  std::vector<listed_axis> mesh = {};  // empty: the program has all ranks

  /// The number of a rank in the world.
  int number_of(int rank) const {
    const int number = ranks[static_cast<std::size_t>(rank)].number;
    return number < 0 ? rank : number;
  }
  int world_size() const { return std::max(world, static_cast<int>(ranks.size())); }
};

}  // namespace rankc::codegen
