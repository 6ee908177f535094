// SPDX-License-Identifier: Apache-2.0
// Ops on vector units: bias, GELU, dropout, softmax, layer norms.
#pragma once
#include "op.hpp"

namespace rankc::published_model {

/// A bias, added to (rows, width).
constexpr op bias(const setting& on, std::string_view name, double rows, double width) {
  op x{name};
  const double n = rows * width;
  x.weights = width * element;
  x.forward.flops = x.backward.flops = n * flop;
  x.forward.bytes = x.backward.bytes = (n + width) * element;
  if (on.fix.biases) x.forward.bytes += n * element;  // D8: the sum is written
  return x;
}

/// GELU of `n` elements.
constexpr op activation(std::string_view name, double n) {
  op x{name};
  x.stored = n * element;
  x.forward.flops = 8 * n * flop;
  x.forward.bytes = 2 * n * element;
  x.backward.flops = 13 * n * flop;
  x.backward.bytes = 3 * n * element;
  return x;
}

constexpr op dropout(std::string_view name, double n) {
  op x{name};
  x.stored = n * mask_element;
  x.forward.flops = x.backward.flops = n * flop;
  x.forward.bytes = x.backward.bytes = n * (2 * element + mask_element);
  return x;
}

/// A softmax over the columns of (rows, columns).
constexpr op softmax(std::string_view name, double rows, double columns) {
  op x{name};
  const double n = rows * columns;
  x.stored = n * element;
  x.forward.flops = (2 * n + rows * (columns - 1)) * flop;
  x.forward.bytes = 2 * n * element;
  x.backward.flops = (3 * n + rows * (columns - 1)) * flop;
  x.backward.bytes = 3 * n * element;
  return x;
}

/// The same with the columns sharded over tp1.
constexpr op softmax_2d(std::string_view name, double rows, double columns, int tp1) {
  op x = softmax(name, rows, columns);
  if (tp1 > 1) x.first = {collective::all_reduce, axis::tp1, rows * element, 1, 1};
  return x;
}

/// A layer norm of (rows, width), without its transfers.
constexpr op norm_of_rows(std::string_view name, double rows, double width) {
  op x{name};
  const double n = rows * width;
  x.weights = 2 * width * element;
  x.stored = n * element;
  x.forward.flops = 9 * n * flop;
  x.forward.bytes = (2 * n + 2 * rows + 2 * width) * element;
  x.backward.flops = (8 * n + 4 * rows * (width - 1)) * flop;
  x.backward.bytes = (5 * n + 2 * width) * element;
  return x;
}

/// A layer norm of (b, l, e) with sequences sharded over tp1. Their shards are all-gathered after it.
constexpr op layer_norm(std::string_view name, int b, int l, int e, int tp1) {
  op x = norm_of_rows(name, double(b) * (l / tp1), e);
  if (tp1 > 1) x.first = {collective::sharded, axis::tp1, double(b) * l * e * element, 1, 1};
  return x;
}

/// A layer norm of (b, l, e) with e sharded over tp1 and l over tp2.
constexpr op layer_norm_2d(const setting& on, std::string_view name, int b, int l, int e, int tp1, int tp2) {
  const double rows = double(b) * (l / tp2), width = (on.fix.norm_width ? e : l) / tp1;  // D1
  op x = norm_of_rows(name, rows, width);
  if (tp1 == 1) return x;
  const auto of_rows = static_cast<double>(2LL * b * l / tp2), of_width = static_cast<double>(2LL * e / tp1);
  x.first = {collective::all_reduce, axis::tp1, 2 * rows * element, 1, 0};
  x.second = {collective::all_reduce, axis::tp1, (of_width + of_rows) * element, 0, 1};
  return x;
}

}  // namespace rankc::published_model
