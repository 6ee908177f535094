// SPDX-License-Identifier: Apache-2.0
// The ops of the odd plans' own, recorded. OTHER: the target's second type.
#include "silu.hpp"
#include "square_loss.hpp"

namespace user {

using namespace translation;
using rankc::runtime::at;

template <class T>
void silu(rank&, at y, at x, std::size_t count) {
  kernel("user::silu").out(y, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void silu_grad(rank&, at dx, at dy, at x, std::size_t count) {
  kernel("user::silu_grad").out(dx, all<T>(count)).in(dy, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void square_loss(rank&, at loss, at x, std::size_t count, double, bool accumulate) {
  kernel("user::square_loss").sum(loss, accumulate, all<wide<T>>(1)).in(x, all<T>(count));
}
template <class T>
void square_loss_grad(rank&, at dx, at x, std::size_t count, double) {
  kernel("user::square_loss_grad").out(dx, all<T>(count)).in(x, all<T>(count));
}
template void square_loss<float>(rank&, at, at, std::size_t, double, bool);
template void square_loss<OTHER>(rank&, at, at, std::size_t, double, bool);
template void square_loss_grad<float>(rank&, at, at, std::size_t, double);
template void square_loss_grad<OTHER>(rank&, at, at, std::size_t, double);
template void silu<float>(rank&, at, at, std::size_t);
template void silu<OTHER>(rank&, at, at, std::size_t);
template void silu_grad<float>(rank&, at, at, at, std::size_t);
template void silu_grad<OTHER>(rank&, at, at, at, std::size_t);

}  // namespace user
