// SPDX-License-Identifier: Apache-2.0
// Every row of the table of ops has facts, and every row and fact has tests. The checks run after
// the build of this executable.
#include "kernels.hpp"
#include "row.hpp"

#include <doctest/doctest.h>

#include <passes/call_sizes.hpp>

#include <algorithm>

namespace rankc::test::rows {
namespace {

constexpr bool is_in(std::string_view name, std::span<const std::string_view> list) {
  for (const std::string_view known : list)
    if (known == name) return true;
  return false;
}
constexpr bool is_run(const op_row& r) {
  if (r.converts != conversion::none) return true;  // tested in collectives_test.cpp
  const std::string_view host = r.on_host().name, cuda = r.on_cuda().name;
  return (host.empty() || is_in(host, kernels_of_both)) &&
         (is_in(cuda, kernels_of_both) || is_in(cuda, kernels_of_cuda));
}
constexpr bool is_table_run() {
  for (const op_row* r : ops::all)
    if (!is_run(*r)) return false;
  bool all = true;
  ops::each_fp8_row([&](const op_row& r) { all &= is_run(r); });
  ops::each_fusion([&](const fusion& f) { all &= is_run(*f.into.kind); });
  return all && is_run(ops::clear) && is_run(ops::copy);
}
static_assert(is_table_run(),
              "a row's kernel is not called by the tests of rows: add its name to kernels.hpp");

/// Whether the kernel of a row, or of a row that defines it, takes a size.
bool takes(const row& r, std::string_view symbol) {
  for (const kernel_row& k : {r.op->on_host(), r.op->on_cuda()})
    for (const std::string_view product : words(k.sizes, ' '))
      if (is_in(symbol, words(product, '*'))) return true;
  return false;
}
/// Whether the sizes of some results do not follow from operands: picks, groups or experts.
bool sizes_choice(const row& r) {
  const auto makes = [&](std::string_view port) {
    return r.op->find(port) >= 0 && r.op->ports[r.op->find(port)].is_written();
  };
  return r.is->arranges || makes("chosen") || makes("kept");
}
/// Whether the facts of a row, or of rows that define it, satisfy a condition.
template <class F>
bool says(const fact& f, F what) {
  const auto of_others = [&](const equation& e) {
    return e.is == equation::kind::call &&
           says(codegen::algebra::facts()[static_cast<std::size_t>(e.row)], what);
  };
  return what(f) || std::any_of(f.equations.begin(), f.equations.end(), of_others);
}

TEST_CASE("coverage: rows and facts are of each other") {
  REQUIRE_NOTHROW(rows());
  REQUIRE_NOTHROW(chunk_rows());
  REQUIRE_NOTHROW(ring_rows());
  REQUIRE_NOTHROW(narrowed_rows());
  REQUIRE_NOTHROW(modelled_rows());
  for (const op_row* op : op_rows()) {
    INFO(op->name << " has no facts");
    CHECK(codegen::algebra::find_fact(op->name) >= 0);
  }
  for (const fact& f : codegen::algebra::facts()) {
    const std::vector<const op_row*> all = op_rows();
    INFO(f.row << " is no row of the table of ops");
    CHECK(std::any_of(all.begin(), all.end(), [&](const op_row* op) { return op->name == f.row; }));
  }
}

TEST_CASE("coverage: what kernels are told is in the facts") {
  for (const row& r : rows()) {
    INFO(r.op->name);
    CHECK(takes(r, "number") == says(*r.is, [](const fact& f) { return f.number; }));
    // A kernel gets a group's length by the tokens that it is given.
    CHECK((takes(r, "seq") || r.is->grouped) == says(*r.is, [](const fact& f) { return f.seq; }));
    CHECK((takes(r, "left") || sizes_choice(r)) == r.is->parts);
    const char first = first_letter(r);
    CHECK(takes(r, "first") == (first != 0));
    if (first == 't') CHECK(r.is->positions);
    if (first && first != 't')
      CHECK(says(*r.is, [&](const fact& f) { return f.first == std::string(1, first); }));
    CHECK(r.op->commutative == (r.is->commutative || r.op == &ops::add));  // a sum's order never counts
  }
}

TEST_CASE("coverage: whole numbers, conversions and units") {
  for (const op_row* op : op_rows()) {
    INFO(op->name);
    const fact& f =
        codegen::algebra::facts()[static_cast<std::size_t>(codegen::algebra::find_fact(op->name))];
    CHECK(f.converts == (op->converts != conversion::none));
  }
  for (const row& r : rows())
    for (std::size_t p = 0; p < r.ports.size(); ++p) {
      INFO(r.op->name << " " << r.of(p).name);
      const codegen::algebra::port& is = r.is->ports[p];
      CHECK((is.holds == "i32") == (r.of(p).holds == element::index));
      for (std::size_t d = 0; d < is.axes.size(); ++d) {
        CHECK((is.axes[d].unit != 0) == !r.of(p).shape.dim[d].unit.empty());
        CHECK((is.axes[d].unit == 0 || r.is->sizes.find(is.axes[d].unit) != std::string::npos));
      }
    }
}

TEST_CASE("coverage: f32 where others are in bf16") {
  for (const auto* some : {&rows(), &chunk_rows(), &ring_rows(), &narrowed_rows()})
    for (const row& r : *some)
      for (std::size_t p = 0; p < r.ports.size(); ++p) {
        INFO(r.op->name << " " << r.of(p).name);
        CHECK(r.is->ports[p].is_wide == (r.of(p).as == use::sum || r.of(p).holds == element::wide));
      }
}

/// The sizes in a kernel's call, as the letters that the facts use.
static std::vector<std::string> words_of_call(const row& r, codegen::target on) {
  std::vector<std::string> words;
  for (const std::string& symbol : codegen::numbers_of(*r.op, on)) {
    std::string word = symbol;
    for (std::size_t p = 0; p < r.ports.size(); ++p)
      for (std::size_t d = 0; d < r.is->ports[p].axes.size(); ++d) {
        const port_dim& dim = r.of(p).shape.dim[d];
        if (dim.number) continue;
        if (dim.count == symbol) word = r.is->ports[p].axes[d].of;
        if (dim.unit == symbol) word = r.is->ports[p].axes[d].unit;
      }
    words.push_back(word);
  }
  return words;
}

TEST_CASE("coverage: the sizes and the number that a call names") {
  for (const auto* some : {&rows(), &chunk_rows(), &ring_rows(), &narrowed_rows()})
    for (const row& r : *some)
      for (const codegen::target on : {codegen::target::host, codegen::target::cuda}) {
        const bool has_kernel = !(on == codegen::target::host ? r.op->host : r.op->cuda).name.empty();
        INFO(r.op->name);
        if (has_kernel) CHECK(r.is->numbers_of_call == words_of_call(r, on));
      }
}

TEST_CASE("coverage: what lies over what, apart, and what is added to") {
  for (const row& r : rows()) {
    std::map<std::string_view, char> strides;
    for (std::size_t p = 0; p < r.ports.size(); ++p) {
      const port& of = r.of(p);
      const codegen::algebra::port& is = r.is->ports[p];
      INFO(r.op->name << " " << of.name);
      CHECK(is.adds == ((of.adds || of.as == use::sum) && r.op != &ops::clear));
      std::vector<std::string> over;
      for (const std::string_view name : of.may_replace)
        if (!name.empty()) over.emplace_back(name);
      CHECK(is.over == over);
      CHECK((is.stride == 0) == of.shape.stride.empty());
      CHECK(strides.try_emplace(of.shape.stride, is.stride).first->second == is.stride);
    }
  }
}

TEST_CASE("coverage: a row without kernel on the host is fused or converts") {
  for (const op_row* op : op_rows()) {
    const int f = codegen::algebra::find_fact(op->name);
    REQUIRE(f >= 0);
    const bool is_call =
        codegen::algebra::facts()[static_cast<std::size_t>(f)].equations[0].is == equation::kind::call;
    INFO(op->name);
    CHECK((!op->on_host().name.empty() || is_call || op->converts == conversion::replicate));
  }
}

TEST_CASE("coverage: what counts whole numbers has no others to give a gradient") {
  for (const row& r : rows()) {
    if (!r.is->counts) continue;
    INFO(r.op->name);
    for (std::size_t p = r.results(); p < r.ports.size(); ++p) CHECK(r.of(p).holds == element::index);
  }
}

// Operands without a derivative are constants, or the loss does not depend on them. The derivative of sinks
// is that of attention with sinks, sink_attention.
TEST_CASE("coverage: derivatives") {
  std::string without;
  for (const row& r : rows()) {
    if (!r.op->dual) continue;
    for (std::size_t p = r.results(); p < r.ports.size(); ++p) {
      const bool named = std::any_of(r.is->derivatives.begin(), r.is->derivatives.end(), [&](const auto& d) {
        return std::find(d.of.begin(), d.of.end(), static_cast<int>(p)) != d.of.end();
      });
      if (!named && r.of(p).holds != element::index)
        without += std::string(r.op->name) + " " + r.is->ports[p].name + "\n";
    }
  }
  CHECK(without ==
        "rope table\nsink_scores x\nadd_sinks o_before\nadd_sinks lse_before\nadd_sinks scores\nrow_max "
        "logits\nexp_sums top\nsum_weights weights\nmasked_cross_entropy count\nweighted_cross_entropy "
        "weights\nweighted_cross_entropy count\nsoftmax_scores logits\nsigmoid_scores logits\nkeep_groups "
        "scores\n"
        "biased_keep_groups scores\nbiased_keep_groups bias\nsoftmax_top_by scores\nsigmoid_top_by scores\n"
        "biased_softmax_top_by scores\nbiased_sigmoid_top_by scores\nbalance_loss whole\nlayer_balance_loss "
        "whole\nz_loss whole\noverflow_loss whole\nsquared_error targets\n");
}

}  // namespace
}  // namespace rankc::test::rows
