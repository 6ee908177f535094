// SPDX-License-Identifier: Apache-2.0
// The fields of a certificate's steps. The writer, the strict reader and FORMAT.md share this list.
//
// A schema lists the fields of one struct. `is_line`: the struct is a JSON array of the values in this order.
// Otherwise it is a JSON object. `own_line`: each struct begins on a new line.
//
// A visitor has these functions:
//   f(name, value, about)                 a number, a flag, a text, or a list of them
//   f.word(name, value, words, about)     an enumerator by its name
//   f.sizes(name, list, about)            the sizes of a shape or of a box
//   f.list<schema>(name, list, about)     a list of structs
//   f.one<schema>(name, struct, about)    one struct
//   f.optional(name, is_there, list)      fields that may be absent: the last of a line, one of an object
//   f.nullable(name, is_there, list)      a field that may be null
//   f.when(condition, text, list)         fields that belong to some of the objects
//   f.expect(condition, text)             a rule for the values
//   f.named(kind, name)                   the name of the struct in sentences about it
#pragma once
#include "document.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace rankc::codegen::schema {

template <class T>
inline constexpr bool is_read = !std::is_const_v<std::remove_reference_t<T>>;

inline constexpr const char* op_kind_names[]{"begin", "compute", "send", "receive", "collective", "end"};
inline constexpr const char* target_names[]{"cuda", "host"};
inline constexpr const char* use_names[]{"in", "out", "add"};
inline constexpr const char* scaling_names[]{"none", "linear", "llama3", "yarn"};
inline constexpr const char* step_names[]{"train", "evaluate"};

/// True if a product of sizes, and its bytes, fit into every type that counts them.
inline bool is_countable(const auto& sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(std::max<std::int64_t>(size, 1));
  return product <= 0x1p50;
}
inline constexpr const char* countable_text = "2^50 elements at most";

struct read_schema {
  static constexpr const char* what = "a read";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& a) {
    f("begin", a.begin, "first byte in the arena");
    f("end", a.end, "the byte behind the last");
    f("value", a.value, "name of the contents, a number of the program");
    f.word("type", a.type, element_type_names, "type of the elements");
  }
};

struct write_schema {
  static constexpr const char* what = "a write";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& a) {
    read_schema::list(f, a);
    f("replaces", a.replaces, "the read of the op, by index, whose bytes are written over; -1: none");
  }
};

inline void list_balance(auto& f, auto& balance) {
  f("rate", balance.rate, "by which a step moves the bias of a router's choice");
  f("mean", balance.mean, "number of choices toward which it moves it");
  f.expect(balance.rate > 0 && balance.mean > 0, "a rate and a mean above 0");
}

struct view_schema {
  static constexpr const char* what = "a view";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& v) {
    int use = v.written ? 1 + v.adds : 0;
    f("port", v.port, "name of a port of the op's row");
    f.word("use", use, use_names, "whether the port is read, written, or added to");
    f("first", v.accesses.first, "index of the first read or write that the tensor lies in");
    f("count", v.accesses.count, "number of reads or writes that the tensor lies in");
    f("offset", v.offset, "where the tensor begins, in bytes from the begin of the first");
    f.sizes("shape", v.shape, "sizes of the tensor on this rank");
    f("unit", v.unit, "elements of a unit (a head) of the dim that the port has in units");
    f("stride", v.stride, "elements from one row to the next");
    const std::int64_t rows = v.shape.size() == 2 ? v.shape[0] : 1;
    f.expect(is_countable(v.shape) && is_countable(std::array{rows, v.stride}), countable_text);
    f.optional("balance", v.balances.any(), [&] { list_balance(f, v.balances); });
    if constexpr (is_read<decltype(v)>) {
      v.written = use > 0;
      v.adds = use == 2;
    }
  }
};

struct scaling_schema {
  static constexpr const char* what = "a scaling of rotary positions";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& s) {
    f.word("rule", s.by, scaling_names, "how rotary positions are slowed");
    f("factor", s.factor, "by which they are slowed");
    f("low_freq_factor", s.low_freq_factor, "parameter of llama3 and yarn");
    f("high_freq_factor", s.high_freq_factor, "parameter of llama3 and yarn");
    f("original_positions", s.original_positions, "parameter of llama3 and yarn");
    f.optional("share", s.share != 1,
               [&] { f("share", s.share, "share of the elements of a head that turn"); });
    f.expect(!s.is_plain(), "the rule linear, llama3 or yarn, or a share other than 1");
  }
};

