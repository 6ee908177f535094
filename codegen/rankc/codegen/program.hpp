// SPDX-License-Identifier: Apache-2.0
// The rank program after lowering: for every rank the list of its ops in issue order, each with its stream,
// the events it waits for, the bytes it reads and writes, what its kernel is given, and what it communicates.
// This is what is placed, proven, certified and printed. A value is a name for the contents of some bytes: it
// is written by one op and read by others; an accumulation reads one value and writes the next. All ops are
// asynchronous on their streams.
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
  int replaces = -1;  // of a write: the read of the op, by index, whose bytes it is made over; -1: of no read
  bool operator==(const access&) const = default;
};

enum class op_kind {
  begin,    // first op of a rank: writes the values that exist before the step; every stream starts after it
  compute,  // a kernel
  send,     // to `peer`, on `communicator`
  receive,
  collective,  // all members of `communicator`, in the same order
  end,         // last op of a rank: waits for every stream, reads the values that must exist after the step
};

/// What a collective does. Bytes: all_reduce and all_reduce_max read and write as many; all_gather writes,
/// and reduce_scatter reads, as many times more as the communicator has members. all_to_all reads a matrix of
/// a member's tokens (or of all tokens, in its heads) and writes that of all tokens in its heads (or of its
/// tokens) and, after it, scratch; its sequences are the op's. shift and shift_back read two tensors and
/// write two of their sizes, as the member before has them, or the one after: one exchange, in which each
/// member sends and receives. The next three exchange slots of tokens, and their offsets, by way of scratch:
/// slots lie in slabs of rows, one for each member, where they are those of a member's experts; the offsets
/// that say which slots these are are those of the member's own tokens, and its second read. gather_offsets
/// writes what members have of the last one's, as of slabs of the op's rows that lie in line.
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
/// Whether it adds elements up, or takes their maximum.
constexpr bool sums(collective_kind k) {
  return k == collective_kind::all_reduce || k == collective_kind::all_reduce_max ||
         k == collective_kind::reduce_scatter;
}
constexpr bool exchanges_slots(collective_kind k) { return k >= collective_kind::to_experts; }

/// Indices one after the other.
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

/// The sizes of a tensor of two dims, of one or of none.
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

/// What a kernel is given for a port of its row: a tensor in row-major order, its rows `stride` elements
/// apart, that begins
/// `offset` bytes into an access of the op.
struct view {
  std::string_view port;      // "dw"; of the table of ops, so that it is there as long as the program is
  bool written = false;       // else read
  bool adds = false;          // written: to what these bytes held, which the op reads too
  index_range accesses = {};  // of the op's writes or reads; each further one continues the one before
  std::size_t offset = 0;     // bytes
  tensor_shape shape = {};    // on this rank; none: a number
  std::int64_t unit = 1;      // elements of a unit of the dim that the row's port has in units: of a head
  std::int64_t stride = 1;    // elements from one row to the next; of one dim or none: 1
  std::int64_t first = 0;  // "vocab@first": where this rank's part of the dim begins that the row says so of
  std::int64_t next_first = 0;  // until ranks are told apart: where that of the next rank of cp does
  int alike = 1;                // or that of the rank so many further, those between being in one group
  bool of_experts = false;      // and whether `first` is that of rank 1 of ep, else of tp
  load_balance balances = {};   // of an update: how the bias of a router's choice is moved
  bool operator==(const view&) const = default;
};

/// What a tensor of a rank is at the begin of a step and at its end.
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
/// True for the inputs of a step. All kinds but `input` have no name.
constexpr bool is_input(holding_kind k) {
  using enum holding_kind;
  return k == ids || k == targets || k == starts || k == input;
}
/// True if the next step begins with the tensor that a step leaves, in the same bytes.
constexpr bool is_kept(holding_kind k) {
  return !is_input(k) && k != holding_kind::loss && k != holding_kind::norm;
}

/// Part of a tensor of the model: of each dim `count` from `first` on.
struct box_range {
  std::int64_t first = 0, count = 0;
  bool operator==(const box_range&) const = default;
};

