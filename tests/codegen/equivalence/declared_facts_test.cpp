// SPDX-License-Identifier: Apache-2.0
// The facts of a user's row follow from its op_row. Copies of rankc's rows get the same facts as the
// handwritten lines of the table of facts.
#include <doctest/doctest.h>

#include <rankc/codegen/declared_facts.hpp>
#include <rankc/rankc.hpp>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace declared_facts_test {

using namespace rankc;

namespace {

/// "ports
///  rule
///  needs
///  attributes
///  gradients", or the reason why they are unknown.
std::string text_of(const codegen::specification::row_facts& f) {
  if (!f.unknown.empty()) return f.unknown;
  return f.ports + " | " + f.rule + " | " + f.needs + " | " + f.attributes + " | " + f.gradients;
}

std::vector<codegen::specification::row_facts> all_facts(const std::function<void(trace&)>& layer) {
  trace t;
  layer(t);
  t.forward_ops = t.ops.size();
  REQUIRE_MESSAGE(t.said.empty(), t.said.front().view());
  return codegen::declared_facts({t});
}
std::string facts(const std::function<void(trace&)>& layer) { return text_of(all_facts(layer).at(0)); }

constexpr dim tokens{"tokens", 32}, hidden{"hidden", 16}, ffn{"ffn", 24}, vocab{"vocab", 64},
    heads{"heads", 16, 4, "head_dim"};

value rows(trace& t, dim features = hidden) {
  type x;
  x.ndim = 2;
  x.shape[0] = tokens;
  x.shape[1] = features;
  return t.add(x);
}
value ids(trace& t) {
  type x;
  x.ndim = 1;
  x.shape[0] = tokens;
  x.holds = element::index;
  return t.add(x);
}
value weight(trace& t, const char* name, std::initializer_list<dim> shape) {
  return t.parameter(name, shape, {}, initial::zeros);
}

/// A user's row like one of rankc's.
op_row mine(op_row row) {
  row.name = "mine";
  row.header = "mine.hpp";
  return row;
}
/// The same, with a change.
op_row changed(const op_row& like, const std::function<void(op_row&)>& change) {
  op_row row = mine(like);
  change(row);
  return row;
}

/// The gradient of a user's op on two values, from a user's op and two of rankc's.
constexpr op_row bend_grad{.name = "bend_grad",
                           .ports = {ports::out("dx", "tokens width"), ports::in("dy", "tokens width"),
                                     ports::in("x", "tokens width")},
                           .rule = placement_rules::gradient_of_elementwise,
                           .kernel = "bend_grad",
                           .sizes = "tokens*width number",
                           .header = "mine.hpp"};
constexpr op_row bend{.name = "bend",
                      .ports = {ports::out("y", "tokens width"), ports::in("a", "tokens width"),
                                ports::in("b", "tokens width")},
                      .rule =
                          [](complaint& c, types in, type* out, const op& o) {
                            placement_rules::elementwise<false>(c, in, out, o);
                            for (axis a : axes)
                              if (in[1][a] != in[0][a])
                                c.found(a, "b", in[1], "the placement of a", "convert it");
                          },
                      .dual =
                          [](backward& b) {
                            const value dy = b.gradient("y");
                            b.give("a", b.apply(ops::mul, {b.apply(bend_grad, {dy, b["a"]}), b["b"]}));
                            b.give("b", dy);
                            b.give("b", b.apply(ops::mul, {dy, b["y"]}));
                          },
                      .kernel = "bend",
                      .sizes = "tokens*width number",
                      .header = "mine.hpp"};

/// A placement rule that refuses operands sharded along their tokens.
void whole_tokens(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  for (axis a : axes)
    if (in[0][a] == V(0)) c.found(a, "the value", in[0], "all tokens", "gather them");
}
const op_row of_sequences = changed(ops::gelu, [](op_row& r) {
  r.host.sizes = r.cuda.sizes = "rows seq width";
  r.rule = whole_tokens;
  r.dual = stop_gradient;
});
const op_row of_groups = [] {
  op_row row = changed(bend_grad, [](op_row& r) {
    for (port& p : r.ports)
      if (p.as != use::none) p.shape = "tokens groups*size";
    r.host.sizes = r.cuda.sizes = "tokens*groups";
  });
  row.name = "of_groups";
  return row;
}();

/// The reason why a row on one value has no facts.
std::string why(const op_row& row, attributes with = {}, dim features = hidden) {
  return facts([&](trace& t) { t.apply(row, {rows(t, features)}, {}, {.with = with}); });
}
std::string why_changed(const std::function<void(op_row&)>& change, attributes with = {}) {
  return why(changed(ops::gelu, change), with);
}

}  // namespace