struct attention_schema {
  static constexpr const char* what = "a setting of attention";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& s) {
    f("window", s.window, "number of keys that a query sees, the last of which is its own; 0: all");
    f("softcap", s.softcap, "scores are softcap tanh(score / softcap); 0: none");
    f("scale", s.scale, "factor of products of queries and keys; 0: 1 / sqrt(head dim)");
    f.optional("causal", !s.causal,
               [&] { f("causal", s.causal, "false: a query sees all keys of its sequence"); });
    f.expect(s.window >= 0 && s.softcap >= 0 && s.scale >= 0 && !s.is_plain(),
             "numbers of at least 0, one of them above it, or causal false");
  }
};

struct holding_schema {
  static constexpr const char* what = "a holding";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& h) {
    f.word("kind", h.kind, holding_names, "what the tensor is");
    f("name", h.name, "the parameter's name in the model; empty: the tensor is of no parameter");
    f.sizes("box", h.box, "sizes of the part of the model's tensor that the rank holds");
    f("positions", h.positions, "positions of a rotary table; 0: another tensor");
    f("dim", h.dim, "elements of a head in a rotary table; 0: another tensor");
    f.expect(is_countable(std::array{h.positions, h.dim}), countable_text);
    f("theta", h.theta, "base of a rotary table; 0: another tensor");
    f.optional("scaling", !h.scaling.is_plain(),
               [&] { f.template one<scaling_schema>("scaling", h.scaling, "scaling of a rotary table"); });
  }
};

struct op_schema {
  static constexpr const char* what = "an op";
  static constexpr bool is_line = false, own_line = true;
  static void list(auto& f, auto& o) {
    f("name", o.name, "the op's name, the same on all members of a communication");
    f.named("op", o.name);
    f.word("kind", o.kind, op_kind_names, "kind of the op");
    f("stream", o.stream, "index of the lane that the op is issued on");
    f("waits", o.waits, "indices of ops whose end the op waits for, beside the op before it on its lane");
    f.template list<read_schema>("reads", o.reads, "what the op reads");
    f.template list<write_schema>("writes", o.writes, "what the op writes");
    f.template list<view_schema>("views", o.views,
                                 "the tensors that its kernel is given, in the order of the row's ports");
    f.when(o.kind == op_kind::begin || o.kind == op_kind::end, "begin, end", [&] {
      f.template list<holding_schema>("holds", o.holds,
                                      "the tensor of each write of begin, or of each read of end");
    });
    f.when(o.kind != op_kind::begin && o.kind != op_kind::end, "all others", [&] {
      f("operands", o.operands,
        "first bytes of the call's operands, in the order of its arguments; empty: the text makes no call");
    });
    f.when(o.kind == op_kind::compute, "compute", [&] { list_kernel(f, o); });
    f.when(communicates(o), "send, receive, collective", [&] { list_communication(f, o); });
    f("position", o.position,
      "position in one order of all ranks' ops; a send and its receive, or the members of a collective, "
      "share one");
  }

