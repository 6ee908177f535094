// SPDX-License-Identifier: Apache-2.0
// Sizes that appear only in an op's units (heads, kinds of sums) must equal the model's. Only the GEMMs that
// the recipe rounds are in fp8.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/contract/fp8.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "refused.hpp"
#include "small_experts.hpp"

namespace attributes_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

using rankc::cp_attention, rankc::parallel_dims;

constexpr rankc::models::gpt2 gpt{.layers = 1, .hidden = 16, .heads = 2, .ffn = 24, .vocab = 32};

rankc::plan_data planned(const auto& model, const parallel_dims& dims, bool documents = false) {
  using namespace rankc;
  return make_plan(
      "attributes", model, dims, schedules::gpipe{1},
      training{.seq = 16, .global_batch = 2, .precision = f32, .end_of_document = documents ? 3 : -1},
      clusters::h200<256>);
}

constexpr rankc::router_losses losses{.balance = 0.01, .z = 0.001},
    losses_of_layers{.balance = 0.01, .over = rankc::router_losses::each_layer};

rankc::plan_data experts(const rankc::router_losses& by) {
  rankc::models::qwen3_moe model = small_experts(2, 6);
  model.router_losses = by;
  return planned(model, {});
}

/// Add this many bytes at the end of a rank's arena. Returns: where they begin.
std::size_t grow(rank_program& r, std::size_t bytes) {
  const std::size_t at = (r.arena_bytes + 255) / 256 * 256;
  r.arena_bytes = at + bytes;
  return at;
}

/// All attention of the program gets twice as many heads of half the size. Its log-sum-exps get twice as many
/// columns, at other addresses.
void double_heads(subject& s) {
  for (rank_program& r : s.p.ranks) {
    std::map<int, std::size_t> moved;  // the new address of each log-sum-exp value
    for (op& o : r.ops) {
      if (o.row.find("attention") == std::string_view::npos) continue;
      for (view& v : o.views) {
        if (v.unit > 1) v.unit /= 2;
        if (!v.port.starts_with("lse")) continue;
        v.shape.dim[1] *= 2;
        v.stride *= 2;
        access& a = (v.written ? o.writes : o.reads)[static_cast<std::size_t>(v.accesses.first)];
        const std::size_t bytes = 2 * (a.end - a.begin);
        if (!moved.contains(a.value)) {
          const bool replaces = v.written && a.replaces >= 0;
          moved[a.value] =
              replaces ? moved.at(o.reads[static_cast<std::size_t>(a.replaces)].value) : grow(r, bytes);
        }
        a.begin = moved.at(a.value);
        a.end = a.begin + bytes;
      }
    }
  }
}

/// Replace the unit `from` by `to` in ops whose row's name contains `text`.
auto with_units(std::string_view text, std::int64_t from, std::int64_t to) {
  return [=](subject& s) {
    int changed = 0;
    for (rank_program& r : s.p.ranks)
      for (op& o : r.ops)
        for (view& v : o.views)
          if (o.row.find(text) != std::string_view::npos && v.unit == from) {
            v.unit = to;
            ++changed;
          }
    REQUIRE(changed > 0);
  };
}

}  // namespace

TEST_CASE("attention of another number of heads than the model's is refused") {
  const parallel_dims ring{.world = 2, .cp = 2, .cp_attention = cp_attention::ring},
      chunks{.world = 2, .cp = 2};
  for (const parallel_dims& dims : {parallel_dims{}, ring, chunks})
    for (const bool documents : {false, true}) {
      CAPTURE(documents);
      CAPTURE(static_cast<int>(dims.cp_attention));
      const subject sound(planned(gpt, dims, documents), target::host);
      REQUIRE(sound.reason() == "");
      check_refused(sound, 7433, double_heads);
    }
}

TEST_CASE("a call that names another size or number than its op's is refused") {
  const parallel_dims ring{.world = 4, .cp = 4, .cp_attention = cp_attention::ring},
      chunks{.world = 2, .cp = 2};
  std::set<std::string> rows;
  for (const subject& sound :
       {subject(planned(gpt, ring), target::host), subject(planned(gpt, chunks), target::host),
        subject(planned(gpt, chunks, true), target::cuda, dtype::bf16),
        subject(experts(losses), target::host)})
    for (std::size_t i = 0; i < sound.p.ranks[0].ops.size(); ++i) {
      const op& o = sound.p.ranks[0].ops[i];
      if (!rows.emplace(o.row).second) continue;
      CAPTURE(o.row);
      for (std::size_t k = 0; k < o.given.size(); ++k)
        check_refused(sound, 7751, [&](subject& s) { s.p.ranks[0].ops[i].given[k] += 1; });
      const bool is_of_kernel = !o.row.empty() && o.row != "sum_squares" && o.row != "adamw";
      check_refused(sound, is_of_kernel ? 7750 : 7752,
                    [&](subject& s) { s.p.ranks[0].ops[i].given.push_back(1); });
    }
  CHECK(rows.size() > 40);
}

