// SPDX-License-Identifier: Apache-2.0
// Cross entropy, whole and over a split vocabulary, against loops and central differences.
#include "workspace.hpp"

namespace cross_entropy_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr int tokens = 6, vocab = 34, parts = 2, part = vocab / parts;
constexpr double scale = 1.0 / 48;

struct problem {
  values logits = random_values(tokens * vocab, 1);
  ids targets{0, 16, 17, 33, 5, 30};  // both ends of both parts
  problem() {
    for (double& x : logits) x *= 8;
  }
};

double loss_reference(const values& logits, const ids& targets) {
  double loss = 0;
  for (int n = 0; n < tokens; ++n) {
    double total = 0;
    for (int c = 0; c < vocab; ++c) total += std::exp(logits[n * vocab + c]);
    loss += scale * (std::log(total) - logits[n * vocab + targets[n]]);
  }
  return loss;
}

// One rank's columns.
values columns(const values& logits, int which) {
  values cut;
  for (int n = 0; n < tokens; ++n)
    for (int c = 0; c < part; ++c) cut.push_back(logits[n * vocab + which * part + c]);
  return cut;
}

struct result {
  double loss;
  values dlogits;
};

template <class T>
result whole(const problem& p) {
  workspace<T> space;
  const at logits = space.put(p.logits), targets = space.put(p.targets), top = space.room(tokens);
  const at sums = space.room(2 * tokens), dsums = space.room(2 * tokens), loss = space.room(1);
  const at dlogits = space.room(p.logits.size());
  host::row_max<T>(space.lane(), top, logits, tokens, vocab);
  host::exp_sums<T>(space.lane(), sums, logits, top, targets, tokens, vocab, 0);
  host::cross_entropy<T>(space.lane(), loss, sums, tokens, scale, false);
  host::cross_entropy_grad<T>(space.lane(), dsums, sums, tokens, scale);
  host::exp_sums_grad<T>(space.lane(), dlogits, dsums, logits, top, targets, tokens, vocab, 0);
  const result got{space.get(loss, 1)[0], space.get(dlogits, p.logits.size())};
  host::exp_sums_grad<T>(space.lane(), logits, dsums, logits, top, targets, tokens, vocab, 0);
  CHECK(space.get(logits, p.logits.size()) == got.dlogits);
  return got;
}

}  // namespace

TEST_CASE_TEMPLATE("row maxima, first and last column included", T, float, double) {
  workspace<T> space;
  values logits = random_values(3 * vocab, 1);
  logits[0] = 5;
  logits[2 * vocab - 1] = 6;
  logits[2 * vocab + 20] = 1000;
  const at top = space.room(3);
  host::row_max<T>(space.lane(), top, space.put(logits), 3, vocab);
  CHECK(space.get(top, 3) == values{5, 6, 1000});
}

TEST_CASE_TEMPLATE("the loss is log sum exp less the target's logit", T, float, double) {
  const problem p;
  check_near({whole<T>(p).loss}, {loss_reference(p.logits, p.targets)}, tolerance<T>);
}

TEST_CASE("the gradient of the logits is a central difference, in place too") {
  const problem p;
  const auto of_logits = [&](const values& v) { return values{loss_reference(v, p.targets)}; };
  check_near(whole<double>(p).dlogits, derivative(of_logits, p.logits, {1}), difference_tolerance);
}

TEST_CASE("the loss of a microbatch adds to those before, in place of what was there if told so") {
  workspace<double> space;
  const at sums = space.put(values{2, -1, 3, -2}), loss = space.put(values{10});
  host::cross_entropy<double>(space.lane(), loss, sums, 2, 0.5, true);
  check_near(space.get(loss, 1), {10 + 0.5 * (std::log(6.0) + 3)}, 1e-15);
  host::cross_entropy<double>(space.lane(), loss, sums, 2, 0.5, false);
  check_near(space.get(loss, 1), {0.5 * (std::log(6.0) + 3)}, 1e-15);
}

TEST_CASE_TEMPLATE("a vocabulary split over two ranks gives the whole one's loss and gradient", T, float,
                   double) {
  const problem p;
  const result want = whole<T>(p);
  workspace<T> space;
  at logits[parts], tops[parts], sums[parts];
  values top(tokens, -1e30), total(2 * tokens);
  const at targets = space.put(p.targets);
  for (int i = 0; i < parts; ++i) {
    logits[i] = space.put(columns(p.logits, i));
    tops[i] = space.room(tokens);
    sums[i] = space.room(2 * tokens);
    host::row_max<T>(space.lane(), tops[i], logits[i], tokens, part);
    const values mine = space.get(tops[i], tokens);
    for (int n = 0; n < tokens; ++n) top[n] = std::max(top[n], mine[n]);
  }
  const at shared_top = space.put(top);
  for (int i = 0; i < parts; ++i) {
    host::exp_sums<T>(space.lane(), sums[i], logits[i], shared_top, targets, tokens, part, i * part);
    total = sum(total, space.get(sums[i], 2 * tokens));
  }
  const at shared_sums = space.put(total), dsums = space.room(2 * tokens), loss = space.room(1);
  host::cross_entropy<T>(space.lane(), loss, shared_sums, tokens, scale, false);
  host::cross_entropy_grad<T>(space.lane(), dsums, shared_sums, tokens, scale);
  check_near(space.get(loss, 1), {want.loss}, tolerance<T>);
  for (int i = 0; i < parts; ++i) {
    const at dlogits = space.room(tokens * part);
    host::exp_sums_grad<T>(space.lane(), dlogits, dsums, logits[i], shared_top, targets, tokens, part,
                           i * part);
    check_near(space.get(dlogits, tokens * part), columns(want.dlogits, i), tolerance<T>);
  }
}

}  // namespace cross_entropy_test
