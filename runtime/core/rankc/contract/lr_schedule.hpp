// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules as values: pieces, one after the other. A plan's recipe, the command line and the
// trainer use this form. The rate of a step is the same number at compile time and at run time.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rankc::runtime {

enum class lr_shape : unsigned char { constant, linear, cosine };

/// A number of steps over which the rate is constant, or moves from the end of the previous piece to `to`.
/// The first piece begins at the recipe's lr, or at 0 if it is a warm-up.
struct lr_piece {
  lr_shape shape = lr_shape::constant;
  int steps = 0;
  double to = 0;  // `peak`: the recipe's lr
  constexpr bool operator==(const lr_piece&) const = default;
};
inline constexpr double peak = -1;

inline constexpr std::size_t max_lr_pieces = 8;

/// The pieces of a schedule. After the last piece the rate stays at its end. Without pieces the rate is lr in
/// every step.
struct lr_schedule {
  lr_piece pieces[max_lr_pieces] = {};
  int count = 0;

  constexpr lr_schedule() = default;
  template <std::same_as<lr_piece>... Piece>
    requires(sizeof...(Piece) > 0 && sizeof...(Piece) <= max_lr_pieces)
  constexpr lr_schedule(const Piece&... piece) : pieces{piece...}, count(sizeof...(Piece)) {}

  constexpr bool any() const { return count > 0; }
  constexpr void add(const lr_piece& piece) { pieces[count++] = piece; }
  constexpr std::int64_t steps() const {
    std::int64_t all = 0;
    for (int i = 0; i < count; ++i) all += pieces[i].steps;
    return all;
  }
  constexpr bool operator==(const lr_schedule&) const = default;
};

namespace lr {
/// A linear rise to the recipe's lr. The first piece of a schedule starts at 0.
constexpr lr_piece warm_up(int steps) { return {lr_shape::linear, steps, peak}; }
/// A constant rate for `steps` steps.
constexpr lr_piece constant(int steps) { return {lr_shape::constant, steps, peak}; }
/// A linear change to the rate `to`.
constexpr lr_piece linear(int steps, double to = 0) { return {lr_shape::linear, steps, to}; }
/// Half a cosine period to the rate `to`.
/// Source: SGDR (Loshchilov and Hutter 2017), one period.
constexpr lr_piece cosine(int steps, double to = 0) { return {lr_shape::cosine, steps, to}; }
/// Warm-up, stable, decay.
/// Source: MiniCPM (Hu et al. 2024).
constexpr lr_schedule wsd(int warm_up_steps, int stable, int decay, double to = 0) {
  return {warm_up(warm_up_steps), constant(stable), linear(decay, to)};
}
}  // namespace lr

/// cos(pi * x), with the same bits on every machine.
/// Units: x from 0 to 1.
constexpr double cos_of_half_turn(double x) {
  constexpr double pi = 3.14159265358979323846;
  if (x > 0.5) return -cos_of_half_turn(1 - x);
  const bool as_sine = x > 0.25;
  const double angle = pi * (as_sine ? 0.5 - x : x), square = angle * angle;
  double term = as_sine ? angle : 1, sum = 0;
  double terms[12];
  for (int n = 0; n < 12; ++n) {
    terms[n] = term;
    const int k = 2 * n + (as_sine ? 2 : 1);
    term *= -square / (k * (k + 1));
  }
  for (int n = 12; n-- > 0;) sum += terms[n];  // the smallest term first
  return sum;
}

/// The rate at the end of a piece. `from` is the rate before it.
constexpr double end_of(const lr_piece& piece, double lr, double from) {
  if (piece.shape == lr_shape::constant) return from;
  return piece.to == peak ? lr : piece.to;
}

/// The rate of step `step`, counted from 1. The last step of a piece has the piece's end rate.
constexpr double learning_rate(const lr_schedule& schedule, double lr, std::int64_t step) {
  const bool rises =
      schedule.any() && schedule.pieces[0].shape == lr_shape::linear && schedule.pieces[0].to == peak;
  double from = rises ? 0 : lr;
  std::int64_t before = 0;
  for (int i = 0; i < schedule.count; ++i) {
    const lr_piece& piece = schedule.pieces[i];
    const double to = end_of(piece, lr, from);
    if (step < before + piece.steps) {
      const double part = static_cast<double>(step - before), all = piece.steps;
      if (piece.shape == lr_shape::constant) return from;
      if (piece.shape == lr_shape::linear) return from + (to - from) * part / all;
      return to + (from - to) * 0.5 * (1 + cos_of_half_turn(part / all));
    }
    before += piece.steps;
    from = to;
  }
  return from;
}

}  // namespace rankc::runtime
