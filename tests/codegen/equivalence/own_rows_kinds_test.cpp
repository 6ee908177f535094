// SPDX-License-Identifier: Apache-2.0
// Programs with many kinds of a user's own ops compute the model, on both targets, on one rank and with tp.
#include <doctest/doctest.h>

#include <odd/models.hpp>
#include <rankc/plan/make_plan.hpp>

#include "subject.hpp"

namespace own_rows_kinds_test {

using namespace rankc;

namespace {

constexpr op_row shaped(std::string_view name, std::string_view host, std::string_view cuda) {
  op_row row;
  row.name = name;
  row.ports[0] = ports::out("y", "tokens width");
  row.ports[1] = ports::in("x", "tokens width");
  row.rule = placement_rules::elementwise<false>;
  row.host = {"mine", host};
  row.cuda = {"mine", cuda};
  row.header = "mine.hpp";
  return row;
}

/// The rows of an op that needs whole sequences on the host alone, and of its gradient.
constexpr void of_sequences(complaint& c, types in, type* out, const op& o) {
  placement_rules::gradient_of_elementwise(c, in, out, o);
  placement_rules::whole_sequences(c, "the value", in[0]);
}
constexpr op_row told_grad = [] {
  op_row row = shaped("told_grad", "rows seq width", "tokens*width");
  row.ports[2] = row.ports[1];
  row.ports[2].name = "z";
  row.rule = of_sequences;
  return row;
}();
constexpr op_row told = [] {
  op_row row = shaped("told", "rows seq width", "tokens*width");
  row.rule = [](complaint& c, types in, type* out, const op& o) {
    placement_rules::elementwise<false>(c, in, out, o);
    placement_rules::whole_sequences(c, "the value", in[0]);
  };
  row.dual = [](backward& b) { b.give("x", b.apply(told_grad, {b.gradient("y"), b["x"]})); };
  return row;
}();

constexpr op_row scratched = [] {
  op_row row = shaped("scratched", "tokens*width", "tokens*width");
  row.ports[2] = row.ports[1];
  row.ports[1] = ports::scratch("work");
  row.host.scratch =
      row.cuda.scratch = [](const op_sizes&, const kernel_setting&) { return std::size_t{64}; };
  row.dual = [](backward& b) { b.give("x", b.apply(ops::mul, {b.gradient("y"), b["y"]})); };
  return row;
}();

/// The gradient uses the second result, which itself has no gradient.
constexpr op_row masked = [] {
  op_row row = shaped("masked", "tokens*width", "tokens*width");
  row.ports[2] = row.ports[1];
  row.ports[1] = ports::out("mask", "tokens width");
  row.rule = [](complaint& c, types in, type* out, const op& o) {
    placement_rules::elementwise<false>(c, in, out, o);
    out[1] = out[0];
  };
  row.dual = [](backward& b) { b.give("x", b.apply(ops::mul, {b.gradient("y"), b["mask"]})); };
  return row;
}();

template <const op_row& Op>
struct applied {
  static constexpr std::string_view name = "applied";
  constexpr value forward(trace& t, value x, const odd::context& c) const {
    value u = odd::up(t, enter_tp(rms_norm(x, odd::gain(t)), c), "u", odd::ffn);
    const attributes sequences{.rows = c.rows, .seq = c.seq};
    value y = t.apply(Op, {u}, {}, {.with = Op.takes("rows") ? sequences : attributes{}});
    return x + leave_tp(odd::down(t, y, "d", odd::ffn), c);
  }
};

template <const op_row& Op>
void check_holds() {
  for (const int tp : {1, 2}) {
    const plan_data plan =
        make_plan("kinds", odd::make(repeat{2, applied<Op>{}}), {.world = tp, .tp = tp}, schedules::gpipe{2},
                  training{.seq = 8, .global_batch = 4, .precision = f32}, clusters::cpu);
    REQUIRE(plan.diagnostics.empty());
    for (const auto to : {codegen::target::host, codegen::target::cuda}) {
      CAPTURE(Op.name);
      CAPTURE(tp);
      CHECK(equivalence_tests::subject(plan, to).reason() == "");
    }
  }
}

}  // namespace

TEST_CASE("kernels that take sequences on one target, scratch, and results without a gradient") {
  check_holds<told>();
  check_holds<scratched>();
  check_holds<masked>();
}

}  // namespace own_rows_kinds_test
