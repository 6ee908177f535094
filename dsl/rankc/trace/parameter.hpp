// SPDX-License-Identifier: Apache-2.0
// Parameters: a layer's declaration, and the handle by which a model gives one parameter to several layers.
#pragma once
#include <rankc/contract/load_balance.hpp>
#include <rankc/trace/complaint.hpp>

#include <initializer_list>

namespace rankc {

enum class initial : unsigned char { zeros, ones, normal };

struct weight_info {
  parameter_name name;
  type holds;  // I over an axis: the same on every rank; V: sharded
  initial start = initial::zeros;
  double std = 0;
  here from{};
  here handle{};  // where the model made the handle; line 0: declared without a handle
  bool trainable = true;
  int id = -1;  // its value in the trace
  type gradient{};
  bool has_gradient = false;
  load_balance balances{};
};

/// Shards the dim named `along` over an axis.
struct shard {
  axis over;
  std::string_view along;
};

/// The path without leading "./" and "../".
constexpr std::string_view without_leading_dots(std::string_view path) {
  while (path.starts_with("./") || path.starts_with("../")) path.remove_prefix(path.find('/') + 1);
  return path;
}

/// True if two spellings name one source file, i.e. one is the end of the other. Compilers name a header by
/// the include path, which may be relative in one translation unit and absolute in another.
constexpr bool is_same_source(std::string_view a, std::string_view b) {
  a = without_leading_dots(a);
  b = without_leading_dots(b);
  const std::string_view whole = a.size() < b.size() ? b : a, end = a.size() < b.size() ? a : b;
  return whole.ends_with(end) && (whole.size() == end.size() || whole[whole.size() - end.size() - 1] == '/');
}

/// True if two layers declare the same parameter: their handles have one name and come from one source line.
constexpr bool is_same_parameter(const weight_info& a, const weight_info& b) {
  return a.handle.line && a.handle.line == b.handle.line && a.name == b.name &&
         is_same_source(a.handle.file, b.handle.file);
}

/// A parameter that a model gives to several layers. They share one tensor and one gradient.
/// Shapes: at most two dims; `by` shards some of them over mesh axes.
/// Errors: RC210, RC224.
struct parameter_handle {
  std::string_view name;
  dim shape[2]{};
  int ndim = 0;
  shard by[n_axes]{};
  int n_shards = 0;
  initial start = initial::zeros;
  double std = 0;
  here from{};

  constexpr parameter_handle(std::string_view called, std::initializer_list<dim> dims,
                             std::initializer_list<shard> over, initial begin, double deviation = 0,
                             const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : name(called), start(begin), std(deviation), from{file, line} {
    for (const dim& d : dims) shape[ndim++] = d;
    for (const shard& s : over) by[n_shards++] = s;
  }
};

}  // namespace rankc
