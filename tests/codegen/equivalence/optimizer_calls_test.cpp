// SPDX-License-Identifier: Apache-2.0
// Faults in the call of a user's optimizer, and calls that are unusual and right.
#include <doctest/doctest.h>

#include <optimizer/plans.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "refused.hpp"

namespace optimizer_calls_test {

using namespace equivalence_tests;

namespace {

rankc::plan_data plan_of(const std::string& optimizer, const std::string& layout) {
  for (const optimizing::variant& v : optimizing::plans())
    if (v.optimizer == optimizer && v.layout == layout) return v.plan;
  throw std::logic_error("no plan has the optimizer " + optimizer);
}
/// Lion, a user's optimizer with one moment, on four shards, into which not all parameters divide.
const subject& lion() {
  static const subject made(plan_of("lion", "shard4"), target::host);
  return made;
}
/// AdamW on four shards.
const subject& adamw() {
  static const subject made(plan_of("adamw", "shard4"), target::host);
  return made;
}

op& update_of(rank_program& r) {
  for (op& o : r.ops)
    if (!o.views.empty() && o.views.back().port == "norm" && !o.views.back().written) return o;
  throw std::logic_error("the rank has no optimizer");
}
/// The change of the optimizer's op on each rank.
auto on_each(const std::function<void(op&)>& change) {
  return [=](subject& s) {
    for (rank_program& r : s.p.ranks) change(update_of(r));
  };
}

/// The index of the first view of each parameter.
std::vector<std::size_t> parameters_of(const op& o) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < o.views.size(); ++i)
    if (!o.views[i].written && o.views[i].port.ends_with("weight")) all.push_back(i);
  return all;
}
rankc::codegen::access& given(op& o, const view& v) {
  return o.reads.at(static_cast<std::size_t>(v.accesses.first));
}
/// Two parameters of one size exchange the operand that follows their weights by `distance` views.
void exchange(op& o, std::size_t distance) {
  const std::vector<std::size_t> all = parameters_of(o);
  for (const std::size_t a : all)
    for (const std::size_t b : all)
      if (a < b && o.views[a].shape == o.views[b].shape && o.views[a].port == o.views[b].port)
        return std::swap(given(o, o.views[a + distance]), given(o, o.views[b + distance]));
  throw std::logic_error("no two parameters have one size");
}
void rename_port(op& o, const std::string& from, const char* to) {
  for (view& v : o.views)
    if (!v.written && v.port == from) {
      v.port = to;
      return;
    }
  throw std::logic_error("no operand is called " + from);
}

/// The parameters of a launch in the reverse order.
void reverse_parameters(op& o) {
  std::vector<std::size_t> first = parameters_of(o);
  const auto is_last = [](const view& v) { return v.port == "norm" || v.port == "padding"; };
  const std::vector<view> before = o.views;
  o.views.clear();
  for (std::size_t p = first.size(); p-- > 0;) {
    const std::size_t end = p + 1 < first.size() ? first[p + 1] : before.size();
    for (std::size_t i = first[p]; i < end; ++i)
      if (!is_last(before[i])) o.views.push_back(before[i]);
  }
  std::copy_if(before.begin(), before.end(), std::back_inserter(o.views), is_last);
}

}  // namespace

TEST_CASE("a user's optimizer gets other operands than its parameter's") {
  CHECK(lion().reason() == "");
  check_refused(lion(), 7470, on_each([](op& o) { exchange(o, 1); }));  // gradients
  check_refused(lion(), 7477, on_each([](op& o) { exchange(o, 2); }));  // moments
  check_refused(lion(), 7475, on_each([](op& o) {
                  const std::size_t first = parameters_of(o).at(0);
                  std::swap(given(o, o.views[first]), given(o, o.views[first + 1]));
                }));
}

TEST_CASE("a user's optimizer decays other parameters, balances a weight, or has numbers of its own") {
  check_refused(lion(), 7481, on_each([](op& o) { rename_port(o, "weight", "undecayed_weight"); }));
  check_refused(lion(), 7480, on_each([](op& o) { rename_port(o, "undecayed_weight", "weight"); }));
  check_refused(lion(), 7479, on_each([](op& o) {
                  rename_port(o, "undecayed_weight", "balanced_weight");
                  for (view& v : o.views)
                    if (v.port == "balanced_weight") v.balances = {0.01, 4};
                }));
  check_refused(lion(), said{7752, {"1"}}, on_each([](op& o) { o.given = {0.5}; }));
  check_refused(lion(), 7720, on_each([](op& o) { o.number = 0.5; }));
}

TEST_CASE("a user's optimizer is another one, runs on no rank, or has another number of moments") {
  check_refused(lion(), 7614, on_each([](op& o) { o.row = "adamw"; }));
  check_refused(lion(), [](subject& s) { s.leave_out(0, update_of(s.p.ranks[0])); });
  check_refused(lion(), 7611, [](subject& s) { s.model.optimizer.moments = 0; });
  check_refused(lion(), 7611, [](subject& s) { s.model.optimizer.moments = 2; });
}

TEST_CASE("AdamW's moments change their roles") {
  CHECK(adamw().reason() == "");
  check_refused(adamw(), 7477, on_each([](op& o) {
                  const std::size_t first = parameters_of(o).at(0);
                  std::swap(given(o, o.views[first + 2]), given(o, o.views[first + 3]));
                }));
}

TEST_CASE("an optimizer may take its parameters in any order") {
  CHECK(fault(lion(), on_each(reverse_parameters)) == "");
  CHECK(fault(adamw(), on_each(reverse_parameters)) == "");
}

}  // namespace optimizer_calls_test
