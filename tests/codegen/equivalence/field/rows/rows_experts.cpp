// SPDX-License-Identifier: Apache-2.0
// Slots of experts, and GEMMs with their weights. Rows outside all segments of slots belong to no expert; an
// op's results there are drawn.
#include "rows.hpp"

#include <algorithm>

namespace field::experts {

namespace {

/// An index in a table. Errors: malformed if it is not an integer below `count`.
std::int64_t index_of(element e, std::int64_t count) {
  const auto i = static_cast<std::int64_t>(e);
  expect(i >= 0 && i < count && static_cast<element>(i) == e, "an index outside its table");
  return i;
}

/// The place of a pick without a slot.
constexpr element nowhere = negate(1);

/// Visit each pick that has a slot, with its token and slot.
void each_pick(const matrix& places, std::int64_t slots, auto visit) {
  expect(places.is.size() == slots, "not as many slots as picks");
  for (std::int64_t t = 0; t < places.is.rows; ++t)
    for (std::int64_t j = 0; j < places.is.cols; ++j)
      if (places.row(t)[j] != nowhere) visit(t, j, index_of(places.row(t)[j], slots));
}

/// Visit the slots of each segment, with their expert.
void each_slot(const matrix& offsets, std::int64_t slots, std::int64_t experts, auto visit) {
  expect(offsets.is.rows == 2 && experts > 0 && offsets.is.cols % experts == 0,
         "segments that are not of all experts");
  for (std::int64_t s = 0; s < offsets.is.cols; ++s)
    for (std::int64_t n = index_of(offsets.row(0)[s], slots + 1),
                      end = index_of(offsets.row(1)[s], slots + 1);
         n < end; ++n)
      visit(n, s % experts);
}

matrix& drawn_out(call& c, std::string_view port, std::int64_t rows, std::int64_t cols) {
  matrix& m = c.out(port, rows, cols);
  for (std::size_t i = 0; i < m.of.size(); ++i) m.of[i] = draw(mix(key_of("outside"), i));
  return m;
}

}  // namespace

/// An expert's slots are in the order of tokens.
void arrange(call& c) {
  const matrix& chosen = c.in("chosen");
  matrix &places = c.out("places", chosen.is.rows, chosen.is.cols), &offsets = c.out("offsets");
  expect(offsets.is.rows == 2, "arrange: offsets are two rows");
  std::int64_t next = 0;
  for (std::int64_t e = 0; e < offsets.is.cols; ++e) {
    offsets.row(0)[e] = static_cast<element>(next);
    for (std::size_t n = 0; n < chosen.of.size(); ++n)
      if (index_of(chosen.of[n], offsets.is.cols) == e) places.of[n] = static_cast<element>(next++);
    offsets.row(1)[e] = static_cast<element>(next);
  }
}

/// In each group of c.seq tokens, an expert takes its first c.number picks. A model on one device does not
/// specify the number of groups (c.rows = 0).
void arrange_limited(call& c) {
  const matrix& chosen = c.in("chosen");
  matrix &places = c.out("places", chosen.is.rows, chosen.is.cols), &offsets = c.out("offsets");
  expect(offsets.is.rows == 2 && c.seq >= 1 && chosen.is.rows % c.seq == 0 &&
             (c.rows == 0 || c.rows * c.seq == chosen.is.rows),
         "arrange_limited: tokens that are not whole groups");
  std::fill(places.of.begin(), places.of.end(), nowhere);
  std::int64_t next = 0;
  for (std::int64_t e = 0; e < offsets.is.cols; ++e) {
    offsets.row(0)[e] = static_cast<element>(next);
    for (std::int64_t t = 0, taken = 0; t < chosen.is.rows; ++t) {
      if (t % c.seq == 0) taken = 0;
      for (std::int64_t j = 0; j < chosen.is.cols; ++j)
        if (index_of(chosen.row(t)[j], offsets.is.cols) == e && static_cast<double>(taken++) < c.number)
          places.row(t)[j] = static_cast<element>(next++);
    }
    offsets.row(1)[e] = static_cast<element>(next);
  }
}

/// The contiguous slots of some experts, counted from the first of them.
void own_slots(call& c) {
  const matrix &places = c.in("places"), &offsets = c.in("offsets");
  matrix &own = c.out("own_places", places.is.rows, places.is.cols), &of_own = c.out("own_offsets");
  const std::int64_t first = c.first("own_offsets"), slots = places.is.size();
  expect(offsets.is.rows == 2 && of_own.is.rows == 2 && first >= 0 && of_own.is.cols >= 1 &&
             first + of_own.is.cols <= offsets.is.cols,
         "own_slots: experts that there are not");
  std::fill(own.of.begin(), own.of.end(), nowhere);
  const std::int64_t begin = index_of(offsets.row(0)[first], slots + 1);
  for (std::int64_t e = 0; e < of_own.is.cols; ++e) {
    const std::int64_t from = index_of(offsets.row(0)[first + e], slots + 1),
                       to = index_of(offsets.row(1)[first + e], slots + 1);
    of_own.row(0)[e] = static_cast<element>(from - begin);
    of_own.row(1)[e] = static_cast<element>(to - begin);
    each_pick(places, slots, [&](std::int64_t t, std::int64_t j, std::int64_t slot) {
      if (slot >= from && slot < to) own.row(t)[j] = static_cast<element>(slot - begin);
    });
  }
}

void dispatch(call& c) {
  const matrix &x = c.in("x"), &places = c.in("places");
  expect(x.is.rows == places.is.rows, "dispatch: x and places differ in their tokens");
  matrix& slots = drawn_out(c, "slots", places.is.size(), x.is.cols);
  each_pick(places, slots.is.rows, [&](std::int64_t t, std::int64_t, std::int64_t slot) {
    std::copy_n(x.row(t), x.is.cols, slots.row(slot));
  });
}

void collect(call& c) {
  const matrix &slots = c.in("slots"), &places = c.in("places");
  matrix& y = c.out("y", places.is.rows, slots.is.cols);
  each_pick(places, slots.is.rows, [&](std::int64_t t, std::int64_t, std::int64_t slot) {
    for (std::int64_t i = 0; i < y.is.cols; ++i) y.row(t)[i] = add(y.row(t)[i], slots.row(slot)[i]);
  });
}

void combine(call& c) {
  const matrix &slots = c.in("slots"), &weights = c.in("weights"), &places = c.in("places");
  expect(weights.is.rows == places.is.rows && weights.is.cols == places.is.cols,
         "combine: a weight for each pick");
  matrix& y = c.out("y", places.is.rows, slots.is.cols);
  each_pick(places, slots.is.rows, [&](std::int64_t t, std::int64_t j, std::int64_t slot) {
    for (std::int64_t i = 0; i < y.is.cols; ++i)
      y.row(t)[i] = add(y.row(t)[i], multiply(weights.row(t)[j], slots.row(slot)[i]));
  });
}

void combine_grad(call& c) {
  const matrix &dy = c.in("dy"), &slots = c.in("slots"), &weights = c.in("weights"), &places = c.in("places");
  expect(weights.is.rows == places.is.rows && weights.is.cols == places.is.cols &&
             dy.is.rows == places.is.rows && dy.is.cols == slots.is.cols,
         "combine_grad: sizes do not fit");
  matrix &dslots = drawn_out(c, "dslots", slots.is.rows, slots.is.cols),
         &dweights = c.out("dweights", weights.is.rows, weights.is.cols);
  each_pick(places, slots.is.rows, [&](std::int64_t t, std::int64_t j, std::int64_t slot) {
    for (std::int64_t i = 0; i < dy.is.cols; ++i) {
      dslots.row(slot)[i] = multiply(weights.row(t)[j], dy.row(t)[i]);
      dweights.row(t)[j] = add(dweights.row(t)[j], multiply(dy.row(t)[i], slots.row(slot)[i]));
    }
  });
}

/// y = x w[e], for the slots of expert e. Shapes: x (slots, in), w (experts * in, out).
void expert_up(call& c) {
  const matrix &x = c.in("x"), &w = c.in("w"), &offsets = c.in("offsets");
  const std::int64_t in = x.is.cols;
  expect(in > 0 && w.is.rows % in == 0, "expert_up: w is not of whole experts");
  matrix& y = drawn_out(c, "y", x.is.rows, w.is.cols);
  each_slot(offsets, x.is.rows, w.is.rows / in, [&](std::int64_t n, std::int64_t e) {
    for (std::int64_t o = 0; o < w.is.cols; ++o) {
      element sum = 0;
      for (std::int64_t i = 0; i < in; ++i) sum = add(sum, multiply(x.row(n)[i], w.row(e * in + i)[o]));
      y.row(n)[o] = sum;
    }
  });
}

/// The sum of products x w[e]^T, plus `residual` if there is one. Shapes: x (slots, out), w (experts * in,
/// out).
static void sum_of_products(call& c, std::vector<std::pair<const matrix*, const matrix*>> products,
                            const matrix* residual) {
  const matrix& offsets = c.in("offsets");
  const std::int64_t in = c.wanted("y").cols, rows = products[0].first->is.rows,
                     experts = products[0].second->is.rows / in;
  for (const auto& [x, w] : products)
    expect(in > 0 && w->is.rows == experts * in && x->is.cols == w->is.cols && x->is.rows == rows,
           "expert_down: w is not of whole experts as wide as x");
  matrix& y = drawn_out(c, "y", rows, in);
  each_slot(offsets, rows, experts, [&](std::int64_t n, std::int64_t e) {
    for (std::int64_t i = 0; i < in; ++i) {
      element sum = residual ? residual->row(n)[i] : 0;
      for (const auto& [x, w] : products)
        for (std::int64_t o = 0; o < w->is.cols; ++o)
          sum = add(sum, multiply(x->row(n)[o], w->row(e * in + i)[o]));
      y.row(n)[i] = sum;
    }
  });
}

void expert_down(call& c) { sum_of_products(c, {{&c.in("x"), &c.in("w")}}, nullptr); }
void expert_down_add(call& c) { sum_of_products(c, {{&c.in("x"), &c.in("w")}}, &c.in("residual")); }
void expert_down_two(call& c) {
  sum_of_products(c, {{&c.in("x"), &c.in("w")}, {&c.in("x2"), &c.in("w2")}}, nullptr);
}

/// dw[e] = x^T y over the slots of expert e. Shapes: x (slots, in), y (slots, out), dw (experts * in, out).
void expert_dw(call& c) {
  const matrix &x = c.in("x"), &y = c.in("y"), &offsets = c.in("offsets");
  matrix& dw = c.out("dw");
  const std::int64_t in = x.is.cols;
  expect(in > 0 && dw.is.rows % in == 0 && dw.is.cols == y.is.cols && x.is.rows == y.is.rows,
         "expert_dw: sizes do not fit");
  each_slot(offsets, x.is.rows, dw.is.rows / in, [&](std::int64_t n, std::int64_t e) {
    for (std::int64_t i = 0; i < in; ++i)
      for (std::int64_t o = 0; o < dw.is.cols; ++o)
        dw.row(e * in + i)[o] = add(dw.row(e * in + i)[o], multiply(x.row(n)[i], y.row(n)[o]));
  });
}

/// The number of picks without a slot in each group, stored after its sum of squares.
void dropped_statistics(call& c) {
  const matrix& places = c.in("places");
  const extent wanted = c.wanted("own");
  const std::int64_t experts = wanted.cols / 3;
  expect(experts >= 2 && wanted.cols % 3 == 0 && places.is.rows % wanted.rows == 0,
         "dropped_statistics: sizes do not fit");
  matrix& own = c.out("own", wanted.rows, wanted.cols, experts);
  for (std::int64_t t = 0; t < places.is.rows; ++t)
    for (std::int64_t j = 0; j < places.is.cols; ++j) {
      element& dropped = own.row(t / (places.is.rows / wanted.rows))[2 * experts + 1];
      if (places.row(t)[j] == nowhere) dropped = add(dropped, 1);
    }
}

/// How often each expert was chosen.
void count_choices(call& c) {
  const matrix& chosen = c.in("chosen");
  matrix& dbias = c.out("dbias");
  for (element e : chosen.of) {
    element& n = dbias.of[static_cast<std::size_t>(index_of(e, dbias.is.size()))];
    n = add(n, 1);
  }
}

/// Scale rows to a sum of `number`.
void normalize(call& c) {
  const matrix& x = c.in("x");
  matrix& y = c.out("y", x.is.rows, x.is.cols);
  for (std::int64_t t = 0; t < x.is.rows; ++t) {
    element sum = 0;
    for (std::int64_t i = 0; i < x.is.cols; ++i) sum = add(sum, x.row(t)[i]);
    for (std::int64_t i = 0; i < x.is.cols; ++i)
      y.row(t)[i] = multiply(multiply(number(c.number), x.row(t)[i]), inverse(sum));
  }
}

/// dx = number (dy - (dy . x) / sum) / sum.
void normalize_grad(call& c) {
  const matrix &dy = c.in("dy"), &x = c.in("x");
  expect(dy.is.rows == x.is.rows && dy.is.cols == x.is.cols, "normalize_grad: sizes do not fit");
  matrix& dx = c.out("dx", x.is.rows, x.is.cols);
  for (std::int64_t t = 0; t < x.is.rows; ++t) {
    element sum = 0, inner = 0;
    for (std::int64_t i = 0; i < x.is.cols; ++i) {
      sum = add(sum, x.row(t)[i]);
      inner = add(inner, multiply(dy.row(t)[i], x.row(t)[i]));
    }
    const element shift = negate(multiply(inner, inverse(sum)));
    for (std::int64_t i = 0; i < x.is.cols; ++i)
      dx.row(t)[i] = multiply(multiply(number(c.number), add(dy.row(t)[i], shift)), inverse(sum));
  }
}

}  // namespace field::experts
