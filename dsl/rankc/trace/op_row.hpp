// SPDX-License-Identifier: Apache-2.0
// The row of an op. Typing, autodiff, lowering, fusion, the cost model and printing take all properties of an
// op from its row. A row is identified by its address.
#pragma once
#include <rankc/trace/attributes.hpp>

#include <cstddef>
#include <span>

namespace rankc {

struct complaint;
struct op;
struct backward;
class op_sizes;
using types = std::span<const type>;

/// How a kernel uses an operand.
enum class use : unsigned char {
  none,
  in,         // reads a value
  parameter,  // reads a parameter of the layer
  rotary,     // reads the cosines and sines of rotary positions, for the op's seq and theta
  out,        // writes a value
  sum,        // writes a sum over microbatches, or adds to it: a parameter's gradient, the loss
  scratch,    // workspace, without contents before and after
};

/// One dim of an operand, in symbols that a row's operands share. "tokens"; "heads*dim": `heads` units of
/// `dim` elements; "vocab@first": the rank's shard of vocab, which starts at index `first`; or a number.
/// Equal symbols must have equal sizes.
struct port_dim {
  std::string_view count = "", unit = "", first = "";
  int number = 0;             // the size if the dim is a number; else 0
  unsigned long long id = 0;  // hash of count and unit: constant evaluation compares numbers faster than text
};

/// A shape such as "tokens heads*dim : stride". The word after ':' is the symbol for the distance between
/// rows, which may be larger than a row.
struct port_shape {
  port_dim dim[2]{};
  int ndim = 0;
  std::string_view stride = "";

  constexpr port_shape() = default;
  constexpr port_shape(const char* text) {
    const char* at = text;
    while (*at) {
      if (*at == ' ') ++at;
      else if (*at == ':') stride = word(at += 2);
      else dim[ndim++] = parse(at);
    }
  }

 private:
  static constexpr bool ends(char c) { return c == '\0' || c == ' ' || c == '*' || c == '@'; }
  /// Reads the letters up to the next separator and moves `at` past them.
  static constexpr std::string_view word(const char*& at) {
    const char* const begin = at;
    while (!ends(*at)) ++at;
    return {begin, static_cast<std::size_t>(at - begin)};
  }
  static constexpr port_dim parse(const char*& at) {
    port_dim d;
    const char* const begin = at;
    if (*at >= '0' && *at <= '9') {
      for (; !ends(*at); ++at) d.number = 10 * d.number + (*at - '0');
      return d;
    }
    d.count = word(at);
    if (*at == '*') d.unit = word(++at);
    d.id = 0xCBF29CE484222325ull;  // FNV-1a
    for (const char* c = begin; c != at; ++c)
      d.id = (d.id ^ static_cast<unsigned char>(*c)) * 0x100000001B3ull;
    if (*at == '@') d.first = word(++at);
    return d;
  }
};

/// One operand of a kernel.
struct port {
  std::string_view name = "";
  use as = use::none;
  port_shape shape{};
  element holds = element::real;
  bool adds = false;  // the kernel can add to this output; its last argument tells it to
  std::string_view may_replace[2]{"", ""};  // inputs of the same size that this output may overwrite

  constexpr bool is_read() const { return as == use::in || as == use::parameter || as == use::rotary; }
  constexpr bool is_written() const { return as == use::out || as == use::sum; }
  constexpr bool is_traced() const { return is_written() || as == use::in || as == use::parameter; }
  constexpr port wide() const { return with_element(element::wide); }
  constexpr port index() const { return with_element(element::index); }
  constexpr port e4m3() const { return with_element(element::e4m3); }
  constexpr port e5m2() const { return with_element(element::e5m2); }
  constexpr port over(std::string_view a, std::string_view b = {}) const {
    port p = *this;
    p.may_replace[0] = a;
    p.may_replace[1] = b;
    return p;
  }
  constexpr port adding() const {
    port p = *this;
    p.adds = true;
    return p;
  }

