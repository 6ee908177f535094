// SPDX-License-Identifier: Apache-2.0
// What an op is: one row. Everything that typing, autodiff, selection, storage, fusion, costs and printing ask of an op
// is a member of its row. A row is known by its address.
#pragma once
#include <rankc/typed/type.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>

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

/// One dim of an operand, in symbols that the operands of a row share: "tokens", "heads*dim" (whole units of so many
/// elements), "vocab@first" (this rank's part begins there), or a number. Equal symbols are equal sizes.
struct port_dim {
  std::string_view count = "", unit = "", first = "";
  int number = 0;  // where it is one
};

/// "tokens heads*dim : stride": the dims, and what the distance between two rows is called where they may lie apart.
struct port_shape {
  port_dim dim[3]{};
  int ndim = 0;
  std::string_view stride = "";

  constexpr port_shape() = default;
  constexpr port_shape(const char* text) : port_shape(std::string_view(text)) {}
  constexpr port_shape(std::string_view text) {
    if (const auto colon = text.find(':'); colon != text.npos) {
      stride = text.substr(text.find_first_not_of(' ', colon + 1));
      text = text.substr(0, colon);
    }
    while (!(text = text.substr(std::min(text.find_first_not_of(' '), text.size()))).empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      text.remove_prefix(word.size());
      dim[ndim++] = parse(word);
    }
  }

 private:
  static constexpr port_dim parse(std::string_view word) {
    port_dim d;
    if (word[0] >= '0' && word[0] <= '9') {
      for (char c : word) d.number = 10 * d.number + (c - '0');
      return d;
    }
    if (const auto at = word.find('@'); at != word.npos) d.first = word.substr(at + 1), word = word.substr(0, at);
    if (const auto by = word.find('*'); by != word.npos) d.unit = word.substr(by + 1), word = word.substr(0, by);
    d.count = word;
    return d;
  }
};

/// One operand of a kernel.
struct port {
  std::string_view name = "";
  use as = use::none;
  port_shape shape{};
  element holds = element::real;
  bool adds = false;              // an output that the kernel can add to what is there, as its last argument says
  std::string_view may_replace[2]{"", ""};  // inputs of its size whose memory it may be written to

  constexpr bool is_read() const { return as == use::in || as == use::parameter || as == use::rotary; }
  constexpr bool is_written() const { return as == use::out || as == use::sum; }
  constexpr bool is_traced() const { return is_written() || as == use::in || as == use::parameter; }
  constexpr port wide() const { return with_element(element::wide); }
  constexpr port index() const { return with_element(element::index); }
  constexpr port over(std::string_view a, std::string_view b = {}) const {
    port p = *this;
    p.may_replace[0] = a, p.may_replace[1] = b;
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

/// What a plan says of the kernels of all ops. Units: bytes, of an activation.
struct kernel_setting {
  std::size_t element;
  bool deterministic;
};

/// A kernel of one target: a function template over the type of activations. It takes the rank, the operands in the order
/// of the ports, the sizes, and whether to add where a port can.
struct kernel_row {
  std::string_view name = "";
  std::string_view sizes = "";  // symbols, products of them ("tokens*width"), and `number`, the op's
  std::size_t (*scratch)(const op_sizes&, const kernel_setting&) = nullptr;  // bytes of the scratch operand
};

/// A change of placement alone, and how it is made.
enum class conversion : unsigned char { none, replicate, all_reduce, all_reduce_max, all_gather, reduce_scatter };

inline constexpr int max_ports = 12, max_inputs = 6, max_outputs = 3;

struct op_row {
  std::string_view name;
  port ports[max_ports]{};
  void (*rule)(complaint&, types inputs, type* outputs, const op&) = nullptr;  // fills the outputs' types, or complains
  void (*dual)(backward&) = nullptr;                                           // appends the backward ops
  double (*flops)(const op_sizes&) = nullptr;
  kernel_row host{}, cuda{};
  std::string_view header = "";  // that declares the kernels; the runtime's need none
  conversion converts = conversion::none;
  bool commutative = false;  // in its two inputs

  constexpr bool communicates() const { return converts > conversion::replicate; }
  constexpr int count_ports() const {
    int n = 0;
    while (n < max_ports && ports[n].as != use::none) ++n;
    return n;
  }
  constexpr std::span<const port> used_ports() const { return {ports, static_cast<std::size_t>(count_ports())}; }
  /// Index of a port; -1 where none has the name.
  constexpr int find(std::string_view port_name) const {
    for (int p = 0; p < count_ports(); ++p)
      if (ports[p].name == port_name) return p;
    return -1;
  }
  /// How many values an op of this row reads, or writes.
  constexpr int count(bool written) const {
    int n = 0;
    for (const port& p : used_ports()) n += p.is_traced() && p.is_written() == written;
    return n;
  }
};

/// Two nodes that become one. Equal names are equal values; each list names the operands of its op in the order of the
/// ports, scratch left out. A value that `into` does not name must be used by the two alone, and is gone afterwards.
struct fusion {
  struct side {
    const op_row* kind;
    std::string_view operands;
  } first, second, into;
};

/// The sizes of an op's symbols.
class op_sizes {
 public:
  constexpr explicit op_sizes(const op_row& row) : row_(row) {}
  /// Take what a port's dim has: whole units, elements of a unit.
  constexpr void bind(int port, int dim, long long count, long long unit) { dims_[port][dim] = {count, unit}; }
  constexpr void bind_attributes(long long rows, long long seq) { rows_ = rows, seq_ = seq; }
  /// Errors: std::out_of_range (in a constant expression, no constant) where no port has the symbol.
  constexpr double operator()(std::string_view symbol) const {
    if (symbol == "rows") return static_cast<double>(rows_);
    if (symbol == "seq") return static_cast<double>(seq_);
    for (int p = 0; p < row_.count_ports(); ++p)
      for (int d = 0; d < row_.ports[p].shape.ndim; ++d) {
        const port_dim& s = row_.ports[p].shape.dim[d];
        if (s.count == symbol) return static_cast<double>(dims_[p][d].count * (s.unit.empty() ? dims_[p][d].unit : 1));
        if (s.unit == symbol) return static_cast<double>(dims_[p][d].unit);
      }
    throw std::out_of_range("an op has no such symbol");
  }

 private:
  struct bound {
    long long count = 1, unit = 1;
  };
  const op_row& row_;
  bound dims_[max_ports][3]{};
  long long rows_ = 0, seq_ = 0;
};

constexpr double no_flops(const op_sizes&) { return 0; }
/// The dual of an op through which no gradient flows.
constexpr void stop_gradient(backward&) {}

}  // namespace rankc
