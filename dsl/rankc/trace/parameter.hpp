// SPDX-License-Identifier: Apache-2.0
// Parameters: as a layer declares them, and as a model gives one to several layers.
#pragma once
#include <rankc/contract/load_balance.hpp>
#include <rankc/trace/complaint.hpp>

#include <initializer_list>

namespace rankc {

enum class initial : unsigned char { zeros, ones, normal };

struct weight_info {
  parameter_name name;
  type holds;  // I on an axis: the same on every rank; V: sharded
  initial start = initial::zeros;
  double std = 0;
  here from{};
  here handle{};  // where the model made the handle that it was declared with; no line: none
  bool trainable = true;
  int id = -1;  // the value that it is
  type gradient{};
  bool has_gradient = false;
  load_balance balances{};
};

struct shard {
  axis over;
  std::string_view along;
};

/// A path without the "./" and "../" that it begins with.
constexpr std::string_view without_leading_dots(std::string_view path) {
  while (path.starts_with("./") || path.starts_with("../")) path.remove_prefix(path.find('/') + 1);
  return path;
}

/// Whether two spellings name one source file: one is the end of the other. A compiler spells a header by the
/// path that includes it, which may be relative in one translation unit and absolute in another.
constexpr bool is_same_source(std::string_view a, std::string_view b) {
  a = without_leading_dots(a);
  b = without_leading_dots(b);
  const std::string_view whole = a.size() < b.size() ? b : a, end = a.size() < b.size() ? a : b;
  return whole.ends_with(end) && (whole.size() == end.size() || whole[whole.size() - end.size() - 1] == '/');
}

/// Whether two layers declare one parameter. Handles of one name, made at one line, are one handle.
constexpr bool is_same_parameter(const weight_info& a, const weight_info& b) {
  return a.handle.line && a.handle.line == b.handle.line && a.name == b.name &&
         is_same_source(a.handle.file, b.handle.file);
}

/// A parameter that a model makes and gives to its layers. The layers that declare it share one tensor and
/// one gradient.
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