TEST_CASE("copies of rankc's rows have the facts of the table") {
  const op_row gelu = mine(ops::gelu), mul = mine(ops::mul), bias = mine(ops::bias),
               linear = mine(ops::linear), rms_norm = mine(ops::rms_norm), softmax = mine(ops::softmax),
               embedding = mine(ops::embedding), swiglu = mine(ops::swiglu), scale = mine(ops::scale);
  CHECK(facts([&](trace& t) { t.apply(gelu, {rows(t)}); }) ==
        "y(t w) x(t w) | y = x |  |  | x = gelu_grad(dy, x)");
  CHECK(facts([&](trace& t) {
          const value a = rows(t), b = rows(t);
          t.apply(mul, {a, b});
        }) == "y(t w)^a,b a(t w) b(t w) | y = a' b' |  |  | a b = mul_grad(dy, a, b)");
  CHECK(facts([&](trace& t) {
          const value x = rows(t);
          t.apply(bias, {x, weight(t, "b", {hidden})});
        }) == "y(t w)^x x(t w) b(w) | y = x b |  |  | b = bias_grad(dy); x = dy");
  CHECK(facts([&](trace& t) {
          const value x = rows(t);
          t.apply(linear, {x, weight(t, "w", {ffn, hidden})});
        }) == "y(t w) x(t o) w(w o) | y = sum(o) x' w |  |  | x = linear_dx(dy, w); w = linear_dw(dy, x)");
  CHECK(facts([&](trace& t) {
          const value x = rows(t);
          t.apply(rms_norm, {x, weight(t, "g", {hidden})}, {}, {.with = {.eps = 1e-5}});
        }) ==
        "y(t w) statistics(t 1)/wide x(t w) gain(w) | y = x gain; statistics = x gain | whole(w) | number | "
        "x = rms_norm_dx(dy, x, statistics, gain); gain = rms_norm_dw(dy, x, statistics)");
  CHECK(facts([&](trace& t) { t.apply(softmax, {rows(t)}); }) ==
        "y(t w)^x x(t w) | y = x | whole(w) |  | x = softmax_dx(dy, y)");
  CHECK(facts([&](trace& t) {
          const value words = ids(t);
          t.apply(embedding, {words, weight(t, "table", {vocab, hidden})});
        }) ==
        "y(t w) ids(t)/i32 table(o w) | y = sum(o) ids table | whole(w) first(o) |  | "
        "table = embedding_grad(dy, ids)");
  CHECK(facts([&](trace& t) {
          const value gate = rows(t), up = rows(t);
          t.apply(swiglu, {gate, up});
        }).starts_with("y(t w) gate(t w):"));
  CHECK(facts([&](trace& t) { t.apply(scale, {rows(t)}, {}, {.with = {.factor = 3}}); }) ==
        "y(t w)^x x(t w) | y = x' |  | number | x = scale(dy)");
}

TEST_CASE("a dual may apply several ops, and give a gradient in parts") {
  const auto made = all_facts([](trace& t) {
    const value a = rows(t), b = rows(t);
    t.apply(bend, {a, b}, {}, {.with = {.factor = 2}});
    t.apply(bend, {a, a}, {}, {.with = {.factor = 3}});
  });
  REQUIRE(made.size() == 2);
  CHECK(made[0].row == "bend");
  CHECK(text_of(made[0]) ==
        "y(t w) a(t w) b(t w) | y = a b |  | number | _0 = bend_grad(dy, a); a = mul(_0, b); "
        "_2 = mul(dy, y); b = add(dy, _2)");
  CHECK(made[1].row == "bend_grad");
  CHECK(text_of(made[1]) == "dx(t w) dy(t w) x(t w) | dx = dy' x |  | number | ");
}

TEST_CASE("a gradient that a dual gives to two operands is that of both") {
  const op_row both = changed(bend, [](op_row& r) {
    r.dual = [](backward& b) {
      const value g = b.apply(bend_grad, {b.gradient("y"), b["y"]});
      b.give("a", g);
      b.give("b", g);
    };
  });
  CHECK(facts([&](trace& t) {
          const value a = rows(t), b = rows(t);
          t.apply(both, {a, b});
        }) == "y(t w) a(t w) b(t w) | y = a b |  | number | _0 = bend_grad(dy, y); a = _0; b = _0");
}

