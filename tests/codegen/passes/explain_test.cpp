// SPDX-License-Identifier: Apache-2.0
// The output of `--explain` for each pass: its input and its result.
#include <doctest/doctest.h>

#include <passes/explain.hpp>
#include <passes/listing.hpp>
#include <passes/watcher.hpp>

#include <algorithm>
#include <map>
#include <sstream>

#include "../../some_of.hpp"
#include "odd/plans.hpp"
#include "plans.hpp"

namespace explain_test {

using namespace rankc::codegen;

namespace {

using lines = std::vector<std::string>;

/// A printed pass: the sections before and after it, by layer or by rank.
struct change {
  std::map<std::string, std::array<lines, 2>> sections;
  lines gone, made;  // the marked lines of all sections
};
using explanation = std::map<std::string, change>;

explanation read(const std::string& text, const std::string& pass) {
  explanation all;
  change* of = nullptr;
  std::array<lines, 2>* here = nullptr;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line[0] != ' ' && line[0] != '+' && line[0] != '-') {
      const std::size_t end = line.find(", " + pass);
      REQUIRE(end != std::string::npos);
      REQUIRE_FALSE(all.contains(line.substr(0, end)));
      of = &all[line.substr(0, end)];
    } else if (line.starts_with("   ") && line[3] != ' ') {
      here = &of->sections[line.substr(3)];
    } else {
      if (line[0] != '+') (*here)[0].push_back(line.substr(6));
      if (line[0] != '-') (*here)[1].push_back(line.substr(6));
      if (line[0] == '-') of->gone.push_back(line.substr(6));
      if (line[0] == '+') of->made.push_back(line.substr(6));
    }
  }
  return all;
}

explanation explained(const rankc::plan_data& plan, dtype type, target to, const std::string& pass) {
  return read(explain(plan, type, to, pass), pass);
}

std::map<std::string, lines> lines_of(const listing& l) {
  std::map<std::string, lines> all;
  for (const section& s : l)
    if (!s.lines.empty()) all[s.title] = s.lines;
  return all;
}

/// Each pass of a layer begins with the result of the pass before, and the last one ends with the lowered
/// layer.
void check_layers(const rankc::plan_data& plan, dtype type, target to) {
  std::map<std::string, std::map<std::string, lines>> now;
  for (const std::string& pass : names_of_layer_passes()) {
    CAPTURE(pass);
    const explanation all = explained(plan, type, to, pass);
    REQUIRE(all.size() == rankc::forms_of(plan).size());
    for (const auto& [layer, change] : all) {
      CAPTURE(layer);
      std::map<std::string, lines> before, after;
      for (const auto& [title, sides] : change.sections) {
        if (!sides[0].empty()) before[title] = sides[0];
        if (!sides[1].empty()) after[title] = sides[1];
      }
      if (now.contains(layer)) CHECK(before == now[layer]);
      now[layer] = after;
    }
  }
  const lowered l = lower(plan, type, to);
  for (const body& b : l.bodies) CHECK(now[b.name] == lines_of(list_layer(b, plan.kinds[b.kind].ops)));
}

/// The same for ranks; a pass of ranks prints only its changes.
void check_ranks(const rankc::plan_data& plan, dtype type, target to) {
  std::map<std::string, lines> now;
  for (const std::string& pass : names_of_rank_passes()) {
    CAPTURE(pass);
    const change all = explained(plan, type, to, pass).at("ranks");
    for (const auto& [title, sides] : all.sections) {
      CAPTURE(title);
      CHECK(sides[0] == now[title]);
      CHECK(sides[0] != sides[1]);
      now[title] = sides[1];
    }
  }
  CHECK(now == lines_of(list_ranks(lower(plan, type, to))));
}

rankc::plan_data plan_of(const std::string& job, const std::string& layout) {
  for (const programs::job& j : programs::jobs)
    for (const programs::layout& l : programs::layouts)
      if (job == j.name && layout == l.name) return programs::make(j, l);
  FAIL("no such plan");
  return {};
}

/// The lines without the operands' shapes in brackets.
lines without_shapes(lines all) {
  for (std::string& line : all)
    for (std::size_t at; (at = line.find('[')) != std::string::npos;)
      line.erase(at, line.find(']', at) - at + 1);
  return all;
}

bool has(const lines& all, const std::string& line) {
  return std::find(all.begin(), all.end(), line) != all.end();
}

}  // namespace

TEST_CASE("the passes are printed in the order in which they run, each from what the one before it made") {
  struct run {
    rankc::plan_data plan;
    dtype type;
    target to;
  };
  std::vector<run> runs;
  for (const char* layout : {"one", "all_1f1b", "pp2_zbv", "tp2_dual_v"})
    for (const char* job : {"gpt2_8", "llama_8"}) {
      runs.push_back({plan_of(job, layout), dtype::f64, target::host});
      runs.push_back({plan_of(job, layout), dtype::bf16, target::cuda});
    }
  runs.push_back(
      {programs::make({"tiny_gpt2", "forwards", programs::order::looped_bfs, 1, 1, 2, 3, 2, 8, true}),
       dtype::bf16, target::cuda});
  const auto all_odd = odd::plans();
  for (std::size_t i = 0; i < all_odd.size(); i += rankc::test::plants_all() ? 5 : 15)
    runs.push_back({all_odd[i].plan, dtype::bf16, target::cuda});
  for (const run& r : runs) {
    CAPTURE(r.plan.name);
    check_layers(r.plan, r.type, r.to);
    check_ranks(r.plan, r.type, r.to);
  }
}

