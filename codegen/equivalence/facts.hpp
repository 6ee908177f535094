// SPDX-License-Identifier: Apache-2.0
// Facts of mathematics about each op: which elements of its operands an element of a result depends on, in
// which operands the op is linear, the axes over which it sums, and its derivative. The equivalence check
// trusts these facts. None comes from the table of ops that lowering uses.
#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen::algebra {

/// A line of the table, as it is written.
///
/// `ports`: the results and operands in the order of the row's ports, without scratch. Each has its axes:
/// "y(t o) x(t i)". Equal letters are the same elements of an axis. "h*d" is whole heads of d elements. A
/// digit is a size.
///   "+dw(o i)"     the kernel can add to the contents of the buffer; an op adds to all such results or to
///                  none.
///   "x(t w):s"     rows may have a stride; the stride is the same in all ports with one letter; the rows of
///                  other ports are contiguous.
///   "q(t w)/e4m3"  elements of that type: fp8 (e4m3, e5m2, e4m3_rows), or integers (i32); "q(t w)/e4m3:s":
///                  the same, with a stride.
///   "s(t 2)/wide"  elements of f32, or of f64 where the kernel computes in f64; all ports with no type have
///                  one of bf16, f32 and f64, in which the kernel computes.
///   "y(t w)^x,r"   the result may overwrite one of these operands; no other results and operands overlap.
///
/// `rule`: an equation for each result, with ';' between them.
///   "y = sum(i) x' w'"    a function of operands, summed over the axes in brackets, if there are any; it is
///                         linear in each operand with a mark.
///   "top = max(v) x"      the maximum over an axis.
///   "o = parts(j) q k v"  a softmax over the keys j, or its log-sum-exp, computed for some keys at a time;
///                         its scores are of the first two operands.
///   "o = merge(a b) x y"  the result over the keys of both of two such parts x and y, whose log-sum-exps are
///                         a and b.
///   "y = x + b"           the sum of operands; one with other axes than the result is repeated along the
///                         rest, or is a part of the result.
///   "y = number * x"      a multiple by the op's number; "y = 1 * x" is x itself.
///   "y = 0"               zeros.
///   "u = linear(x, w)"    the results of another row, in order, from these operands; names that are no ports
///                         are intermediate.
///
/// `needs`: conditions on the elements of operands, in words:
///   "whole(w)"     the operands have all elements of the axis.
///   "first(v)"     the op gets the index of the first element of its part of the axis, and the part begins
///                  there.
///   "positions"    element i of axis t is at the sequence position that the op assumes for index first + i.
///   "listed"       the same, where the positions are those of the table's rows, repeated.
///   "sequences"    axis t is `rows` whole sequences of `seq` tokens.
///   "chunks"       axis t is a rank's chunks of such sequences, or a part of these, and the op's number is
///                  the number of ranks; axis u, if there is one, is the whole sequences, rank after rank;
///                  first determines the rank.
///   "ring"         axis t is a rank's chunks of such sequences, and u those of the rank that is `number`
///                  places before it in their ring; first determines the rank of t.
///   "documents"    axis n is all tokens of `rows` such sequences, in the order of their positions; the
///                  tokens of axis t are among them, at the places that the op assumes.
///   "shares"       axis t has the same number of tokens from each of `rows` sequences of `seq` tokens;
///                  log-sum-exps are results of an op of such sequences.
///   "like R"       its results are row R's.
///   "arranges"     its results give the order of the chosen expert slots: "t*l" is l slots of each token, in
///                  this order.
///   "owns"         the same, for the slots of the experts of axis g only.
///   "by(places)"   slots are in the order that this operand gives. An operand that is a sum over tokens,
///                  such as offsets, is over the tokens of these slots only. An exchange determines the order
///                  of the slots that it moves. Results for tokens that are computed from the slots of some
///                  experts are parts of a sum over experts.
///   "segments"     axis g is segments of slots, which belong to the experts of axis r: to all experts, or to
///                  those whose slots a member of an exchange received.
///   "grouped"      axis m is groups of `seq` tokens each, in their order, and axis t is tokens of one group;
///                  a sum over t is over the tokens of the group.
///   "pooled"       axis m is `rows` sequences of `seq` tokens, and axis t has tokens of each, at the same
///                  positions; a sum over p is over these positions.
///   "counts"       its results are integers computed from integers: no gradient passes through them.
///   "commutative"  the two operands may be swapped.
///   "groups"       each head of axis k comes with all heads of axis h that use it.
///   "scratch"      a user's kernel takes scratch, of a size that the check does not know.
///   "converts"     the row occurs in models and moves data between ranks: no kernel computes it.
///   "modelled"     the row occurs only in models, and programs have the ops of its rule.
///
/// `attributes`: which of "seq", "number", "attention" (window, softcap, scale, causal) a result depends on,
/// and "parts": the sizes of axes l and r. A result always depends on the sizes of the row's units: on d of
/// "h*d".
///
/// `gradients`: the gradient of each operand, by other rows, from ports and from gradients of results, such
/// as "dy" of y. Operands that it does not name have no gradient. A result whose gradient it does not use
/// must not get one. Names that begin with '_' are intermediate: "_0 = mul(dy, b); a = scale(_0)".
struct line {
  const char *row, *ports, *rule, *needs = "", *attributes = "", *gradients = "";
};
std::span<const line> table();