 private:
  constexpr port with_element(element e) const {
    port p = *this;
    p.holds = e;
    return p;
  }
};

/// Constructors for the ports of a row.
namespace ports {
constexpr port in(std::string_view name, port_shape s) { return {name, use::in, s}; }
constexpr port parameter(std::string_view name, port_shape s) { return {name, use::parameter, s}; }
constexpr port rotary(std::string_view name, port_shape s) { return port{name, use::rotary, s}.wide(); }
constexpr port out(std::string_view name, port_shape s) { return {name, use::out, s}; }
constexpr port sum(std::string_view name, port_shape s) { return port{name, use::sum, s}.wide(); }
constexpr port scratch(std::string_view name) { return {name, use::scratch}; }
}  // namespace ports

namespace ops {
using ports::in, ports::out, ports::parameter, ports::rotary, ports::scratch, ports::sum;
}  // namespace ops

/// The properties of a plan that the sizes of scratch depend on.
/// Units: element in bytes of an activation.
struct kernel_setting {
  std::size_t element;
  bool deterministic;
};

/// A kernel for one target: a function template over the type of activations. Its arguments are the rank's
/// lane, the operands in the order of the ports, the sizes, and a flag to add to an output if a port has
/// `adds`.
struct kernel_row {
  std::string_view name = "";
  // The size arguments: symbols of the ports, products such as "tokens*width", `number` (of the op), `cp`
  // (the degree) and `ring` (ranks of a ring).
  std::string_view sizes = "";
  std::size_t (*scratch)(const op_sizes&, const kernel_setting&) = nullptr;  // bytes of the scratch operand

  /// True if the kernel takes a symbol, alone or in a product.
  constexpr bool takes(std::string_view symbol) const {
    for (std::string_view rest = sizes; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find_first_of(" *"));
      if (word == symbol) return true;
      rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
    }
    return false;
  }
};

/// The communication of an op that changes placements; none: an ordinary op.
enum class conversion : unsigned char {
  none,
  replicate,
  all_reduce,
  all_reduce_max,
  all_reduce_batch,
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

/// The family of an op in selective recomputation.
enum class op_family : unsigned char { none, attention, activation, norm };
inline constexpr int n_op_families = 4;

inline constexpr int max_ports = 11, max_inputs = 7, max_outputs = 3;

/// An op: its ports, typing rule, backward rule, cost and kernels. The kernels of both targets have the row's
/// name and `sizes` unless other members override them. A row without sizes has no kernel, unless it
/// communicates.
struct op_row {
  std::string_view name;
  port ports[max_ports]{};
  // Sets the types of the outputs, or complains.
  void (*rule)(complaint&, types inputs, type* outputs, const op&) = nullptr;
  void (*dual)(backward&) = nullptr;           // appends the backward ops
  double (*flops)(const op_sizes&) = nullptr;  // nullptr: not counted
  std::string_view kernel = "";                // the kernel's name, if not the row's
  std::string_view sizes = "";                 // the size arguments of both targets' kernels
  kernel_row host{}, cuda{};                   // overrides for one target
  std::string_view header = "";                // the header with the kernels; empty for those of the runtime
  conversion converts = conversion::none;
  bool commutative = false;  // the two inputs commute
  bool by_rows = false;  // a GEMM: each output row depends on one row of each input, so it can run in parts
  op_family family = op_family::none;
  number_attribute number{};  // the number of the op, if it has one
  bool of_rings = false;  // takes rows received from another rank of a ring, or heads sharded inside a ring
  // `seq` is the length of a capacity group; `rows` is the number of groups on the rank.
  bool of_groups = false;
  const op_row* in_chunks = nullptr;  // the row for sequences sharded over cp; same operands