/// What an access of `begin` or of `end` holds: a box of a parameter or of its moments; parts of the ids of
/// all tokens of a step, of their targets, or of the starts of their documents; of so many positions the
/// cosines and sines, of all or of those in the box.
struct holding {
  holding_kind kind = holding_kind::weight;
  std::string name = {};            // of a parameter, or of an input that the model declares
  std::vector<box_range> box = {};  // weights, moments: of each dim; others: one part after the other
  std::int64_t expert_rows =
      0;  // until ranks are told apart, of weights and moments of experts: rows of each rank of ep
  std::int64_t positions = 0, dim = 0;  // rotary
  double theta = 0;
  rope_scaling scaling{};
  bool operator==(const holding&) const = default;
};

struct op {
  op_kind kind = op_kind::compute;
  std::string
      name;        // "1F0: block 2: linear wq"; the same on both sides for communication: "F0: stage 0 -> 1"
  int stream = 0;  // index of a lane of the rank
  std::vector<int> waits;  // ops of this rank, earlier in issue order, whose end this op waits for
  std::vector<access> reads, writes;
  int communicator = -1;  // communication only: index into lowering::communicators
  int peer = -1;          // send, receive: the other rank (a global rank number)
  std::size_t bytes = 0;  // communication only: per rank, as both sides must agree on it
  int message = -1;       // communication only: the site's index, the same on all sides
  collective_kind does = collective_kind::all_reduce;  // collective only
  bool in_bf16 = false;  // collective only: its members send their f32 parts of the sum in bf16
  // collective only: an all_gather and the product so many ops after it, or a reduce_scatter and that so
  // many
  int by_rows = 0;
  // before it, go at once, in parts of rows, and what is between them meanwhile; what is dealt out so is
  // gone afterwards; 0: it goes alone
  std::string function = {};               // what the text calls; empty: the op stands for its waits alone
  std::vector<std::size_t> operands = {};  // where its operands begin, in the order of the call's arguments
  std::vector<double> given = {};          // the sizes and the number that its call names
  std::string_view row = {};       // of the table of ops, or sum_squares, adamw, clear; empty: no kernel
  std::vector<view> views = {};    // of a row: its ports in their order, scratch left out
  std::int64_t rows = 0, seq = 0;  // the row's attributes; rows of a slab, where slots are exchanged
  double number = 0;               // the number that the kernel gets; 0: none
  attention_setting attention = {};
  std::vector<holding> holds = {};  // begin: of each write; end: of each read
};

/// The access in which the tensor of a view begins.
inline const access& first_access(const op& o, const view& v) {
  return (v.written ? o.writes : o.reads).at(static_cast<std::size_t>(v.accesses.first));
}

struct rank_program {
  std::vector<op> ops;
  std::size_t arena_bytes = 0;
  int number = -1;  // among the ranks of the world; -1: its index
  int alike = 0;    // the same for ranks that run the same ops; of a plan, the pipeline coordinate
};

struct communicator {
  std::string name;
  std::vector<int> ranks;
  int size = 0;             // members in the world, where the program has fewer of them; 0: as many
  bool one_layout = false;  // the members' arenas have one layout: operands lie at equal offsets, at which
                            // the runtime finds those of other members
  std::vector<int> along = {};  // indices into lowering::mesh: the axes along which members are left out
  int members() const { return size == 0 ? static_cast<int>(ranks.size()) : size; }
};

/// An axis of the mesh of all ranks of the world, whose axes lie outermost first. Where some stand for all,
/// the program has those at the first `listed` indices, and the others are like the last of these.
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
  int world = 0;               // more than there are ranks where these stand for all; 0: as many
  std::string step = "train";  // or "evaluate"
  kernel_set calls = {};
  std::vector<listed_axis> mesh = {};  // empty: the program has all ranks

  /// The rank among the ranks of the world.
  int number_of(int rank) const {
    const int number = ranks[static_cast<std::size_t>(rank)].number;
    return number < 0 ? rank : number;
  }
  int world_size() const { return std::max(world, static_cast<int>(ranks.size())); }
};

}  // namespace rankc::codegen