TEST_CASE("a dual that gives nothing lets no gradient through; a kernel of sequences takes whole ones") {
  const op_row stop = changed(ops::gelu, [](op_row& r) { r.dual = stop_gradient; });
  CHECK(facts([&](trace& t) { t.apply(stop, {rows(t)}); }) == "y(t w) x(t w) | y = x |  |  | ");
  CHECK(facts([&](trace& t) {
          t.apply(stop, {rows(t)}, {}, {.with = {.rows = 2, .seq = 16, .factor = 3}});
        }) == "y(t w) x(t w) | y = x |  |  | ");  // the kernel takes none of these attributes
  CHECK(facts([&](trace& t) { t.apply(of_sequences, {rows(t)}, {}, {.with = {.rows = 4, .seq = 8}}); }) ==
        "y(t w) x(t w) | y = x' | sequences | seq | ");
}

TEST_CASE("why no facts follow from the kernels, the attributes or the names of an op_row") {
  CHECK(why_changed([](op_row& r) { r.host.sizes = "tokens*width cp"; }) == "its kernels take cp");
  CHECK(why_changed([](op_row& r) { r.cuda.sizes = "tokens*width number"; }, {.factor = 2}) ==
        "it is given the number 2, and the kernel of one target alone takes it");
  CHECK(why(of_sequences, {.seq = 8}) ==
        "its kernels take rows or seq, and it is given 0 sequences of 8 for 32 tokens");
  CHECK(why_changed([](op_row& r) { r.host.sizes = "tokens*width seq"; }, {.rows = 4, .seq = 8}) ==
        "its kernels take rows or seq, and its typing rule takes operands sharded along tokens");
  CHECK(why_changed([](op_row& r) { r.ports[0].name = "Y"; }) ==
        "port Y has a name of other characters than a to z, digits and _");
  CHECK(why_changed([](op_row& r) {
          r.ports[1].name = "dy";
          r.dual = stop_gradient;
        }) == "port dy has the name of the gradient of y");
  CHECK(why_changed([](op_row& r) { r.name = "copy"; }) == "one of rankc's ops has its name");
  CHECK(why_changed([](op_row& r) { r.name = "adamw"; }) == "one of rankc's ops has its name");
  static const op_row first = mine(ops::gelu), second = mine(ops::sigmoid);
  const auto both = all_facts([](trace& t) { t.apply(second, {t.apply(first, {rows(t)})}); });
  REQUIRE(both.size() == 1);
  CHECK(both[0].unknown == "another row has its name");
}

TEST_CASE("why no facts follow from the typing rule of an op_row") {
  CHECK(why_changed([](op_row& r) { r.rule = whole_tokens; }) ==
        "its typing rule refuses operands sharded along tokens, and no kernel takes rows or seq");
  CHECK(why_changed([](op_row& r) {
          r.rule = [](complaint&, types in, type* out, const op&) {
            out[0] = in[0];
            for (axis a : axes)
              if (in[0][a] == V(1)) out[0][a] = I;
          };
        }) ==
        "if operands are sharded along width, its typing rule makes y neither sharded nor a pending sum");
  CHECK(facts([](trace& t) {
          static const op_row sum = mine(ops::add);
          const value a = rows(t), b = rows(t);
          t.apply(sum, {a, b});
        }) == "its typing rule takes pending sums only in all operands at once");
  CHECK(why(mine(ops::row_max)) == "it takes a maximum");
  static const op_row attention = mine(ops::attention);
  CHECK(facts([](trace& t) {
          const value q = rows(t, heads), k = rows(t, heads), v = rows(t, heads);
          t.apply(attention, {q, k, v}, {}, {.with = {.rows = 4, .seq = 8}});
        }) == "its typing rule shards heads and kv_heads, and none of them alone");
  const op_row of_ten = changed(ops::rms_norm, [](op_row& r) {
    r.ports[0].shape = "tokens a*b";
    r.ports[1].shape = "tokens c*d";
    r.ports[2].shape = "tokens e*f";
    r.ports[3].shape = "i g*h";
  });
  trace t;
  const value x = rows(t);
  const value gain = weight(t, "g", {hidden});
  t.apply(ops::rms_norm, {x, gain}, {}, {.with = {.eps = 1e-5}});
  t.ops.back().kind = &of_ten;
  t.forward_ops = 1;
  CHECK(text_of(codegen::declared_facts({t}).at(0)) == "it has more than 9 symbols");
}

