// SPDX-License-Identifier: Apache-2.0
// Facts of mathematics about each op: the elements of its operands that an element of a result is made of,
// the operands in which it is linear, the axes over which it sums, and its derivative. The equivalence check
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
/// "y(t o) x(t i)". Equal letters are the same elements of an axis. "h*d" are whole heads of d elements. A
/// digit is a size.
///   "+dw(o i)"     the kernel can add to what is there; all such results of an op are added to, or none is
///   "x(t w):s"     rows may lie apart; the stride is the same in all ports with one letter; the rows of
///                  other ports are contiguous
///   "q(t w)/e4m3"  elements of that type: fp8 (e4m3, e5m2, e4m3_rows), or whole numbers (i32);
///                  "q(t w)/e4m3:s": the same, with a stride
///   "s(t 2)/wide"  elements of f32, or of f64 where the kernel computes in f64; all ports with no type have
///                  one of bf16, f32 and f64, in which the kernel computes
///   "y(t w)^x,r"   the result may overwrite one of these operands; all other results and operands lie apart
///
/// `rule`: an equation for each result, with ';' between them.
///   "y = sum(i) x' w'"    a function of operands, summed over the axes in brackets; with none, each element
///                         of the result is made alone; it is linear in each operand with a mark
///   "top = max(v) x"      the maximum over an axis
///   "o = parts(j) q k v"  a softmax over the keys j, or its log-sum-exp, made of some keys at a time; its
///                         scores are of the first two operands
///   "o = merge(a b) x y"  of two such parts x and y, whose log-sum-exps are a and b, the result over the
///                         keys of both
///   "y = x + b"           the sum of operands; one with other axes than the result is repeated along the
///                         rest, or is a part of the result
///   "y = number * x"      a multiple by the op's number; "y = 1 * x" is x itself
///   "y = 0"               zeros
///   "u = linear(x, w)"    the results of another row, in order, from these operands; names that are no ports
///                         are intermediate
///
/// `needs`: conditions on the elements of operands, in words:
///   "whole(w)"     all elements of the axis are there,
///   "first(v)"     the op takes the index at which its part of the axis begins, and the part begins there,
///   "positions"    element i of axis t is at the position of its sequence that the op takes it for: i counts
///                  from first on,
///   "listed"       the same, of positions that are those of the table's rows, repeated,
///   "sequences"    axis t is of whole sequences of the op's seq, as many as its rows,
///   "chunks"       axis t is of a rank's chunks of such sequences, or a part of these, where the op's number
///                  is the number of ranks; axis u, if there is one, is of the whole sequences, rank after
///                  rank; first says which rank's they are,
///   "ring"         axis t is of a rank's chunks of such sequences, and u of those of the rank that is the
///                  op's number before it in their ring; first says which rank's t are,
///   "documents"    axis n is of all tokens of such sequences, in the order of their positions, as many
///                  sequences as its rows; those of axis t are among them, where the op takes them to be,
///   "shares"       axis t has the same number of tokens of each of the op's sequences: they are of the op's
///                  seq, as many as its rows; log-sum-exps are results of an op of such sequences,
///   "like R"       its results are row R's,
///   "arranges"     its results say in which order the chosen slots of tokens lie: "t*l" are l slots of each
///                  token, in an order of their own,
///   "owns"         the same, of the slots of the experts of axis g alone,
///   "by(places)"   slots lie in the order of that operand. It is of the operand's tokens alone, where the
///                  result is a sum over tokens. Exchanged slots lie as the exchange put them. Results for
///                  tokens that are made of the slots of some experts are parts of a sum over experts,
///   "segments"     axis g is of segments of slots, of the experts of axis r: of all experts, or of those
///                  whose slots a member of an exchange has received,
///   "grouped"      axis m is of groups of the op's seq tokens each, in their order, and axis t of tokens of
///                  one group; a sum over t is over those of the group,
///   "pooled"       axis m is of sequences of the op's seq tokens, as many as its rows, and axis t has tokens
///                  of each, at the same positions; a sum over p is over these positions,
///   "counts"       its results are whole numbers, of whole numbers: no gradient passes through them,
///   "commutative"  the two operands may change places,
///   "groups"       each head of axis k is there with all heads of axis h that use it,
///   "scratch"      a user's kernel takes scratch, of a size that the check does not know,
///   "converts"     the row stands in models and moves data between ranks: no kernel computes it,
///   "modelled"     the row stands in models alone, and programs have the ops of its rule.
///
/// `attributes`: which of "seq", "number", "attention" (window, softcap, scale, causal) a result depends on,
/// and "parts": the sizes of axes l and r. A result always depends on the sizes of the row's units: on d of
/// "h*d".
///
/// `gradients`: the gradient of each operand, by other rows, made of ports and of gradients of results, as
/// "dy" of y. Operands that it does not name have no gradient. A result whose gradient it does not use must
/// have none. Names that begin with '_' are intermediate: "_0 = mul(dy, b); a = scale(_0)".
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
  bool by_heads = false;     // log-sum-exps: those of a sequence's tokens on a rank lie head by head
  bool is_wide = false;      // elements of f32, or of f64 where the kernel computes in it
  bool sums_tokens = false;  // a result that is a sum over tokens
  bool is_fp8() const { return !holds.empty() && holds != "i32"; }
};

