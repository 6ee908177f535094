// SPDX-License-Identifier: Apache-2.0
// Experts over the field: parts of the tokens and several segments give the results of the whole, and
// gradients are transposes.
#include <doctest/doctest.h>

#include "drawn_rows.hpp"

#include <algorithm>

namespace rows_experts_test {

using namespace field;

namespace {

constexpr std::int64_t tokens = 8, expert_count = 4, picks = 2, in = 6, wide = 4;

matrix below(const matrix& a, const matrix& b) {
  matrix out(extent{a.is.rows + b.is.rows, a.is.cols});
  std::copy(b.of.begin(), b.of.end(), std::copy(a.of.begin(), a.of.end(), out.of.begin()));
  return out;
}
call run_row(std::string_view name, std::initializer_list<given_operand> given,
             std::initializer_list<std::pair<std::string_view, extent>> made) {
  return field::run_row(name, given, made, picks);
}

struct arranged {
  matrix weights, chosen, places, offsets;
};
arranged route(std::string_view by, const matrix& logits) {
  const std::int64_t n = logits.is.rows;
  const call top = run_row(by, {{"logits", &logits}}, {{"weights", {n, picks}}, {"chosen", {n, picks}}});
  const call slots = run_row("arrange", {{"chosen", &top.result("chosen")}},
                             {{"places", {n, picks}}, {"offsets", {2, expert_count}}});
  return {top.result("weights"), top.result("chosen"), slots.result("places"), slots.result("offsets")};
}
matrix dispatched(const matrix& x, const arranged& by) {
  return run_row("dispatch", {{"x", &x}, {"places", &by.places}}, {{"slots", {x.is.rows * picks, x.is.cols}}})
      .result("slots");
}
matrix multiplied(std::string_view row, const matrix& x, const matrix& w, const matrix& offsets,
                  std::int64_t width) {
  return run_row(row, {{"x", &x}, {"w", &w}, {"offsets", &offsets}}, {{"y", {x.is.rows, width}}}).result("y");
}
matrix weights_gradient(const matrix& x, const matrix& y, const matrix& offsets) {
  return run_row("expert_dw", {{"x", &x}, {"y", &y}, {"offsets", &offsets}},
                 {{"dw", {expert_count * x.is.cols, y.is.cols}}})
      .result("dw");
}

/// All values of a layer of experts, forward and backward.
struct made {
  matrix y, dx, dlogits, dw;
};
made run_layer(std::string_view by, const matrix& x, const matrix& logits, const matrix& w,
               const matrix& dy) {
  const std::int64_t n = x.is.rows;
  const arranged at = route(by, logits);
  const matrix slots = dispatched(x, at), up = multiplied("expert_up", slots, w, at.offsets, wide);
  made all;
  all.y = run_row("combine", {{"slots", &up}, {"weights", &at.weights}, {"places", &at.places}},
                  {{"y", {n, wide}}})
              .result("y");
  const call back =
      run_row("combine_grad", {{"dy", &dy}, {"slots", &up}, {"weights", &at.weights}, {"places", &at.places}},
              {{"dslots", {n * picks, wide}}, {"dweights", {n, picks}}});
  all.dw = weights_gradient(slots, back.result("dslots"), at.offsets);
  const matrix dslots = multiplied("expert_down", back.result("dslots"), w, at.offsets, in);
  all.dx = run_row("collect", {{"slots", &dslots}, {"places", &at.places}}, {{"y", {n, in}}}).result("y");
  all.dlogits = run_row(std::string(by) + "_grad",
                        {{"dweights", &back.result("dweights")}, {"logits", &logits}, {"chosen", &at.chosen}},
                        {{"dlogits", {n, expert_count}}})
                    .result("dlogits");
  return all;
}

const matrix x = drawn({tokens, in}, "x"), logits = drawn({tokens, expert_count}, "logits"),
             w = drawn({expert_count * in, wide}, "w"), dy = drawn({tokens, wide}, "dy");

}  // namespace

TEST_CASE("experts: what fused rows make is the sum of what they fuse") {
  const arranged at = route("softmax_top", logits);
  const matrix slots = dispatched(x, at), one = multiplied("expert_up", slots, w, at.offsets, wide),
               more = drawn({expert_count * in, wide}, "more"),
               two = multiplied("expert_up", slots, more, at.offsets, wide);
  const matrix down = multiplied("expert_down", one, w, at.offsets, in),
               of_two = multiplied("expert_down", two, more, at.offsets, in);
  const extent rows{slots.is.rows, in};
  const call added = run_row("expert_down_add",
                             {{"x", &one}, {"w", &w}, {"offsets", &at.offsets}, {"residual", &slots}},
                             {{"y", rows}}),
             both = run_row("expert_down_two",
                            {{"x", &one}, {"w", &w}, {"x2", &two}, {"w2", &more}, {"offsets", &at.offsets}},
                            {{"y", rows}});
  CHECK(added.result("y").of == sum(down, slots).of);
  CHECK(both.result("y").of == sum(down, of_two).of);
}

TEST_CASE("experts: tokens make in two parts what they make together, and gradients of weights add up") {
  for (std::string_view by : {"softmax_top", "sigmoid_top"}) {
    const made whole = run_layer(by, x, logits, w, dy);
    made half[2];
    for (int h = 0; h < 2; ++h) {
      const auto part = [&](const matrix& m) { return rows_of(m, h * 3, h == 0 ? 3 : tokens - 3); };
      half[h] = run_layer(by, part(x), part(logits), w, part(dy));
    }
    CHECK(below(half[0].y, half[1].y).of == whole.y.of);
    CHECK(below(half[0].dx, half[1].dx).of == whole.dx.of);
    CHECK(below(half[0].dlogits, half[1].dlogits).of == whole.dlogits.of);
    CHECK(sum(half[0].dw, half[1].dw).of == whole.dw.of);
    CHECK(std::count(whole.dlogits.of.begin(), whole.dlogits.of.end(), 0) ==
          (by == "softmax_top" ? 0 : tokens * (expert_count - picks)));
  }
}

TEST_CASE(
    "experts: slots of two ranks in segments make what each makes alone; what is in no segment is of no "
    "use") {
  const arranged one = route("softmax_top", rows_of(logits, 0, 3)),
                 two = route("softmax_top", rows_of(logits, 3, 5));
  const matrix first = dispatched(rows_of(x, 0, 3), one), second = dispatched(rows_of(x, 3, 5), two);
  const matrix gap = drawn({2, in}, "gap"), both = below(below(first, gap), second);
  matrix offsets(extent{2, 2 * expert_count});
  for (int row = 0; row < 2; ++row)
    for (std::int64_t e = 0; e < expert_count; ++e) {
      offsets.row(row)[e] = one.offsets.row(row)[e];
      offsets.row(row)[expert_count + e] =
          two.offsets.row(row)[e] + static_cast<element>(first.is.rows + gap.is.rows);
    }
  const matrix made = multiplied("expert_up", both, w, offsets, wide);
  const matrix alone[]{multiplied("expert_up", first, w, one.offsets, wide),
                       multiplied("expert_up", second, w, two.offsets, wide)};
  CHECK(rows_of(made, 0, first.is.rows).of == alone[0].of);
  CHECK(rows_of(made, first.is.rows + 2, second.is.rows).of == alone[1].of);
  CHECK(weights_gradient(both, made, offsets).of ==
        sum(weights_gradient(first, alone[0], one.offsets), weights_gradient(second, alone[1], two.offsets))
            .of);
  CHECK_THROWS_AS(multiplied("expert_up", first, w, offsets, wide), malformed);  // slots that do not exist
}

TEST_CASE("experts: gradients are transposes, and those of normalised rows change no sum") {
  const arranged at = route("softmax_top", logits);
  const matrix slots = dispatched(x, at), ds = drawn(slots.is, "ds"),
               up = multiplied("expert_up", slots, w, at.offsets, wide), du = drawn(up.is, "du");
  const auto combined = [&](const matrix& of, const matrix& weights) {
    return run_row("combine", {{"slots", &of}, {"weights", &weights}, {"places", &at.places}},
                   {{"y", {tokens, wide}}})
        .result("y");
  };
  CHECK(inner(ds, slots) ==
        inner(run_row("collect", {{"slots", &ds}, {"places", &at.places}}, {{"y", {tokens, in}}}).result("y"),
              x));
  CHECK(inner(du, up) == inner(multiplied("expert_down", du, w, at.offsets, in), slots));
  CHECK(inner(du, up) == inner(weights_gradient(slots, du, at.offsets), w));
  const call back =
      run_row("combine_grad", {{"dy", &dy}, {"slots", &up}, {"weights", &at.weights}, {"places", &at.places}},
              {{"dslots", up.is}, {"dweights", {tokens, picks}}});
  CHECK(inner(dy, combined(up, at.weights)) == inner(back.result("dslots"), up));
  CHECK(inner(dy, combined(up, at.weights)) == inner(back.result("dweights"), at.weights));

  const matrix dn = drawn(at.weights.is, "dn"),
               n = run_row("normalize", {{"x", &at.weights}}, {}).result("y"),
               of_weights = run_row("normalize_grad", {{"dy", &dn}, {"x", &at.weights}}, {}).result("dx");
  for (std::int64_t t = 0; t < tokens; ++t) {
    CHECK(add(n.row(t)[0], n.row(t)[1]) == 2);
    CHECK(inner(rows_of(of_weights, t, 1), rows_of(at.weights, t, 1)) == 0);
  }
}

TEST_CASE(
    "experts: of each group they take the first picks; what is past these has no slot and adds nothing") {
  matrix chosen(extent{4, 2});
  chosen.of = {0, 1, 0, 2, 0, 1, 1, 0};
  call c;
  c.rows = 2;
  c.seq = 2;
  c.number = 1;
  c.give("chosen", chosen);
  c.want("places", {4, 2});
  c.want("offsets", {2, expert_count});
  run(find_row("arrange_limited"), c);
  const matrix &places = c.result("places"), &offsets = c.result("offsets");
  constexpr element none = negate(1);
  CHECK(places.of == std::vector<element>{0, 2, none, 4, 1, 3, none, none});
  CHECK(offsets.of == std::vector<element>{0, 2, 4, 5, 2, 4, 5, 5});
  const matrix slots = drawn({8, wide}, "slots"), weights = drawn({4, 2}, "weights");
  const matrix y =
      run_row("combine", {{"slots", &slots}, {"weights", &weights}, {"places", &places}}, {{"y", {4, wide}}})
          .result("y");
  for (std::int64_t i = 0; i < wide; ++i) {
    CHECK(y.row(1)[i] == multiply(weights.row(1)[1], slots.row(4)[i]));
    CHECK(y.row(3)[i] == 0);
  }
  const call dropped = run_row("dropped_statistics", {{"places", &places}}, {{"own", {1, 3 * expert_count}}});
  for (std::int64_t i = 0; i < 3 * expert_count; ++i)
    CHECK(dropped.result("own").of[static_cast<std::size_t>(i)] == (i == 2 * expert_count + 1 ? 3u : 0u));
}

TEST_CASE("experts: what some make of their own slots and the others of theirs adds up to what all make") {
  const arranged at = route("softmax_top", logits);
  const matrix slots = dispatched(x, at), up = multiplied("expert_up", slots, w, at.offsets, wide);
  const matrix all = run_row("combine", {{"slots", &up}, {"weights", &at.weights}, {"places", &at.places}},
                             {{"y", {tokens, wide}}})
                         .result("y");
  matrix parts(all.is);
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>(0, 1), {1, expert_count}}) {
    call c;
    c.give("places", at.places);
    c.give("offsets", at.offsets);
    c.want("own_places", at.places.is);
    c.want("own_offsets", {2, end - begin}, begin);
    run(find_row("own_slots"), c);
    const arranged own{at.weights, at.chosen, c.result("own_places"), c.result("own_offsets")};
    const matrix of_own = multiplied("expert_up", dispatched(x, own),
                                     rows_of(w, begin * in, (end - begin) * in), own.offsets, wide);
    parts = sum(parts,
                run_row("combine", {{"slots", &of_own}, {"weights", &own.weights}, {"places", &own.places}},
                        {{"y", {tokens, wide}}})
                    .result("y"));
  }
  CHECK(parts.of == all.of);
}

}  // namespace rows_experts_test
