// SPDX-License-Identifier: Apache-2.0
// The types of a layer's values in its text.
#include <fmt/format.h>

#include <algorithm>

#include "emit.hpp"

namespace rankc::codegen {

namespace {

std::string tensor(std::string_view element, const std::vector<std::string>& dims) {
  if (dims.size() < 2) return fmt::format("vector<{}, {}>", element, dims.empty() ? "1" : dims[0]);
  return fmt::format("matrix<{}, {}>", element, fmt::join(dims, ", "));
}

std::vector<std::string> dims_of(const body& b, const local_shape& s) {
  std::vector<std::string> dims;
  for (int d = 0; d < s.ndim; ++d) dims.push_back(width_text(b, s.dims[d]));
  return dims;
}

}  // namespace

tensor_types::tensor_types(const body& b) : body_(b) {
  std::vector<std::string> taken = b.names.parameters;
  for (const nodes* list : {&b.forward, &b.backward})
    for (const node& n : *list)
      for (const port_use& u : n.ports) {
        if (u.run < 0) continue;
        const int first = b.values[static_cast<std::size_t>(u.at.value)].of;
        std::string name = b.names.parameters[static_cast<std::size_t>(first)];
        for (int more : b.runs[static_cast<std::size_t>(u.run)])
          name +=
              "_" + b.names.parameters[static_cast<std::size_t>(b.values[static_cast<std::size_t>(more)].of)];
        if (packed.contains(static_cast<std::size_t>(first))) continue;
        while (std::find(taken.begin(), taken.end(), name) != taken.end()) name += "_";
        taken.push_back(name);
        packed[static_cast<std::size_t>(first)] = {name, tensor("T", dims_of(b, b.shape(u)))};
      }
}

std::string tensor_types::of(const value& v) const {
  constexpr std::string_view elements[]{"real", "wide", "std::int32_t"};
  if (v.holds == element_kind::bytes) return "workspace";
  const std::string_view element =
      is_fp8(v.holds) ? fp8_name(static_cast<rankc::element>(v.holds)) : elements[static_cast<int>(v.holds)];
  return tensor(element, dims_of(body_, body_.shape(v)));
}

std::string tensor_types::of_parameter(std::size_t index) const {
  for (const value& v : body_.values)
    if (v.where == space::weight && v.of == static_cast<int>(index))
      return tensor("T", dims_of(body_, body_.shape(v)));
  const layer_parameter& p = body_.parameters[index];
  return tensor("T", p.ndim > 1 ? std::vector{std::to_string(p.rows), std::to_string(p.cols)}
                                : std::vector{std::to_string(p.rows)});
}

}  // namespace rankc::codegen