// ---- the same, read

struct axis_use {
  char of = 0;    // letter, or digit of a size
  char unit = 0;  // "h*d": d
  bool operator==(const axis_use&) const = default;
};
struct port {
  std::string name;
  std::vector<axis_use> axes;
  bool adds = false;
  char stride = 0;
  std::vector<std::string> over;
  std::string holds;         // the type of its elements: fp8, or i32; empty: neither
  bool by_heads = false;     // log-sum-exps: those of a rank's tokens of one sequence are stored head by head
  bool is_wide = false;      // elements of f32, or of f64 where the kernel computes in f64
  bool sums_tokens = false;  // a result that is a sum over tokens
  bool is_fp8() const { return !holds.empty() && holds != "i32"; }
};

/// How parts over an axis are combined.
enum class joining { sum, maximum, softmax };

/// Part of an equation. Names are given by index: first the ports, then the intermediates.
struct equation {
  enum class kind { function, sum, multiple, zero, merge, call } is = kind::function;
  std::vector<int> results;  // one; for a call, all results of its row
  std::vector<int> operands;
  std::vector<bool> linear;    // for each operand
  std::vector<bool> same;      // for a sum: whether the operand has the result's axes
  std::string over;            // letters of the axes summed over
  joining how = joining::sum;  // the reduction over these axes
  std::vector<int> weights;    // for a merge: the log-sum-exp of each operand
  int row = -1;                // for a call
};
/// An operand of a derivative: a port, the gradient of a port, or an intermediate. Intermediates are numbered
/// after the ports.
struct factor {
  int port = -1;
  bool gradient = false;
};
/// Gradients of operands, or intermediates: the results of a row. Without a row, another gradient itself.
struct derivative {
  std::vector<int> of;
  int row = -1;
  std::vector<factor> from;
};

inline constexpr std::size_t max_letters = 9;  // in one row

struct fact {
  std::string row;
  std::array<unsigned char, 26> place{};  // by letter: its index among the letters of the row
  std::vector<port> ports;
  int results = 0;                 // the first ports; the others are operands
  std::vector<std::string> names;  // ports, then intermediates
  std::vector<equation> equations;
  std::string whole, first;  // letters
  bool positions = false, listed = false, sequences = false, documents = false, chunks = false, ring = false,
       shares = false, groups = false, commutative = false, arranges = false, owns = false, grouped = false,
       pooled = false, segments = false, counts = false, converts = false, modelled = false, scratch = false,
       of_user = false;
  int by = -1;                               // the operand that gives the order of slots; -1: none
  std::vector<std::string> needs;            // their words
  std::vector<std::string> numbers_of_call;  // the words of call_numbers.hpp
  bool seq = false, number = false, parts = false, attention = false;
  std::string sizes;  // letters of units and of parts: a result's term contains their sizes
  bool reads_rows = false, reads_seq = false, reads_number = false;  // attributes that the op's checks read
  std::vector<derivative> derivatives;
  std::vector<std::string> intermediates;  // names in derivatives
  unsigned long long key = 0;  // the hash of the row's name, or of the name of the row that it is like
};

/// The index of a row in facts(); -1 for an unknown row.
int find_fact(std::string_view row);
const std::vector<fact>& facts();
/// The facts of these lines, appended to the facts of other rows that the lines may name.
/// Errors: refusal, with the row and the word, where a line is not as struct line says.
std::vector<fact> read_facts(std::span<const line>, std::vector<fact> before = {});

}  // namespace rankc::codegen::algebra