TEST_CASE("a loss of routers that takes its sums to be of other kinds, of other experts, is refused") {
  for (const auto& [by, row] :
       {std::pair(losses, "balance_loss"), {losses, "z_loss"}, {losses_of_layers, "layer_balance_loss"}}) {
    CAPTURE(row);
    const subject sound(experts(by), target::host);
    REQUIRE(sound.reason() == "");
    check_refused(sound, 7433, with_units(row, 6, 3));
  }
}

// ---- fp8

namespace {

rankc::plan_data narrowed(rankc::linear_precision linears) {
  using namespace rankc;
  constexpr models::llama model{
      .layers = 2, .hidden = 32, .heads = 2, .kv_heads = 2, .ffn = 48, .vocab = 64, .theta = 10000};
  return make_plan("narrowed", model, parallel_dims{}, schedules::gpipe{1},
                   training{.seq = 16, .global_batch = 2, .precision = f32, .linears = linears},
                   clusters::h200<256>);
}

/// Round the op's operand by an inserted op.
void round_operand(subject& s, op*& product, const char* port, const char* by, element_type as) {
  rank_program& r = s.p.ranks[0];
  view& v = subject::port(*product, port);
  access& given = product->reads[static_cast<std::size_t>(v.accesses.first)];
  const auto rows = static_cast<std::size_t>(v.shape[0]), cols = static_cast<std::size_t>(v.shape[1]);
  const std::size_t bytes = rankc::runtime::fp8_bytes(rows, cols, as == element_type::e4m3_rows),
                    at = grow(r, bytes);
  op cast;
  cast.name = "rounds";
  cast.row = by;
  cast.reads = {given};
  cast.writes = {{at, at + bytes, s.new_value(), as}};
  cast.views = {{.port = "q", .written = true, .accesses = {0, 1}, .shape = v.shape, .stride = v.shape[1]},
                {.port = std::string_view(by).starts_with("weight") ? "w" : "x",
                 .accesses = {0, 1},
                 .shape = v.shape,
                 .stride = v.shape[1]}};
  given = cast.writes[0];
  const auto index = product - r.ops.data();
  s.insert_after(0, product - 1, cast);
  product = &s.p.ranks[0].ops[static_cast<std::size_t>(index) + 1];
}

op* product_of(subject& s, const char* name, const char* row) { return s.find(0, name, row).at(0); }

}  // namespace

TEST_CASE("a product that the recipe does not round is of eight bits: the head's, and its gradients") {
  const subject sound(narrowed(rankc::fp8), target::host);
  REQUIRE(sound.reason() == "");
  const auto rounded = [](const char* row, const char* x, const char* by, element_type as, const char* w,
                          const char* weight_by, const char* in_fp8) {
    return [=](subject& s) {
      op* o = product_of(s, "head", row);
      round_operand(s, o, x, by, as);
      round_operand(s, o, w, weight_by, element_type::e4m3);
      o->row = in_fp8;
    };
  };
  check_refused(sound, said{7700, {"head: linear", "fp8"}},
                rounded("linear", "x", "to_e4m3", element_type::e4m3, "w", "weight_to_e4m3", "linear_fp8"));
  check_refused(
      sound, said{7700, {"head: linear_dx", "fp8"}},
      rounded("linear_dx", "dy", "to_e5m2", element_type::e5m2, "w", "weight_to_e4m3", "linear_dx_fp8"));
  check_refused(sound, said{7700, {"the gradient of lm_head", "fp8"}},
                rounded("linear_dw", "dy", "to_e5m2", element_type::e5m2, "x", "to_e4m3", "linear_dw_fp8"));
}

TEST_CASE("a product that the recipe rounds is not, or is rounded in another way") {
  const subject plain(narrowed(rankc::linear_precision::plain), target::host),
      by_tensors(narrowed(rankc::fp8), target::host), by_rows(narrowed(rankc::fp8_rows), target::host);
  const auto of_model = [](const subject& other) { return [&other](subject& s) { s.model = other.model; }; };
  check_refused(plain, said{7701, {"layers.0: linear", "fp8"}}, of_model(by_tensors));
  check_refused(plain, said{7701, {"layers.0: linear", "fp8_rows"}}, of_model(by_rows));
  check_refused(by_tensors, said{7559, {"e4m3"}}, of_model(plain));
  check_refused(by_tensors, said{7559, {"e4m3"}}, of_model(by_rows));
}

TEST_CASE("one product alone is not rounded where the recipe rounds it") {
  const subject sound(narrowed(rankc::fp8), target::host);
  check_refused(sound, said{7701, {"the gradient of layers.1.w2", "fp8"}}, [](subject& s) {
    for (specification::layer& l : s.model.layers)
      for (specification::op& o : l.ops)
        REQUIRE((l.name == "head" || o.row != "linear" || o.operands == specification::rounding::fp8));
    op& o = *product_of(s, "layers.1", "linear_dw_fp8");
    o.row = "linear_dw";
    for (const char* port : {"dy", "x"}) {  // the operands before rounding
      access& taken = subject::read_of(o, port);
      for (const op& cast : s.p.ranks[0].ops)
        if (cast.views.size() == 2 && !cast.writes.empty() && cast.writes[0].value == taken.value)
          taken = cast.reads[0];
    }
  });
}

}  // namespace attributes_test