/// How parts over an axis are put together.
enum class joining { sum, maximum, softmax };

/// Part of an equation. `at` are indices of names: first the ports, then what is between.
struct equation {
  enum class kind { function, sum, multiple, zero, merge, call } is = kind::function;
  std::vector<int> results;  // one; of a call: as many as its row has
  std::vector<int> operands;
  std::vector<bool> linear;    // of each operand
  std::vector<bool> same;      // of a sum: whether the operand has the result's axes
  std::string over;            // letters of the axes summed over
  joining how = joining::sum;  // of what is made over them
  std::vector<int> weights;    // of a merge: the log-sum-exp of each operand
  int row = -1;                // of a call
};
/// An operand of a derivative: a port, the gradient of one, or an intermediate, counted behind the ports.
struct factor {
  int port = -1;
  bool gradient = false;
};
/// Gradients of operands, or intermediates: the results of a row, or, without a row, another gradient itself.
struct derivative {
  std::vector<int> of;
  int row = -1;
  std::vector<factor> from;
};

inline constexpr std::size_t max_letters = 9;  // of a row

struct fact {
  std::string row;
  std::array<unsigned char, 26> place{};  // of each letter among those of the row
  std::vector<port> ports;
  int results = 0;                 // the first ports; the others are operands
  std::vector<std::string> names;  // of the ports, and what is between
  std::vector<equation> equations;
  std::string whole, first;  // letters
  bool positions = false, listed = false, sequences = false, documents = false, chunks = false, ring = false,
       shares = false, groups = false, commutative = false, arranges = false, owns = false, grouped = false,
       pooled = false, segments = false, counts = false, converts = false, modelled = false, scratch = false,
       of_user = false;
  int by = -1;                               // of an operand that says where slots lie
  std::vector<std::string> needs;            // their words
  std::vector<std::string> numbers_of_call;  // the words of call_numbers.hpp
  bool seq = false, number = false, parts = false, attention = false;
  std::string sizes;  // letters of which the size is in a result's term: those of units, and of parts
  bool reads_rows = false, reads_seq = false, reads_number = false;  // which attributes the op's checks read
  std::vector<derivative> derivatives;
  std::vector<std::string> intermediates;  // of derivatives
  unsigned long long key = 0;              // of the row's name, or of that which it is like
};

/// Index in facts() of a row; -1 where it has none.
int find_fact(std::string_view row);
const std::vector<fact>& facts();
/// A table of such lines, read, behind the facts of other rows that they may name.
/// Errors: refusal, with the row and the word, where a line is not as struct line says.
std::vector<fact> read_facts(std::span<const line>, std::vector<fact> before = {});

}  // namespace rankc::codegen::algebra
