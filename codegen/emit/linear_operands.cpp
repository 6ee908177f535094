// SPDX-License-Identifier: Apache-2.0
#include "linear_operands.hpp"

#include <fmt/format.h>
#include <rankc/ops/fp8.hpp>

#include <algorithm>

namespace rankc::codegen {

namespace {

bool is_of_fp8(const node& n) {
  const auto is = [&](const ops::narrowed_row& p) { return p.in_fp8 == n.row || p.in_rows == n.row; };
  return std::any_of(std::begin(ops::fp8_products), std::end(ops::fp8_products), is);
}
bool is_linear(const node& n) { return n.row->flops == &ops::product_flops; }

}  // namespace

std::vector<rounded_linears> linears_in_fp8(const lowered& l) {
  std::vector<rounded_linears> all;
  for (const body& b : l.bodies) {
    const auto count = [&](auto is) {
      return static_cast<int>(std::count_if(b.forward.begin(), b.forward.end(), is));
    };
    if (const int in_fp8 = count(is_of_fp8))
      all.push_back({b.name, b.setting.linears, count(is_linear), in_fp8});
  }
  return all;
}

std::string linears_text(const lowered& l) {
  std::string out;
  for (const rounded_linears& r : linears_in_fp8(l))
    out += fmt::format("linears: {} of {} products of {} in {}, {}\n", r.in_fp8, r.products, r.layer,
                       linear_precision_names[static_cast<int>(r.by)],
                       r.by == fp8_rows ? "e4m3 with a scale for each row" : "e4m3 and for gradients e5m2");
  return out;
}

}  // namespace rankc::codegen