TEST_CASE("fusing: a product and the addition of a bias are two ops before, one after") {
  const rankc::plan_data plan = plan_of("gpt2_8", "one");
  const change fused = explained(plan, dtype::bf16, target::cuda, "fuse_forward").at("block");
  const auto& [before, after] = fused.sections.at("forward");
  CHECK(has(without_shapes(before), "wq_out = linear(h1, w.wq)"));
  CHECK(has(without_shapes(before), "q = bias(wq_out, w.wq_bias)"));
  CHECK(has(without_shapes(after), "q = linear_bias(h1, w.wq, w.wq_bias)"));
  CHECK(has(after, "q[512, 4 x 16] = linear_bias(h1[512, 64], w.wq[4 x 16, 64], w.wq_bias[4 x 16])"));
  for (const std::string& line : after) CHECK_FALSE(line.starts_with("wq_out"));
  CHECK(has(fused.gone, "wq_out[512, 4 x 16], 65536 bytes"));  // no op touches it any more
  const auto& backward = fused.sections.at("backward");
  CHECK(backward[0] == backward[1]);
}

TEST_CASE("packing joins neighbours for CUDA, and does nothing for the host") {
  const rankc::plan_data plan = plan_of("gpt2_8", "one");
  const change packed = explained(plan, dtype::bf16, target::cuda, "pack_linears").at("block");
  CHECK(has(without_shapes(packed.made),
            "qkv = linear_bias(h1, w.wq w.wk w.wv, w.wq_bias w.wk_bias w.wv_bias)"));
  CHECK(has(packed.made, "qkv[512, 192], 196608 bytes"));
  const std::string host = explain(plan, dtype::f32, target::host, "pack_linears");
  for (const char* layer : {"embedding", "block", "head"})
    CHECK(host.find(std::string(layer) + ", pack_linears: nothing changes\n") != std::string::npos);
}

TEST_CASE("a backward in two halves is printed as two") {
  const change split =
      explained(plan_of("gpt2_8", "pp2_zbv"), dtype::f32, target::host, "split_backward").at("block");
  const lines &whole = split.sections.at("backward")[0], &input = split.sections.at("backward_input")[1],
              &weight = split.sections.at("backward_weight")[1];
  CHECK(split.sections.at("backward")[1].empty());
  CHECK(input.size() + weight.size() == whole.size());
  for (const std::string& line : weight) CHECK(line.starts_with("dw."));
}

TEST_CASE("storage: where each value of a layer lies, and between which nodes") {
  const rankc::plan_data plan = plan_of("gpt2_8", "one");
  const change placed = explained(plan, dtype::f32, target::host, "place_values").at("block");
  const auto& [before, after] = placed.sections.at("storage");
  CHECK(before.empty());
  const body block = lower(plan, dtype::f32).bodies[1];
  CHECK(has(after, "kept for backward: " + std::to_string(block.saved_bytes) + " bytes"));
  CHECK(has(after, "work of backward: " + std::to_string(block.backward_temp) + " bytes"));
  const auto x_mid = static_cast<std::size_t>(
      std::find(block.names.values.begin(), block.names.values.end(), "x_mid") - block.names.values.begin());
  const value& v = block.values.at(x_mid);
  CHECK(v.where == space::saved);
  CHECK(v.offset > 0);
  CHECK(has(after, "  " + std::to_string(v.offset) + " + " + std::to_string(v.bytes) + ": x_mid, forward " +
                       std::to_string(v.forward.first) + " .. " + std::to_string(v.forward.last) +
                       ", backward " + std::to_string(v.backward.first) + " .. " +
                       std::to_string(v.backward.last)));
}

TEST_CASE("events are put between items that stay as they were") {
  const change ordered =
      explained(plan_of("gpt2_8", "pp2_1f1b"), dtype::f32, target::host, "order_streams").at("ranks");
  CHECK(ordered.gone.empty());
  const lines& train = ordered.sections.at("pipeline rank 1: train items")[1];
  const auto compute = std::find(train.begin(), train.end(), "compute    1F0");
  REQUIRE(compute != train.end());
  CHECK(compute[-1] == "compute      waits for x_1F0_received");
  for (const std::string& line : ordered.made)
    CHECK((line.find("waits for ") != std::string::npos || line.find("  records ") != std::string::npos));
}

TEST_CASE("the last pass: the ops of every rank") {
  const rankc::plan_data plan = plan_of("gpt2_8", "all_1f1b");
  const change flat = explained(plan, dtype::f32, target::host, "flatten").at("ranks");
  CHECK(flat.gone.empty());
  CHECK(flat.sections.size() == 16);  // eight ranks, training and evaluation
  const lines& ops = flat.sections.at("rank 5: train")[1];
  CHECK(static_cast<std::size_t>(std::count_if(ops.begin(), ops.end(), [](const std::string& line) {
          return !line.starts_with("       ");
        })) == expand_train(lower(plan, dtype::f32)).ranks[5].ops.size());
}

}  // namespace explain_test
