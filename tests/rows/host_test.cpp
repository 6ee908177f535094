// SPDX-License-Identifier: Apache-2.0
// Every claim of the facts against the host's kernels.
#include "host_machine.hpp"
#include "laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "../some_of.hpp"

namespace rankc::test::rows {
namespace {

host_machine<double> f64;
host_machine<float> f32;

/// Run a check on all rows with a kernel, at all sizes, in f64 and f32 in turn, or in both (some_of.hpp).
template <class F>
void each_case(F f) {
  bool in_f64 = false;
  for (const row& r : rows())
    for (const setting& s : settings(r)) {
      in_f64 = !in_f64;
      if (f64.has(r) && (in_f64 || plants_all())) f(f64, r, s);
      if (f32.has(r) && (!in_f64 || plants_all())) f(f32, r, s);
    }
}

/// Whether a row has neither slots in an order, nor choices of experts or groups, nor the routers' three
/// sums. Parts of other axes would not fit these.
bool is_of_numbers(const row& r) {
  const bool has_sums = r.is->grouped || r.op == &ops::push || r.op == &ops::push_grad;
  return !has_slots(r) && !has_sums &&
         std::none_of(r.is->ports.begin(), r.is->ports.end(),
                      [](const auto& p) { return p.name == "chosen" || p.name == "kept"; });
}

/// The findings of a check on all rows, one per line.
template <class F>
std::string lines(F f) {
  std::set<std::string> all;
  for (const row& r : rows())
    if (f64.has(r) && is_of_numbers(r)) all.merge(f(f64, r, small(r)));
  std::string text;
  for (const std::string& line : all) text += line + "\n";
  return text;
}

TEST_CASE("parts of axes") { each_case(check_parts); }
TEST_CASE("linear operands, and those left out") { each_case(check_operands); }
TEST_CASE("sums, multiples, zeros") { each_case(check_values); }
TEST_CASE("in place") { each_case(check_in_place); }
TEST_CASE("adding") { each_case(check_adding); }
TEST_CASE("derivatives") {
  for (const row& r : rows())
    for (std::size_t i = 0; i < 3; ++i)  // without the large sizes, because each element is moved
      if (f64.has(r)) check_derivative(f64, r, settings(r)[i]);
}
TEST_CASE("derivatives of attention with sinks") {
  CHECK(modelled_rows().size() == 2);
  for (const row& r : modelled_rows())
    for (std::size_t i = 0; i < 3; ++i) check_derivative(f64, r, settings(r)[i]);
}
TEST_CASE("chunks of sequences") {
  CHECK(chunk_rows().size() == 8);
  for (machine* on : {static_cast<machine*>(&f64), static_cast<machine*>(&f32)})
    for (const row& r : chunk_rows()) check_chunks(*on, r);
}
TEST_CASE("parts around a ring") {
  CHECK(ring_rows().size() == 5);
  for (machine* on : {static_cast<machine*>(&f64), static_cast<machine*>(&f32)}) check_ring(*on);
}
TEST_CASE("operands of eight bits") {
  for (machine* on : {static_cast<machine*>(&f64), static_cast<machine*>(&f32)}) check_fp8(*on);
}
TEST_CASE("slots of tokens") {
  for (machine* on : {static_cast<machine*>(&f64), static_cast<machine*>(&f32)}) check_slots(*on);
}
TEST_CASE("the loss does not depend on the shift") {
  each_case([](machine& on, const row& r, const setting& s) {
    if (r.op == &ops::exp_sums) check_shift(on, s);
  });
}

TEST_CASE("definitions") {
  each_case([](machine& on, const row& r, const setting& s) {
    if (r.is_defined_by_others()) check_definition(on, r, s);
  });
}
TEST_CASE("definitions of fused rows are what is fused") {
  for (const row& r : rows())
    for (const setting& s : settings(r))
      if (!f64.has(r)) check_fusion(f64, r, s);
}

// Facts may require more than a row needs: a check that trusts them refuses more, but accepts nothing wrong.
// All such rows are listed here.
TEST_CASE("what is needed has an effect") {
  CHECK(lines(needs_without_effect) ==
        "add_sinks whole(w)\n"  // heads are whole in all rows
        "attention whole(w)\n"
        "balance_loss_grad whole(r)\n"
        "document_attention whole(w)\n"
        "head_norm_dw whole(d)\n"
        "layer_balance_loss_grad whole(l)\n"
        "layer_balance_loss_grad whole(r)\n"
        "overflow_loss_grad whole(l)\n"
        "sink_scores whole(d)\n"
        "z_loss_grad whole(l)\n");
}
TEST_CASE("what is not marked is not linear") {
  CHECK(lines(unmarked_and_linear) ==
        "add_sinks_grad dscores o\n"
        "balance_loss loss whole\n"
        "balance_loss_grad ds whole\n"
        "head_norm_dw dgain statistics\n"
        "head_norm_dw dgain x\n"
        "head_norm_dx dx gain\n"
        "layer_balance_loss loss whole\n"
        "layer_balance_loss_grad ds whole\n"
        "layer_norm_dx dx gain\n"
        "overflow_loss loss whole\n"
        "overflow_loss_grad ds whole\n"
        "rms_norm_dw dgain statistics\n"
        "rms_norm_dw dgain x\n"
        "rms_norm_dx dx gain\n"
        "rope y table\n"
        "rope_grad dx table\n"
        "skip_unlabeled total count\n"  // a count other than 0 adds nothing
        "sum_weights count weights\n");
}
TEST_CASE("what is named is used") {
  CHECK(lines(named_and_unused) ==
        "attention_grad dv o\n"
        "attention_grad dv v\n"
        "document_attention_grad dv o\n"
        "document_attention_grad dv v\n"
        "skip_unlabeled total count\n");  // a count other than 0 adds nothing
}

}  // namespace
}  // namespace rankc::test::rows
