// SPDX-License-Identifier: Apache-2.0
// The refusals of the rules for dims, models, batches, pipelines and clusters. Every alternative that a
// message offers, applied literally, mends that rule and breaks no other.
#include <doctest/doctest.h>

#include <rankc/rules/values/batch.hpp>
#include <rankc/rules/values/cluster.hpp>
#include <rankc/rules/values/dims.hpp>
#include <rankc/rules/values/model.hpp>
#include <rankc/rules/values/pipeline.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>

namespace rules_test {

using namespace rankc;

namespace {

/// The values that a sentence can tell a user to change.
struct configuration {
  parallel_dims dims;
  model_sizes model{};
  batch_sizes batch{};
  cluster machines{1, 8, 0, 0};
  std::vector<int> listed{};
};
using judge = std::function<report(const configuration&)>;

report of_dims(const configuration& c) {
  report r;
  check_dims(r, c.dims);
  return r;
}
report of_model(const configuration& c) {
  report r;
  check_model(r, c.model, c.dims);
  return r;
}
report of_batch(const configuration& c) {
  report r;
  check_batch(r, c.batch, c.dims);
  return r;
}
report of_pipeline(const configuration& c) {
  report r;
  check_pipeline(r, c.model.layers, c.dims, 1, c.listed);
  return r;
}
report of_cluster(const configuration& c) {
  report r;
  check_cluster(r, c.machines, c.dims);
  return r;
}

/// The rule and the field of a diagnostic: "RC202 heads".
std::string fault_of(const diagnostic& d) {
  const std::string text(d.text.view());
  return "RC" + std::to_string(d.id) + " " + text.substr(0, text.find_first_of("=( "));
}
std::set<std::string> faults(const report& r) {
  std::set<std::string> out;
  for (const diagnostic& d : r)
    if (!d.warning) out.insert(fault_of(d));
  return out;
}

std::vector<std::string> split(const std::string& text, const std::string& at) {
  std::vector<std::string> out;
  std::size_t from = 0;
  for (std::size_t to; (to = text.find(at, from)) != text.npos; from = to + at.size())
    out.push_back(text.substr(from, to - from));
  out.push_back(text.substr(from));
  return out;
}

/// Apply "tp=4", "dp_replicate=infer" or "3 on stage 2" to a configuration. Two parts of it may have the same
/// field.
void apply(configuration& c, const std::string& change) {
  bool known = false;
  auto write = [&](int& field, int v) {
    field = v;
    known = true;
  };
  if (const auto stage = split(change, " on stage "); stage.size() == 2)
    return write(c.listed.at(std::stoul(stage[1])), std::stoi(stage[0]));
  const std::string field = change.substr(0, change.find('=')), value = change.substr(change.find('=') + 1);
  if (change == "sequence_parallel=false") return void(c.dims.sequence_parallel = false);
  if (change == "expert_layout=folded_over_replicas")
    return void(c.dims.expert_layout = expert_layout::folded_over_replicas);
  const int v = value == "infer" ? infer : std::stoi(value);
  if (field == "world") write(c.dims.world, v);
  for (const auto& f : all_degrees)
    if (f.name == field) write(c.dims.*f.degree, v);
  for (const auto& f : detail::model_fields)
    if (f.name == field) write(c.model.*f.at, v);
  for (const auto& f : detail::batch_fields)
    if (f.name == field) write(c.batch.*f.at, v);
  for (const auto& f : detail::cluster_fields)
    if (f.name == field) write(c.machines.*f.at, v);
  if (!known) throw std::invalid_argument(change);
}

/// The alternatives in a sentence; each is a list of changes.
std::vector<std::vector<std::string>> alternatives(const std::string& sentence) {
  std::vector<std::vector<std::string>> out;
  const auto said = split(sentence, ": take ");
  if (said.size() < 2) return out;
  for (const std::string& group : split(said[1], ", or ")) {
    const auto parts = split(group, " (with ");
    for (const std::string& value : split(parts[0], " or ")) {
      out.push_back(split(value, " with "));
      if (parts.size() > 1) out.back().push_back(parts[1].substr(0, parts[1].size() - 1));
    }
  }
  return out;
}

/// Resolve the inferred degree to its number if a change infers another one.
void resolve_before(configuration& c, const std::vector<std::string>& changes) {
  for (const std::string& change : changes)
    if (change.ends_with("=infer")) c.dims = resolve(c.dims);
}

std::string said(const report& r) {
  std::string out;
  for (const diagnostic& d : r)
    out += (out.empty() ? "" : ". ") + std::string(d.warning ? "warning " : "") + "RC" +
           std::to_string(d.id) + ": " + std::string(d.text.view());
  return out;
}

struct tally {
  int refused = 0, offered = 0;
};

/// Apply every alternative in every sentence about a configuration: it must remove the fault, and add none.
void check_offers(const configuration& c, const judge& judged, tally& n) {
  const report before = judged(c);
  const std::set<std::string> broken = faults(before);
  for (const diagnostic& d : before) {
    ++n.refused;
    const std::string sentence(d.text.view());
    for (const auto& changes : alternatives(sentence)) {
      ++n.offered;
      configuration mended = c;
      resolve_before(mended, changes);
      for (const std::string& change : changes) apply(mended, change);
      const report after = judged(mended);
      std::set<std::string> expected = broken;
      expected.erase(fault_of(d));
      const std::set<std::string> left = faults(after);
      const bool still_warned =
          d.warning && std::any_of(after.begin(), after.end(),
                                   [&](const diagnostic& a) { return fault_of(a) == fault_of(d); });
      const bool as_expected =
          !still_warned && std::includes(expected.begin(), expected.end(), left.begin(), left.end());
      const bool factored = !factors_world(resolve(c.dims)) || factors_world(resolve(mended.dims));
      if (!as_expected || !factored) FAIL_CHECK(sentence << " <- " << changes[0] << " then: " << said(after));
    }
  }
}

/// Visit every combination of the listed values of some fields.
void for_all(const std::vector<std::pair<int*, std::vector<int>>>& fields, const std::function<void()>& visit,
             std::size_t from = 0) {
  if (from == fields.size()) return visit();
  for (int v : fields[from].second) {
    *fields[from].first = v;
    for_all(fields, visit, from + 1);
  }
}

constexpr bool accepted(const model_sizes& m, const parallel_dims& d, bool zig_zag = true) {
  report r;
  check_model(r, m, d, zig_zag);
  return accepts(r);
}

// The divisor of a sequence, by the table of the four systems: ring and sequence parallelism 4, 12, 16, 64.
constexpr long long divisor(int cp, int tp, bool sp = true, int ulysses = 1, bool zig_zag = true) {
  return sequence_divisor({.world = cp * tp, .cp = cp, .tp = tp, .ulysses = ulysses, .sequence_parallel = sp},
                          zig_zag);
}
static_assert(divisor(2, 2) == 4 && divisor(2, 3) == 12 && divisor(4, 4) == 16 && divisor(8, 8) == 64);
static_assert(divisor(2, 3, true, 2) == 6 && divisor(2, 3, true, 1, false) == 6,
              "Ulysses and contiguous: cp * tp");
static_assert(divisor(1, 3) == 3 && divisor(1, 3, false) == 1 && divisor(4, 3, false) == 8 &&
              divisor(4, 3, false, 4) == 4);

static_assert(!accepted({.experts = 0}, {.world = 4, .dp_shard = 4, .ep = 2}), "ep without experts");
static_assert(accepted({.experts = 0}, {.world = 4, .tp = 4, .etp = 2}),
              "etp without experts is a warning of the dims");
static_assert(accepted({.ffn = 63, .experts = 4}, {.world = 2, .tp = 2}),
              "experts are split by etp, not by tp");
static_assert(!accepted({.ffn = 63, .experts = 4}, {.world = 2, .tp = 2, .etp = 2}));
static_assert(accepted({}, {.world = 6, .tp = 3, .pp = 2}), "sizes that are not given are not judged");
static_assert(!accepted({.heads = 8, .kv_heads = 2}, {.world = 4, .tp = 4}), "kv heads are not replicated");

}  // namespace

TEST_CASE("what dims offer mends them") {
  configuration c;
  parallel_dims& d = c.dims;
  int layout = 0, sp = 0;
  tally n;
  for_all({{&d.world, {8, 12}},
           {&d.dp_replicate, {1, 2, infer}},
           {&d.dp_shard, {1, 3, infer}},
           {&d.cp, {1, 4}},
           {&d.tp, {1, 2, infer}},
           {&d.pp, {1, 2}},
           {&d.ep, {1, 3, 4}},
           {&d.etp, {1, 2}},
           {&d.ulysses, {1, 3}},
           {&layout, {0, 1, 2}},
           {&sp, {0, 1}}},
          [&] {
            d.expert_layout = static_cast<expert_layout>(layout);
            d.sequence_parallel = sp;
            check_offers(c, of_dims, n);
          });
  CHECK(n.offered > 10'000);
}

TEST_CASE("what sizes of models offer mends them") {
  configuration c;
  model_sizes& m = c.model;
  tally n;
  for (const parallel_dims& d :
       {parallel_dims{}, parallel_dims{.world = 8, .tp = 8},
        parallel_dims{.world = 24, .dp_replicate = infer, .tp = 4},
        parallel_dims{.world = 16, .cp = 4, .tp = 4, .ulysses = 2, .sequence_parallel = true},
        parallel_dims{.world = 16, .dp_shard = 8, .tp = 2, .ep = 4},
        parallel_dims{.world = 8, .tp = 3, .etp = 3},
        parallel_dims{.world = 12, .dp_shard = 4, .tp = infer, .ep = 4, .sequence_parallel = true}}) {
    c.dims = d;
    m.rotary = true;
    for_all({{&m.hidden, {24, 32}},
             {&m.heads, {0, 4, 5, 12}},
             {&m.kv_heads, {0, 2, 3}},
             {&m.ffn, {63}},
             {&m.vocab, {257}},
             {&m.vocab_used, {0, 250, 258}},
             {&m.experts, {0, 4, 6}},
             {&m.top_k, {2, 9}},
             {&m.seq, {64, 1000}}},
            [&] { check_offers(c, of_model, n); });
  }
  CHECK(n.offered > 10'000);
}

TEST_CASE("what batches, pipelines and clusters offer mends them") {
  configuration c;
  tally n;
  for (const parallel_dims& d :
       {parallel_dims{}, parallel_dims{.world = 8, .pp = 8},
        parallel_dims{.world = 24, .dp_replicate = infer, .dp_shard = 2, .tp = 4},
        parallel_dims{.world = 16, .tp = 16}, parallel_dims{.world = 16, .cp = 8, .pp = 2, .ulysses = 8},
        parallel_dims{.world = 16, .dp_shard = 16, .ep = 8}}) {
    c.dims = d;
    batch_sizes& b = c.batch;
    for_all({{&b.global_batch, {0, 1, 7, 8, 96}},
             {&b.microbatches, {0, 1, 3, 8}},
             {&b.microbatch, {-1, 0, 1, 2}},
             {&b.seq, {0, 64, 1 << 28}}},
            [&] { check_offers(c, of_batch, n); });
    for (int layers = 0; layers < 10; ++layers) {
      c.model.layers = layers;
      c.listed.clear();
      check_offers(c, of_pipeline, n);
      c.listed = {1, 1, 1, 1, 1, 1, 1, 2};
      check_offers(c, of_pipeline, n);
    }
    for_all({{&c.machines.nodes, {1, 2, 4}}, {&c.machines.ranks_per_node, {1, 4, 8}}},
            [&] { check_offers(c, of_cluster, n); });
  }
  CHECK(n.offered > 1000);
}

TEST_CASE("the nearest values, of every field that the rule reads") {
  CHECK(said(of_model({.dims = {.world = 48, .dp_replicate = infer, .tp = 8}, .model = {.heads = 12}})) ==
        "RC202: heads=12 does not divide by tp=8: take tp=4 or tp=6, or heads=8 or heads=16");
  CHECK(said(of_dims({.dims = {.world = 8, .dp_shard = 2, .tp = 2}})) ==
        "RC101: dp_shard(2) * tp(2) is not world=8: take dp_shard=4, or tp=4, or world=4, or dp_shard=infer");
  CHECK(said(of_model({.dims = {.world = 8, .dp_shard = 8, .ep = 4}, .model = {.experts = 6}})) ==
        "RC209: experts=6 does not divide by ep=4: take ep=1 or ep=2, or experts=4 or experts=8");
  for (const std::vector<int>& listed : {std::vector{16, 0}, {0, 16}, {17, -1}})
    CHECK(faults(of_pipeline({.dims = {.world = 2, .pp = 2}, .model = {.layers = 16}, .listed = listed})) ==
          std::set<std::string>{"RC217 stage_layers"});
  CHECK(said(of_pipeline({.dims = {.world = 2, .pp = 2}, .model = {.layers = 16}, .listed = {8, 9}})) ==
        "RC217: stage_layers sum to 17, not to layers=16: take 8 on stage 1, or layers=17");
}

TEST_CASE("legal, but at a cost") {
  CHECK(said(of_cluster({.dims = {.world = 16, .tp = 16}, .machines = clusters::h200<2>})) ==
        "warning RC112: tp=16 has groups that leave a node of 8 ranks; a rank sends 50 GB/s between nodes, "
        "450 GB/s within one: "
        "take tp=4 or tp=8 (with dp_replicate=infer)");
  CHECK(said(of_cluster(
            {.dims = {.world = 16, .dp_replicate = 2, .tp = 8}, .machines = clusters::h200<2>})) == "");
  CHECK(said(of_cluster({.dims = {.world = 12, .dp_replicate = 2, .tp = 6}, .machines = {2, 8, 0, 0}})) ==
        "warning RC112: tp=6 has groups that leave a node of 8 ranks: take tp=2 or tp=4 (with "
        "dp_replicate=infer)");
  CHECK(said(of_dims({.dims = {.world = 4, .tp = 4, .etp = 2}})) ==
        "warning RC111: etp=2 with ep=1 splits every expert, and is unused without experts: smaller products "
        "and an all-reduce for "
        "each; ep * etp = 2 ranks hold whole experts with ep=2 and etp=1");
  CHECK(said(of_dims(
            {.dims = {.world = 8, .dp_shard = 4, .ep = 2, .expert_layout = expert_layout::independent}})) ==
        "warning RC113: dense layers are computed ep=2 times on the same data; folded equivalent: dp_shard=8 "
        "ep=2 expert_layout=folded");
  CHECK(said(of_model({.dims = {.world = 2, .pp = 2},
                       .model = {.hidden = 32, .vocab = 64, .tied_embeddings = true}})) ==
        "warning RC219: tied embeddings with pp=2: the first and the last stage both hold the table of 64 x "
        "32 and sum its gradient "
        "over the two, once a step");
}

TEST_CASE("the folded equivalent of independent experts is legal, and of the same world") {
  for (int dp_shard = 1; dp_shard <= 6; ++dp_shard)
    for (int ep = 2; ep <= 6; ++ep)
      for (int tp = 1; tp <= 3; ++tp) {
        const parallel_dims folded{
            .world = dp_shard * ep * tp, .dp_shard = dp_shard * ep, .tp = tp, .ep = ep};
        CHECK(of_dims({.dims = folded}).empty());
      }
}

}  // namespace rules_test
