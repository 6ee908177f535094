// SPDX-License-Identifier: Apache-2.0
// GEMMs with weights: sharded by rows or by columns, or in panels over both (SUMMA).
#pragma once
#include "op.hpp"

namespace rankc::published_model {

/// (rows, in) x (in, out) with weights sharded over tp1 along `in` (`by_in` ranks) or along `out` (`by_out`
/// ranks).
constexpr op linear(std::string_view name, double rows, int in, int out, int by_in, int by_out) {
  const double i = in / by_in, o = out / by_out;
  op x{name, true};
  x.weights = i * o * element;
  x.stored = rows * i * element;
  x.forward.flops = rows * o * (2 * i - 1) * flop;
  x.forward.bytes = (rows * i + rows * o + i * o) * element;
  x.backward.flops = (rows * i * (2 * o - 1) + i * o * (2 * rows - 1)) * flop;
  x.backward.bytes = 2 * (i * o + rows * i + rows * o) * element;
  if (by_in > 1)
    x.first = {collective::sharded, axis::tp1, rows * out * element, 1, 0};  // the sums are reduce-scattered
  if (by_out > 1) x.first = {collective::sharded, axis::tp1, rows * in * element, 0, 1};
  return x;
}

/// Adds transfers of panels over both axes: once in the forward, twice in the backward.
constexpr void move_panels(const setting& on, op& x, int panels, int tp1, double over_tp1, int tp2,
                           double over_tp2) {
  x.panels = panels;
  x.first = {collective::rooted, axis::tp1, tp1 > 1 ? over_tp1 : 0, 1, 2};
  x.second = {collective::rooted, axis::tp2, tp2 > 1 ? over_tp2 : 0, 1, 2};
  if (!on.fix.summa_panels) return;
  x.forward.bytes += x.first.volume + x.second.volume;  // D5: they pass through memory
  x.backward.bytes += 2 * (x.first.volume + x.second.volume);
}

/// (rows, in) x (in, out) in `panels` along `in`. Rows are sharded over tp2 and `out` over tp1. `in` is
/// sharded over tp1 for the inputs and over tp2 for the weights.
constexpr op linear_summa(const setting& on, std::string_view name, double rows, int in, int out, int tp1,
                          int tp2, int panels) {
  const double i = in, o = out / tp1, moved = (rows * i + i * o + rows * o * panels) * element;
  op x{name, true};
  x.weights = in / tp2 * o * element;
  x.stored = rows * (in / tp1) * element;
  x.forward.flops = rows * o * 2 * i * flop;
  x.forward.bytes = moved;
  x.backward.flops = (rows * i * (2 * o - 1) + i * o * (2 * rows - 1)) * flop;
  x.backward.bytes = 2 * moved;
  move_panels(on, x, panels, tp1, rows * i * element, tp2, i * o * element);
  return x;
}

}  // namespace rankc::published_model
