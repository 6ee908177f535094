// SPDX-License-Identifier: Apache-2.0
#include "linear_operands.hpp"

#include <fmt/format.h>
#include <rankc/ops/fp8.hpp>

#include <algorithm>

namespace rankc::codegen {

namespace {

bool is_of_fp8(const node& n) {
  return std::any_of(std::begin(ops::fp8_products), std::end(ops::fp8_products), [&](const auto& p) { return p.in_fp8 == n.row; });
}
bool is_linear(const node& n) { return n.row->flops == &ops::product_flops; }

}  // namespace

std::vector<rounded_linears> linears_in_fp8(const lowered& l) {
  std::vector<rounded_linears> all;
  for (const body& b : l.bodies) {
    const auto count = [&](auto is) { return static_cast<int>(std::count_if(b.forward.begin(), b.forward.end(), is)); };
    if (const int in_fp8 = count(is_of_fp8)) all.push_back({b.name, count(is_linear), in_fp8});
  }
  return all;
}

std::string linears_text(const lowered& l) {
  std::string out;
  for (const rounded_linears& r : linears_in_fp8(l))
    out += fmt::format("linears: {} of {} products of {} in fp8, e4m3 and for gradients e5m2\n", r.in_fp8, r.products, r.layer);
  return out;
}

}  // namespace rankc::codegen
