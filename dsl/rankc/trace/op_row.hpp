// SPDX-License-Identifier: Apache-2.0
// The row of an op. Typing, autodiff, selection, storage, fusion, costs and printing read everything that
// they need of an op from its row. A row is identified by its address.
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

/// How a kernel uses one of its operands.
enum class use : unsigned char {
  none,
  in,         // a value that it reads
  parameter,  // a parameter of the layer that it reads
  rotary,     // the cosines and sines of rotary positions, of the op's seq and theta
  out,        // a value that it writes
  sum,        // a sum over microbatches that it writes, or adds to: a parameter's gradient, the loss
  scratch,    // memory that holds nothing before and after
};

/// One dim of an operand, in symbols that the operands of a row share: "tokens", "heads*dim" (whole units of
/// so many elements), "vocab@first" (this rank's part begins there), or a number. Equal symbols are equal
/// sizes.
struct port_dim {
  std::string_view count = "", unit = "", first = "";
  int number = 0;             // where it is one
  unsigned long long id = 0;  // of count and unit: compilers compare numbers faster than text
};

/// "tokens heads*dim : stride": the dims, and what the distance between two rows is called where they may lie
/// apart.
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
  /// The letters before what ends them, which are passed.
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
  bool adds = false;  // an output that the kernel can add to what is there, as its last argument says
  std::string_view may_replace[2]{"", ""};  // inputs of its size whose memory it may be written to

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

/// The words in which rows list their ports.
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

/// What a plan says of the kernels of all ops. Units: bytes, of an activation.
struct kernel_setting {
  std::size_t element;
  bool deterministic;
};

/// A kernel of one target: a function template over the type of activations. It takes the rank, the operands
/// in the order of the ports, the sizes, and whether to add where a port can.
struct kernel_row {
  std::string_view name = "";
  // Symbols of the ports, products of them ("tokens*width"), the op's `number`, `cp`, the degree of cp, and
  // `ring`, the ranks of a ring.
  std::string_view sizes = "";
  std::size_t (*scratch)(const op_sizes&, const kernel_setting&) = nullptr;  // bytes of the scratch operand

  /// Whether the kernel takes a symbol, alone or in a product.
  constexpr bool takes(std::string_view symbol) const {
    for (std::string_view rest = sizes; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find_first_of(" *"));
      if (word == symbol) return true;
      rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
    }
    return false;
  }
};

/// A change of placement alone, and how it is made.
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

/// What recomputation by kinds of ops takes an op for.
enum class op_family : unsigned char { none, attention, activation, norm };
inline constexpr int n_op_families = 4;

inline constexpr int max_ports = 11, max_inputs = 7, max_outputs = 3;

/// Its kernels are named as the row is, and take `sizes`, where nothing else is given. A row without any
/// sizes has no kernel, unless it communicates.
struct op_row {
  std::string_view name;
  port ports[max_ports]{};
  // Fills the types of the outputs, or complains.
  void (*rule)(complaint&, types inputs, type* outputs, const op&) = nullptr;
  void (*dual)(backward&) = nullptr;           // appends the backward ops
  double (*flops)(const op_sizes&) = nullptr;  // none: it counts as no work
  std::string_view kernel = "";                // the name of its kernels where it is not the row's
  std::string_view sizes = "";                 // what its kernels take behind their operands
  kernel_row host{}, cuda{};                   // where the kernel of one target differs
  std::string_view header = "";                // declares the kernels; those of the runtime need none
  conversion converts = conversion::none;
  bool commutative = false;  // in its two inputs
  bool by_rows = false;      // a product whose every output row depends on one row of each input
  op_family family = op_family::none;
  number_attribute number{};  // the number of the op, if it has one
  bool of_rings = false;   // takes rows received from another rank of a ring, or heads sharded inside a ring
  bool of_groups = false;  // its seq is the tokens of a group, and its rows all groups of the rank
  const op_row* in_chunks = nullptr;  // the row for sequences that cp shards; it has the same operands

  constexpr double flops_of(const op_sizes& s) const { return flops ? flops(s) : 0; }
  /// The kernel of the host, or of GPUs; without a name where there is none.
  constexpr kernel_row on_host() const { return complete(host); }
  constexpr kernel_row on_cuda() const { return complete(cuda); }
  /// Whether the kernel of either target takes a symbol.
  constexpr bool takes(std::string_view symbol) const {
    return on_host().takes(symbol) || on_cuda().takes(symbol);
  }
  constexpr bool communicates() const { return converts > conversion::replicate; }
  constexpr int count_ports() const {
    int n = 0;
    while (n < max_ports && ports[n].as != use::none) ++n;
    return n;
  }
  constexpr std::span<const port> used_ports() const {
    return {ports, static_cast<std::size_t>(count_ports())};
  }
  /// Index of a port; -1 where none has the name.
  constexpr int find(std::string_view port_name) const {
    for (int p = 0; p < max_ports && ports[p].as != use::none; ++p)
      if (ports[p].name == port_name) return p;
    return -1;
  }
  /// How many values an op of this row reads, or writes.
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

/// Two nodes that become one. Equal names are equal values, and the two have one in common; each list names
/// the operands of its op in the order of the ports, scratch left out. A value that `into` does not name must
/// be used by the two alone, and is gone afterwards.
struct fusion {
  struct side {
    const op_row* kind;
    std::string_view operands;
  };
  side first, second, into;
};

/// A name that a row has not; in a constant expression the compiler stops there.
struct no_such_name {
  std::string_view name;
};

/// The sizes of an op's symbols.
class op_sizes {
 public:
  constexpr explicit op_sizes(const op_row& row) : row_(row) {}
  /// Take what a port's dim has: whole units, elements of a unit.
  constexpr void bind(int port, int dim, long long count, long long unit) {
    dims_[port][dim] = {count, unit};
  }
  constexpr void bind_attributes(long long rows, long long seq, long long ring) {
    rows_ = rows;
    seq_ = seq;
    ring_ = ring;
  }
  /// Errors: no_such_name where no port has the symbol.
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
  long long rows_ = 0, seq_ = 0, ring_ = 0;
};

/// The dual of an op through which no gradient flows.
constexpr void stop_gradient(backward&) {}

}  // namespace rankc
