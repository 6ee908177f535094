// SPDX-License-Identifier: Apache-2.0
// Kernels of the odd plans' ops and optimizers that record their calls. OTHER: the target's second type.
#include "adagrad.hpp"
#include "lion.hpp"
#include "silu.hpp"
#include "square_loss.hpp"

namespace user {

using namespace translation;
using rankc::runtime::at;

template <class T>
void silu(const lane& on, at y, at x, std::size_t count) {
  kernel(on, "user::silu").out(y, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void silu_grad(const lane& on, at dx, at dy, at x, std::size_t count) {
  kernel(on, "user::silu_grad").out(dx, all<T>(count)).in(dy, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void square_loss(const lane& on, at loss, at x, std::size_t count, double, bool accumulate) {
  kernel(on, "user::square_loss").sum(loss, accumulate, all<wide<T>>(1)).in(x, all<T>(count));
}
template <class T>
void square_loss_grad(const lane& on, at dx, at x, std::size_t count, double) {
  kernel(on, "user::square_loss_grad").out(dx, all<T>(count)).in(x, all<T>(count));
}
/// Record the update of an optimizer with one moment.
template <class T>
void record_update(const char* name, const lane& on, at weights, at gradients, at moment, at norm_squared,
                   std::span<const rankc::runtime::range> ranges) {
  constexpr std::size_t size = sizeof(wide<T>);
  kernel k(on, name);
  k.moves(weights, size, ranges).in_out(weights, size, ranges).in(gradients, size, ranges);
  k.in_out(moment, size, ranges).in(norm_squared, all<wide<T>>(1));
  if (size > sizeof(T)) k.aside(recorder::active().where().working_copy, sizeof(T), ranges);
  expect_decay(ranges);
}
template <class T>
void lion(const lane& on, at weights, at gradients, at momentum, at norm_squared,
          std::span<const rankc::runtime::range> ranges) {
  record_update<T>("user::lion", on, weights, gradients, momentum, norm_squared, ranges);
}
template <class T>
void adagrad(const lane& on, at weights, at gradients, at squares, at norm_squared,
             std::span<const rankc::runtime::range> ranges, std::span<const double>) {
  record_update<T>("user::adagrad", on, weights, gradients, squares, norm_squared, ranges);
}
template void lion<float>(const lane&, at, at, at, at, std::span<const rankc::runtime::range>);
template void lion<OTHER>(const lane&, at, at, at, at, std::span<const rankc::runtime::range>);
template void adagrad<float>(const lane&, at, at, at, at, std::span<const rankc::runtime::range>,
                             std::span<const double>);
template void adagrad<OTHER>(const lane&, at, at, at, at, std::span<const rankc::runtime::range>,
                             std::span<const double>);
template void square_loss<float>(const lane&, at, at, std::size_t, double, bool);
template void square_loss<OTHER>(const lane&, at, at, std::size_t, double, bool);
template void square_loss_grad<float>(const lane&, at, at, std::size_t, double);
template void square_loss_grad<OTHER>(const lane&, at, at, std::size_t, double);
template void silu<float>(const lane&, at, at, std::size_t);
template void silu<OTHER>(const lane&, at, at, std::size_t);
template void silu_grad<float>(const lane&, at, at, at, std::size_t);
template void silu_grad<OTHER>(const lane&, at, at, at, std::size_t);

}  // namespace user
