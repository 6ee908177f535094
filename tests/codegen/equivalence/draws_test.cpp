// SPDX-License-Identifier: Apache-2.0
// Gradients that are scaled, doubled, or replaced by combinations of other values with factors fitted to the
// fields of one draw. Every draw refuses them, also the one that they were fitted to.
#include <doctest/doctest.h>

#include <equivalence/model.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../example_plans.hpp"
#include "refused.hpp"

namespace draws_test {

using namespace equivalence_tests;
using rankc::codegen::access;  // unistd.h has a function of this name
namespace algebra = rankc::codegen::algebra;

namespace {

constexpr std::uint64_t seeds[]{1, 2, 3};

const subject& one_rank() {
  static const subject s(examples::plan("gpt_one_rank"), target::host);
  return s;
}

/// The reason why one draw refuses a program; empty if it accepts.
std::string reason(const subject& s, std::uint64_t seed) {
  const equivalence e = check_equivalence(s.p, s.order, s.model, seed);
  return e.holds ? "" : e.reasons.at(0);
}
int id_of(const std::string& reason) { return placed_of(reason).what.id; }

/// Inserts ops into a program of one rank, each after the one before.
class writer {
 public:
  writer(subject& s, std::size_t behind) : s_(s), at_(behind) {}

  /// Insert a row that has no attributes but `number`, with operands of one shape. Its result is at `bytes`.
  access put(const char* row, const std::vector<access>& operands, access bytes, const tensor_shape& shape,
             double number = 0) {
    static constexpr const char* ports[]{"a", "b"};
    op o;
    o.name = row;
    o.row = row;
    o.number = number;
    if (number != 0) o.given = {number};
    o.reads = operands;
    bytes.value = s_.new_value();
    bytes.replaces = -1;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].begin == bytes.begin) bytes.replaces = static_cast<int>(i);
    o.writes = {bytes};
    o.views.push_back(view_of("y", true, 0, shape));
    for (std::size_t i = 0; i < operands.size(); ++i)
      o.views.push_back(view_of(operands.size() == 1 ? "x" : ports[i], false, static_cast<int>(i), shape));
    s_.insert_after(0, &s_.p.ranks[0].ops[at_], o);
    std::vector<int>& places = s_.order.position[0];
    std::iota(places.begin(), places.end(), 0);
    ++at_;
    return bytes;
  }
  /// Let later ops read `by` in place of a value.
  void replace(int value, const access& by) {
    std::vector<op>& ops = s_.p.ranks[0].ops;
    for (std::size_t i = at_ + 1; i < ops.size(); ++i)
      for (access& a : ops[i].reads)
        if (a.value == value) a = by;
  }

 private:
  static view view_of(const char* port, bool written, int index, const tensor_shape& shape) {
    return {.port = port,
            .written = written,
            .accesses = {index, 1},
            .shape = shape,
            .stride = shape.size() == 2 ? shape[1] : 1};
  }
  subject& s_;
  std::size_t at_;
};

/// Insert ops that change, in place, the gradient that leaves the first layer's first norm.
subject changed(const std::function<access(writer&, access, const tensor_shape&)>& change) {
  subject s = one_rank();
  const std::vector<op>& ops = s.p.ranks[0].ops;
  const auto made = std::find_if(ops.begin(), ops.end(),
                                 [](const op& o) { return o.name == "0B0: layers.0: layer_norm_dx"; });
  REQUIRE(made != ops.end());
  const access dx = made->writes.at(0);
  const tensor_shape shape = made->views.at(0).shape;
  writer behind(s, static_cast<std::size_t>(made - ops.begin()));
  behind.replace(dx.value, change(behind, dx, shape));
  return s;
}
subject multiplied(const std::vector<double>& factors) {
  return changed([&](writer& w, access x, const tensor_shape& shape) {
    for (const double factor : factors) x = w.put("scale", {x}, x, shape, factor);
    return x;
  });
}
subject doubled(int times) {
  return changed([&](writer& w, access x, const tensor_shape& shape) {
    for (int i = 0; i < times; ++i) x = w.put("add", {x, x}, x, shape);
    return x;
  });
}

using integer = std::vector<double>;  // a large number, as addends that are exact doubles

/// The number n with n x = g, in both drawn fields.
/// Source: the Chinese remainder theorem.
integer quotient(algebra::term g, algebra::term x) {
  const auto& [a, b] = algebra::drawn::now();
  const auto over = [](const algebra::field& f, std::uint64_t y, std::uint64_t z) {
    return f.product(y, f.power(z, f.prime - 2));
  };
  const std::uint64_t in_a = over(a, g.a, x.a), in_b = over(b, g.b, x.b);
  const std::uint64_t more = over(b, b.difference(in_b, in_a % b.prime), a.prime % b.prime);
  __extension__ using wide = unsigned __int128;
  wide left = in_a + static_cast<wide>(a.prime) * more;
  integer parts;
  for (int shift = 0; left > 0; shift += 53, left >>= 53)
    parts.push_back(
        std::ldexp(static_cast<double>(static_cast<std::uint64_t>(left) & ((1ull << 53) - 1)), shift));
  return parts;
}