TEST_CASE("why no facts follow from the dual of an op_row") {
  CHECK(why_changed([](op_row& r) { r.dual = nullptr; }) == "it has no dual");
  CHECK(why_changed([](op_row& r) {
          r.dual = [](backward& b) {
            b.give("x", b.t.apply(ops::scale, {b.gradient("y")}, {}, {.with = {.factor = -2}}));
          };
        }) == "its dual gives scale another number than its own");
  CHECK(why(changed(of_sequences,
                    [](op_row& r) {
                      r.dual = [](backward& b) { b.give("x", b.apply(ops::mul, {b.gradient("y"), b["x"]})); };
                    }),
            {.rows = 4, .seq = 8}) == "its dual gives mul another seq than it takes");
  static const op_row other = changed(bend_grad, [](op_row& r) { r.host.sizes = "tokens*width cp"; });
  CHECK(why_changed([](op_row& r) {
          r.dual = [](backward& b) { b.give("x", b.apply(other, {b.gradient("y"), b["x"]})); };
          r.name = "outer";
        }) == "its dual applies mine, and its kernels take cp");
  const op_row in_heads = changed(ops::gelu, [](op_row& r) {
    r.ports[0].shape = r.ports[1].shape = "tokens heads*dim";
    r.dual = [](backward& b) { b.give("x", b.apply(of_groups, {b.gradient("y"), b["x"]})); };
  });
  CHECK(why(in_heads, {}, heads) == "its dual applies of_groups to units of 4 size, which are not its own");
  const op_row half = changed(ops::gelu, [](op_row& r) {
    r.dual = [](backward& b) { b.give("x", b.apply(ops::gelu, {b.gradient("y")})); };
  });
  CHECK(why(half) == "y(t w) x(t w) | y = x |  |  | x = gelu(dy)");
}

TEST_CASE("rows whose ops differ, or that share a row without facts, have none") {
  const op_row by_number = changed(bend, [](op_row& r) {
    r.dual = [](backward& b) {
      if (b.of.with.factor > 2) b.give("a", b.gradient("y"));
      else b.give("b", b.gradient("y"));
    };
  });
  CHECK(facts([&](trace& t) {
          const value a = rows(t), b = rows(t);
          t.apply(by_number, {a, b}, {}, {.with = {.factor = 2}});
          t.apply(by_number, {a, b}, {}, {.with = {.factor = 3}});
        }) == "its ops differ in what they declare");
  const op_row needy = changed(bend, [](op_row& r) {
    r.rule = [](complaint& c, types in, type* out, const op& o) {
      bend.rule(c, in, out, o);
      for (axis a : axes)
        if (o.with.factor > 2 && in[0][a] == V(1)) c.found(a, "a", in[0], "whole rows", "gather them");
    };
  });
  CHECK(facts([&](trace& t) {
          const value a = rows(t), b = rows(t);
          t.apply(needy, {a, b}, {}, {.with = {.factor = 2}});
          t.apply(needy, {a, b}, {}, {.with = {.factor = 3}});
        }) == "its ops differ in what they declare");
  static const op_row shared = changed(bend_grad, [](op_row& r) { r.cuda.sizes = "tokens*width"; });
  const auto with_shared = [](const char* name) {
    op_row row = changed(bend, [](op_row& r) {
      r.dual = [](backward& b) { b.give("a", b.apply(shared, {b.gradient("y"), b["a"]})); };
    });
    row.name = name;
    return row;
  };
  const op_row relu = with_shared("relu"), threshold = with_shared("threshold");
  const auto made = all_facts([&](trace& t) {
    const value a = rows(t), b = rows(t);
    t.apply(relu, {a, b});
    t.apply(threshold, {a, b}, {}, {.with = {.factor = 3}});
  });
  REQUIRE(made.size() == 3);
  const std::string why_shared = "it is given the number 3, and the kernel of one target alone takes it";
  CHECK(made[0].unknown == "its dual applies mine, and " + why_shared);
  CHECK(made[1].unknown == why_shared);
  CHECK(made[2].unknown == "its dual applies mine, and " + why_shared);
}

}  // namespace declared_facts_test