 private:
  static void list_kernel(auto& f, auto& o) {
    f("row", o.row, "name of the row in the table of facts; empty: the op has no kernel");
    f("rows", o.rows, "the row's attribute of this name");
    f("seq", o.seq, "tokens of a sequence; 0: the row does not ask for them");
    f.expect(is_countable(std::array{o.rows, o.seq}), countable_text);
    f("number", o.number, "number that the kernel is given; 0: none");
    f.optional("attention", !o.attention.is_plain(), [&] {
      f.template one<attention_schema>("attention", o.attention,
                                       "window, softcap, scale and causal of attention");
    });
    f("given", o.given,
      "sizes and the number that the call names, in its order, and the numbers of its `attention`");
  }
  static void list_communication(auto& f, auto& o) {
    f("communicator", o.communicator, "index into the `communicators` of the rank that runs the program");
    f("bytes", o.bytes, "bytes that each rank gives, or gets from a reduce_scatter");
    f("message", o.message, "number of the call site, the same on all members");
    f.when(is_message(o), "send, receive",
           [&] { f("peer", o.peer, "index of the other rank in the communicator"); });
    f.when(o.kind == op_kind::collective, "collective", [&] { list_collective(f, o); });
  }
  static void list_collective(auto& f, auto& o) {
    f.word("does", o.does, collective_kind_names, "which collective it is");
    f("in_bf16", o.in_bf16, "whether f32 parts of a sum are sent in bf16");
    f("by_rows", o.by_rows, "distance to the product with which it is row-pipelined, in ops; 0: none");
    f.expect(o.by_rows >= 0 && o.by_rows <= 2, "by_rows 0, 1 or 2");
    f.when(o.does == collective_kind::all_to_all, "all_to_all",
           [&] { f("seq", o.seq, "tokens of a sequence"); });
    f.when(exchanges_slots(o.does), "to_experts, from_experts, share_offsets, gather_offsets",
           [&] { f("rows", o.rows, "rows of a slab of expert slots"); });
  }
};

struct program_schema {
  static constexpr const char* what = "a program";
  static constexpr bool is_line = false, own_line = true;
  static void list(auto& f, auto& p) {
    f("arena_bytes", p.arena_bytes, "size of the arena of a rank that runs the program");
    f.template list<op_schema>("ops", p.ops, "the ops in issue order");
  }
};

struct run_schema {
  static constexpr const char* what = "a run of numbers";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& r) {
    f("first", r.first, "a number");
    f("count", r.count, "how many numbers the run has: rising by one (values), or all equal (firsts)");
    f.expect(r.count > 0, "a count above 0");
  }
};

struct rank_schema {
  static constexpr const char* what = "a rank";
  static constexpr bool is_line = false, own_line = true;
  static void list(auto& f, auto& r) {
    f("rank", r.number, "the rank's number in the world");
    f("program", r.program, "index of its program");
    f("communicators", r.communicators,
      "indices of its communicators, in the order of the program's numbers");
    f.template list<run_schema>("values", r.value_runs, "its values, in the order of the program's numbers");
    f.template list<run_schema>(
        "firsts", r.first_runs,
        "where its shards begin: of each op's views the first word or expert, then of its boxes each dim");
  }
};

struct communicator_schema {
  static constexpr const char* what = "a communicator";
  static constexpr bool is_line = false, own_line = true;
  static void list(auto& f, auto& c) {
    f("name", c.name, "its axis, and its place along the other axes");
    f("ranks", c.ranks, "indices of the members, in the order of NCCL's ranks");
    f("size", c.size, "number of members in the world; the step may have some of them");
    f("one_layout", c.one_layout, "whether operands lie at equal offsets of the members' arenas");
    f("along", c.along, "indices of the world's axes along which members are left out");
  }
};

struct axis_schema {
  static constexpr const char* what = "an axis";
  static constexpr bool is_line = true, own_line = false;
  static void list(auto& f, auto& a) {
    f("name", a.name, "name of the axis");
    f("size", a.size, "ranks along the axis");
    f("listed", a.listed,
      "number of indices along the axis that the steps have; the ranks at the others are like the last of "
      "these");
  }
};

struct step_schema {
  static constexpr const char* what = "a step";
  static constexpr bool is_line = false, own_line = true;
  static void list(auto& f, auto& s) {
    int target = s.calls.on_host;
    f.word("step", s.name, step_names, "which step it is");
    f.word("kernels", target, target_names, "the target");
    f("deterministic", s.calls.deterministic, "whether the kernels sum in a fixed order");
    f("streams", s.streams, "number of lanes of a rank");
    f.template list<communicator_schema>("communicators", s.communicators,
                                         "the communicators in the order of their creation");
    f.template list<program_schema>("programs", s.programs, "the programs, each once");
    f.template list<rank_schema>("ranks", s.ranks, "the ranks in rising order");
    if constexpr (is_read<decltype(s)>) s.calls.on_host = target != 0;
  }
};

}  // namespace rankc::codegen::schema