/// The gradient of a weight is replaced by a multiple of its moment. It equals the gradient in the fields of
/// one draw.
subject forged(std::uint64_t seed) {
  subject s = one_rank();
  const std::string name = "layers.0.wq";
  const algebra::drawn scope(algebra::draw_fields(seed));
  const algebra::model m(s.model);
  const algebra::model::parameter& of = m.parameters().at(name);
  const op& begin = s.p.ranks[0].ops[0];
  const auto held = [&](holding_kind kind) {
    for (std::size_t i = 0; i < begin.holds.size(); ++i)
      if (begin.holds[i].name == name && begin.holds[i].kind == kind) return begin.writes[i];
    throw std::logic_error("the step begins without a tensor of " + name);
  };
  const access weight = held(holding_kind::weight), moment = held(holding_kind::first_moment);
  const op& update = *s.find(0, "", "adamw").at(0);
  int gradient = -1;
  for (std::size_t i = 0; i + 1 < update.views.size(); ++i)
    if (update.views[i + 1].port == "gradient" &&
        update.reads[static_cast<std::size_t>(update.views[i].accesses.first)].value == weight.value)
      gradient = update.reads[static_cast<std::size_t>(update.views[i + 1].accesses.first)].value;
  REQUIRE(gradient >= 0);

  const tensor_shape shape{{of.shape[0], of.shape[1]}, 2};
  const std::size_t bytes = moment.end - moment.begin;
  std::size_t free = s.p.ranks[0].arena_bytes;
  const auto fresh = [&] {
    const access a{free, free + bytes, 0, element_type::f32};
    free += bytes;
    return a;
  };
  const std::vector<op>& ops = s.p.ranks[0].ops;
  const auto norm = std::find_if(ops.begin(), ops.end(), [](const op& o) { return o.row == "sum_squares"; });
  writer w(s, static_cast<std::size_t>(norm - ops.begin()) - 1);
  access sum;
  for (const double part : quotient(of.gradient, of.state[1])) {
    const access multiple = w.put("scale", {moment}, fresh(), shape, part);
    sum = sum.value < 0 ? multiple : w.put("add", {sum, multiple}, fresh(), shape);
  }
  w.replace(gradient, sum);
  return s;
}

}  // namespace

TEST_CASE("a gradient is multiplied, also by powers of two") {
  for (const std::vector<double>& factors :
       std::vector<std::vector<double>>{{3}, {0x1p61}, {0x1p-61}, {0x1p122}, {0x1p-976}, {0x1p30, 0x1p31}}) {
    const subject s = multiplied(factors);
    for (const std::uint64_t seed : seeds) CHECK(id_of(reason(s, seed)) == 7691);
  }
  for (const std::uint64_t seed : seeds) CHECK(reason(multiplied({1}), seed) == "");
}

TEST_CASE("a gradient is added to itself") {
  for (const int times : {1, 2, 61})
    for (const std::uint64_t seed : seeds) CHECK(id_of(reason(doubled(times), seed)) == 7690);
}

TEST_CASE("a gradient is made of a moment by numbers that fit one draw") {
  for (const std::uint64_t fitted : seeds) {
    const subject s = forged(fitted);
    for (const std::uint64_t seed : seeds) CHECK(id_of(reason(s, seed)) == 7691);
  }
}

TEST_CASE("numbers that fit one draw do not fit another") {
  const auto terms_of = [](std::uint64_t seed) {
    const algebra::drawn scope(algebra::draw_fields(seed));
    return std::pair(algebra::leaf("gradient", "g"), algebra::leaf("weight", "x"));
  };
  const auto fits = [&](const integer& n, std::uint64_t seed) {
    const auto [g, x] = terms_of(seed);
    const algebra::drawn scope(algebra::draw_fields(seed));
    algebra::term sum = algebra::zero;
    for (const double part : n) sum = sum + part * x;
    return sum == g;
  };
  for (const std::uint64_t fitted : seeds) {
    const auto [g, x] = terms_of(fitted);
    const algebra::drawn scope(algebra::draw_fields(fitted));
    const integer n = quotient(g, x);
    for (const std::uint64_t seed : seeds) CHECK(fits(n, seed) == (seed == fitted));
  }
}

TEST_CASE("the norm is given the squares of a weight") {
  subject s = one_rank();
  const op& begin = s.p.ranks[0].ops[0];
  const auto weight = std::find_if(begin.holds.begin(), begin.holds.end(), [](const holding& h) {
    return h.kind == holding_kind::weight && h.name == "layers.0.wq";
  });
  REQUIRE(weight != begin.holds.end());
  const access by = begin.writes[static_cast<std::size_t>(weight - begin.holds.begin())];
  op& norm = *s.find(0, "", "sum_squares").at(0);
  const auto as_large = std::find_if(norm.reads.begin(), norm.reads.end(),
                                     [&](const access& a) { return a.end - a.begin == by.end - by.begin; });
  REQUIRE(as_large != norm.reads.end());
  *as_large = by;
  CHECK(placed_of(s.reason()).what == said{7692, {"layers.0.wq"}});
}

TEST_CASE("a seed gives the same verdict and text again, and another seed other primes") {
  const subject sound = one_rank(), wrong = multiplied({2});
  for (const std::uint64_t seed : seeds) {
    const equivalence once = check_equivalence(sound.p, sound.order, sound.model, seed),
                      again = check_equivalence(sound.p, sound.order, sound.model, seed);
    CHECK(once.holds);
    CHECK(once.claims == again.claims);
    CHECK(once.drawn.seed == seed);
    CHECK(once.drawn.primes == again.drawn.primes);
    CHECK(once.drawn.chance == again.drawn.chance);
    CHECK(once.drawn.chance < 0x1p-40);
    CHECK(reason(wrong, seed) == reason(wrong, seed));
    CHECK(reason(wrong, seed) == reason(wrong, seeds[0]));
  }
  const auto primes = [&](std::uint64_t seed) {
    return check_equivalence(sound.p, sound.order, sound.model, seed).drawn.primes;
  };
  CHECK(primes(1)[0] != primes(2)[0]);
  CHECK(primes(1)[1] != primes(2)[1]);
  CHECK(random_seed() != random_seed());
}

}  // namespace draws_test
