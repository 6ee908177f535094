// SPDX-License-Identifier: Apache-2.0
// In f64, routers: the kernels of the host runtime.
#include "f64_kernels.hpp"
#include "rows.hpp"

namespace field::routers {

namespace {

int whole(std::int64_t n) { return static_cast<int>(n); }

void take_top(call& c, auto kernel) {
  const matrix& logits = c.in("logits");
  matrix &weights = c.out("weights"), &chosen = c.out("chosen");
  expect(weights.is.rows == logits.is.rows && weights.is.cols <= logits.is.cols &&
             chosen.is.size() == weights.is.size(),
         "a router of other tokens, or of more picks than experts");
  kernel_memory m;
  const host::at to = m.room(weights), to_chosen = m.room(chosen), from = m.put(logits);
  kernel(m.lane(), to, to_chosen, from, whole(logits.is.rows), whole(logits.is.cols), whole(weights.is.cols));
  m.take(to, weights), m.take_ids(to_chosen, chosen);
}

void take_top_back(call& c, auto kernel) {
  const matrix &dweights = c.in("dweights"), &logits = c.in("logits"), &chosen = c.in("chosen");
  expect(dweights.is.rows == logits.is.rows && chosen.is.size() == dweights.is.size(),
         "a router's gradient of other tokens");
  for (element e : chosen.of)
    expect(e >= 0 && e < static_cast<element>(logits.is.cols), "a choice of no expert");
  matrix& dlogits = c.out("dlogits", logits.is.rows, logits.is.cols);
  kernel_memory m;
  const host::at to = m.room(dlogits), at_dweights = m.put(dweights), at_logits = m.put(logits),
                 at_chosen = m.put_ids(chosen);
  kernel(m.lane(), to, at_dweights, at_logits, at_chosen, whole(logits.is.rows), whole(logits.is.cols),
         whole(dweights.is.cols));
  m.take(to, dlogits);
}

}  // namespace

void softmax_top(call& c) {
  take_top(c, [](const auto&... operands) { host::softmax_top<double>(operands...); });
}
void softmax_top_grad(call& c) {
  take_top_back(c, [](const auto&... operands) { host::softmax_top_grad<double>(operands...); });
}
void sigmoid_top(call& c) {
  take_top(c, [](const auto&... operands) { host::sigmoid_top<double>(operands...); });
}
void sigmoid_top_grad(call& c) {
  take_top_back(c, [](const auto&... operands) { host::sigmoid_top_grad<double>(operands...); });
}

}  // namespace field::routers
