// SPDX-License-Identifier: Apache-2.0
// Checks that an op's row has all that lowering needs.
#pragma once
#include <rankc/trace/complaint.hpp>

namespace rankc {

namespace detail {
constexpr bool is_symbol(const op_row& row, std::string_view word) {
  if (word == "rows" || word == "seq" || word == "number" || word == "cp" || word == "ring") return true;
  for (const port& p : row.used_ports()) {
    if (p.shape.stride == word) return true;
    for (int d = 0; d < p.shape.ndim; ++d)
      if (p.shape.dim[d].count == word || p.shape.dim[d].unit == word || p.shape.dim[d].first == word)
        return true;
  }
  return false;
}
/// The first symbol in a kernel's sizes that is not in the row's ports; empty if all are.
constexpr std::string_view find_unknown_size(const op_row& row, std::string_view sizes) {
  while (!sizes.empty()) {
    const std::string_view word = sizes.substr(0, sizes.find_first_of(" *"));
    if (!is_symbol(row, word)) return word;
    sizes.remove_prefix(word.size() < sizes.size() ? word.size() + 1 : sizes.size());
  }
  return {};
}
}  // namespace detail

/// Complains of the first thing that a row lacks. `in_runtime`: the op is rankc's own, so the runtime
/// declares its kernels and the row needs no header.
/// Errors: RC225.
constexpr void check_row(complaint& c, const op_row& row, bool in_runtime) {
  if (row.converts == conversion::replicate) return;
  if (row.count_ports() == 0)
    c.begin() << "its op_row has no ports; give .ports = {out(\"y\", \"tokens width\"), in(\"x\", ...)}";
  if (!c.said && (row.count(false) > max_inputs || row.count(true) > max_outputs))
    c.begin() << "its op_row has " << row.count(false) << " inputs and " << row.count(true)
              << " outputs; there may be " << max_inputs << " and " << max_outputs;
  bool reads = false;
  for (const port& p : row.used_ports()) {
    if (c.said) return;
    if (row.ports + row.find(p.name) != &p) {
      c.begin() << "two ports are named '" << p.name << "'";
      return;
    }
    reads |= p.is_read();
    if (reads && !p.is_read())
      c.begin() << "port '" << p.name << "' stands behind an input; a kernel takes its outputs first";
    for (std::string_view input : p.may_replace)
      if (!input.empty() && (row.find(input) < 0 || !row.ports[row.find(input)].is_read()) && !c.said)
        c.begin() << "port '" << p.name << "' may be written over '" << input << "', which is no input";
  }
  for (const bool cuda : {false, true}) {
    const kernel_row k = cuda ? row.on_cuda() : row.on_host();
    const std::string_view target = cuda ? "cuda" : "host";
    if (c.said) return;
    if (k.name.empty())
      c.begin() << "its op_row has no " << target << " kernel; give .sizes, or ." << target
                << " = {name, sizes}";
    else if (const std::string_view word = detail::find_unknown_size(row, k.sizes); !word.empty())
      c.begin() << "its " << target << " kernel takes '" << word << "', which is a size of no port";
  }
  if (!c.said && !in_runtime && row.header.empty())
    c.begin() << "its op_row names no header that declares its kernels; give .header";
}

}  // namespace rankc
