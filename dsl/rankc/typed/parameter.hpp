// SPDX-License-Identifier: Apache-2.0
// Parameters: as a layer declares them, and as a model hands one to several layers.
#pragma once
#include <rankc/runtime/load_balance.hpp>
#include <rankc/typed/complaint.hpp>

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

/// Whether two layers declare one parameter: of one handle. Handles of one name and line are one.
constexpr bool is_same_parameter(const weight_info& a, const weight_info& b) {
  return a.handle.line && a.handle.line == b.handle.line && a.name == b.name &&
         std::string_view(a.handle.file) == b.handle.file;
}

/// A parameter that a model makes and hands to its layers: those that declare it have one tensor and one
/// gradient.
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