  constexpr double flops_of(const op_sizes& s) const { return flops ? flops(s) : 0; }
  /// The kernel for the host or for GPUs; its name is empty if there is none.
  constexpr kernel_row on_host() const { return complete(host); }
  constexpr kernel_row on_cuda() const { return complete(cuda); }
  /// True if the kernel of either target takes a symbol.
  constexpr bool takes(std::string_view symbol) const {
    return on_host().takes(symbol) || on_cuda().takes(symbol);
  }
  constexpr bool communicates() const { return converts > conversion::replicate; }
  /// True if it sends two tensors to a neighbour in a ring, and receives two.
  constexpr bool is_shift() const {
    return converts == conversion::shift || converts == conversion::shift_back;
  }
  constexpr int count_ports() const {
    int n = 0;
    while (n < max_ports && ports[n].as != use::none) ++n;
    return n;
  }
  constexpr std::span<const port> used_ports() const {
    return {ports, static_cast<std::size_t>(count_ports())};
  }
  /// Index of a port; -1 if no port has the name.
  constexpr int find(std::string_view port_name) const {
    for (int p = 0; p < max_ports && ports[p].as != use::none; ++p)
      if (ports[p].name == port_name) return p;
    return -1;
  }
  /// The number of values that an op of this row writes, or reads.
  constexpr int count(bool written) const {
    int n = 0;
    for (const port& p : used_ports()) n += p.is_traced() && p.is_written() == written;
    return n;
  }

 private:
  constexpr kernel_row complete(kernel_row k) const {
    if (k.sizes.empty()) k.sizes = sizes;
    if (k.name.empty() && (!k.sizes.empty() || communicates())) k.name = kernel.empty() ? name : kernel;
    return k;
  }
};

/// A pair of nodes that can be replaced by one. Each list names the operands of an op in port order, without
/// scratch. Equal names must be equal values, and the pair shares at least one. A value that `into` does not
/// name must be used by the pair only; it is removed.
struct fusion {
  struct side {
    const op_row* kind;
    std::string_view operands;
  };
  side first, second, into;
};

/// Thrown for a name that the row does not have. In a constant expression it stops compilation.
struct no_such_name {
  std::string_view name;
};

/// The sizes of the symbols of one op.
class op_sizes {
 public:
  constexpr explicit op_sizes(const op_row& row) : row_(row) {}
  /// Sets the size of a port's dim: the number of units, and the elements of a unit.
  constexpr void bind(int port, int dim, long long count, long long unit) {
    dims_[port][dim] = {count, unit};
  }
  constexpr void bind_attributes(long long rows, long long seq, long long ring,
                                 const attention_setting& attention = {}) {
    rows_ = rows;
    seq_ = seq;
    ring_ = ring;
    window_ = attention.window;
    causal_ = attention.causal;
  }
  constexpr bool is_causal() const { return causal_; }
  /// The number of keys that a query of attention sees, at most.
  constexpr long long window() const { return window_ > 0 && window_ < seq_ ? window_ : seq_; }
  /// Errors: no_such_name if no port has the symbol.
  constexpr double operator()(std::string_view symbol) const {
    if (symbol == "rows") return static_cast<double>(rows_);
    if (symbol == "seq") return static_cast<double>(seq_);
    if (symbol == "ring") return static_cast<double>(ring_);
    for (int p = 0; p < row_.count_ports(); ++p)
      for (int d = 0; d < row_.ports[p].shape.ndim; ++d) {
        const port_dim& s = row_.ports[p].shape.dim[d];
        if (s.count == symbol)
          return static_cast<double>(dims_[p][d].count * (s.unit.empty() ? dims_[p][d].unit : 1));
        if (s.unit == symbol) return static_cast<double>(dims_[p][d].unit);
      }
    throw no_such_name{symbol};
  }

 private:
  struct bound {
    long long count = 1, unit = 1;
  };
  const op_row& row_;
  bound dims_[max_ports][2]{};
  long long rows_ = 0, seq_ = 0, ring_ = 0, window_ = 0;
  bool causal_ = true;
};

/// The backward rule of an op through which no gradient flows.
constexpr void stop_gradient(backward&) {}

}  // namespace rankc
