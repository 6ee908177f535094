// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>

#include "answers.hpp"

namespace rankc::tool {

namespace {

/// The page for a line, or its diagnostics.
std::string page(const char* line) {
  std::ostringstream out, errors;
  const int code = show_dims(json::parse(line), out, errors);
  return code == 0 ? out.str() : errors.str();
}

std::string drawing(const char* line, int per_node) {
  report none;
  return draw_nodes(lay_out(read_dims(json::parse(line), none), none).value(), per_node);
}

}  // namespace

TEST_CASE("an answer has every field of the interface") {
  CHECK(
      dims(
          R"({"world": 4, "tp": 2, "pp": "infer", "model": {"tied_embeddings": true, "heads": 4}, "groups": true})") ==
      json::parse(R"({"ok": true, "diagnostics": [{"id": "RC219", "text":
    "tied embeddings with pp=2: the first and the last stage both hold the table and sum its gradient over the two, once a step",
    "warning": true}],
    "resolved": {"world": 4, "pp": 2, "dp_replicate": 1, "dp_shard": 1, "cp": 1, "tp": 2, "ep": 1, "etp": 1, "ulysses": 1,
      "sequence_parallel": true, "expert_layout": "folded", "cp_weights": "shard"},
    "axes": {"pp": {"size": 2, "stride": 2}, "dp_replicate": {"size": 1, "stride": 2}, "dp_shard": {"size": 1, "stride": 2},
      "cp": {"size": 1, "stride": 2}, "ring": {"size": 1, "stride": 2}, "ulysses": {"size": 1, "stride": 2},
      "tp": {"size": 2, "stride": 1}, "edp_replicate": {"size": 1, "stride": 2}, "edp_shard": {"size": 2, "stride": 1},
      "ep": {"size": 1, "stride": 1}, "etp": {"size": 1, "stride": 1}},
    "aliases": {"cp": {"size": 1}, "dp": {"size": 1}, "batch": {"size": 1}, "fsdp": {"size": 1}, "replicas": {"size": 1},
      "loss": {"size": 1}, "dp_cp": {"size": 1}, "tp_cp": {"size": 2, "stride": 1}, "tp_dp": {"size": 2, "stride": 1},
      "model": {"size": 4, "stride": 1}, "efsdp": {"size": 2, "stride": 1}, "expert_replicas": {"size": 1},
      "edp": {"size": 2, "stride": 1}, "ep_etp": {"size": 1}, "embedding": {"size": 2, "stride": 2}},
    "communicators": [{"size": 2, "groups": 2, "serves": ["pp", "embedding"]}, {"size": 2, "groups": 2, "serves": ["tp"]}],
    "n_communicators": 2, "n_groups": 4,
    "groups": {"pp": [[0, 2], [1, 3]], "dp_replicate": [[0], [1], [2], [3]], "dp_shard": [[0], [1], [2], [3]],
      "ring": [[0], [1], [2], [3]], "ulysses": [[0], [1], [2], [3]], "tp": [[0, 1], [2, 3]],
      "edp_replicate": [[0], [1], [2], [3]], "edp_shard": [[0, 1], [2, 3]], "ep": [[0], [1], [2], [3]],
      "etp": [[0], [1], [2], [3]], "cp": [[0], [1], [2], [3]], "dp": [[0], [1], [2], [3]], "batch": [[0], [1], [2], [3]],
      "fsdp": [[0], [1], [2], [3]], "replicas": [[0], [1], [2], [3]], "loss": [[0], [1], [2], [3]],
      "dp_cp": [[0], [1], [2], [3]], "tp_cp": [[0, 1], [2, 3]], "tp_dp": [[0, 1], [2, 3]], "model": [[0, 1, 2, 3]],
      "efsdp": [[0, 1], [2, 3]], "expert_replicas": [[0], [1], [2], [3]], "edp": [[0, 1], [2, 3]],
      "ep_etp": [[0], [1], [2], [3]], "embedding": [[0, 2], [1, 3]]}})"));
}

TEST_CASE(
    "the text of groups is the groups of the layout, and communicators are counted as they are listed") {
  for (
      const char* line :
      {R"({"world": 48, "pp": 3, "dp_shard": 2, "cp": 4, "ulysses": 2, "tp": 2, "ep": 4, "etp": 2, "groups": true,
            "model": {"tied_embeddings": true, "experts": 4}})",
       R"({"world": 32, "dp_replicate": 2, "dp_shard": "infer", "cp": 2, "tp": 2, "ep": 16, "cp_weights": "replicate",
            "expert_layout": "folded_over_replicas", "groups": true})",
       R"({"world": 24, "dp_shard": "infer", "cp": 2, "tp": 2, "ep": 3, "etp": 2, "expert_layout": "independent", "groups": true})",
       R"({"world": 1, "groups": true})"}) {
    CAPTURE(line);
    const json a = dims(line);
    REQUIRE(a["ok"] == true);
    report none;
    const dims_request r = read_dims(json::parse(line), none);
    const layout l = lay_out(r, none).value();
    const bool has_inner = l.groups(axis::edp_inner).size() > 1;
    CHECK(a["groups"].size() == static_cast<std::size_t>(n_axis_rows - !has_inner));
    for (const auto& [name, listed] : a["groups"].items()) {
      const auto* at = std::find(std::begin(axis_names), std::end(axis_names), name);
      CHECK(listed == json(l.groups(static_cast<axis>(at - axis_names)).groups(l.ranks())));
    }
    int n_groups = 0;
    for (const json& c : a["communicators"])
      for (const json& name : c["serves"]) {
        const json& listed = a["groups"][name.get<std::string>()];
        const auto several =
            std::count_if(listed.begin(), listed.end(), [](const json& g) { return g.size() > 1; });
        CHECK(several == c["groups"]);
        if (name == c["serves"][0]) n_groups += static_cast<int>(several);
      }
    CHECK(a["n_groups"] == n_groups);
    CHECK(a["n_communicators"] == a["communicators"].size());
  }
}

TEST_CASE("any one degree is inferred") {
  const json whole =
      dims(R"({"world": 24, "pp": 3, "dp_shard": 2, "cp": 2, "tp": 2, "ep": 8, "ulysses": 2})");
  CHECK(ids(whole) == "");
  for (const char* degree : {"pp", "dp_replicate", "dp_shard", "cp", "tp", "ep", "etp", "ulysses"}) {
    json line{{"world", 24}, {"pp", 3}, {"dp_shard", 2}, {"cp", 2}, {"tp", 2}, {"ep", 8}, {"ulysses", 2}};
    line[degree] = "infer";
    CAPTURE(degree);
    CHECK(dims(line.dump())["resolved"] == whole["resolved"]);
  }
}

TEST_CASE("a line that is no request says why") {
  for (const auto& [line, said] :
       {std::pair(R"({})", test::said{8030, {"world"}}),
        std::pair(R"({"world": 8, "dp_shrad": 2})", test::said{8042, {"dp_shrad", "dp_shard"}}),
        std::pair(R"({"world": 8, "model": {"head": 2}})", test::said{8043, {"model", "head", "heads"}}),
        std::pair(R"({"world": 8, "tp": "two"})", test::said{8035, {"tp", "\"two\""}}),
        std::pair(R"({"world": 8, "tp": 4294967298})", test::said{8035, {"tp", "4294967298"}}),
        std::pair(R"({"world": 8, "cp_weights": "shared"})",
                  test::said{8041, {"cp_weights", "\"shared\"", "shard, replicate"}}),
        std::pair(R"({"world": 8, "cluster": {"nodes": 1, "gpus_per_node": 0}})",
                  test::said{8033, {"gpus_per_node", "0"}}),
        std::pair("[8]", test::said{8046, {}}),
        std::pair("8 ranks", test::said{6596, {"the line", "byte 3 is unexpected"}})}) {
    const json a = dims(line);
    CHECK(a["diagnostics"].size() == 1);
    CHECK(said_of(a) == said);
  }
  CHECK(ids(dims(R"({"world": 8, "tp": -1})")) == "RC104");
  CHECK(ids(dims(R"({"world": 65536, "dp_shard": "infer", "groups": true})")) == "");
  CHECK(ids(dims(R"({"world": 65537, "dp_shard": "infer", "groups": true})")) == "RC311");
  CHECK(ids(dims(R"({"world": 2147483647, "dp_shard": "infer"})")) == "");
}

TEST_CASE("all broken rules of dims, model, pipeline, batch and cluster are named at once") {
  CHECK(
      ids(dims(
          R"({"world": 16, "tp": 8, "pp": 4, "model": {"heads": 12, "layers": 1}, "batch": {"global": 3, "microbatches": 2},
                     "cluster": {"nodes": 1, "gpus_per_node": 8}})")) == "RC101 RC202 RC201 RC221 RC110");
  CHECK(ids(dims(R"({"world": 4, "pp": 4, "model": {"layers": 2}})")) == "");
  CHECK(ids(dims(R"({"world": 8, "ep": 2, "dp_shard": "infer"})")) == "");
  CHECK(ids(dims(R"({"world": 8, "ep": 2, "dp_shard": "infer", "model": {"heads": 8}})")) == "RC208");
}

TEST_CASE("the examples of rankc explain break their rules, and what mends them does") {
  CHECK(ids(dims(R"({"world": 6, "cp": 6, "ulysses": 4})")) == "RC107");
  CHECK(ids(dims(R"({"world": 6, "cp": 6, "ulysses": 3})")) == "");
  CHECK(ids(dims(R"({"world": 8, "dp_replicate": 4, "dp_shard": 2, "ep": 8})")) == "RC108");
  CHECK(ids(dims(R"({"world": 8, "dp_replicate": 4, "dp_shard": 2, "ep": 2})")) == "");
  CHECK(
      ids(dims(
          R"({"world": 8, "dp_replicate": 4, "dp_shard": 2, "ep": 8, "expert_layout": "folded_over_replicas"})")) ==
      "");
}

TEST_CASE("sequences divide as if sequence parallelism were on, unless it is off") {
  const std::string line = R"({"world": 4, "tp": 4, "model": {"seq": 6})";
  CHECK(ids(dims(line + "}")) == "RC216");
  CHECK(ids(dims(line + R"(, "sequence_parallel": false})")) == "");
}

TEST_CASE("a batch has as many microbatches as its microbatch gives") {
  const std::string line = R"({"world": 8, "dp_shard": 8, "batch": {"global": 64, "microbatch": )";
  CHECK(ids(dims(line + "2}}")) == "");
  CHECK(ids(dims(line + "3}}")) == "RC221");
  CHECK(ids(dims(line + R"(2, "microbatches": 2}})")) == "RC221");
}

TEST_CASE("a person reads tables and a drawing") {
  CHECK(page(R"({"world": 16, "pp": 2, "tp": 4, "dp_shard": "infer"})") ==
        R"(axes                   size     stride   group of rank 0
  pp                      2          8   0 8
  dp_shard                2          4   0 4
  tp                      4          1   0 1 2 3
  edp_shard               8          1   0 1 2 3 4 5 6 7
  of size 1: dp_replicate, ring, ulysses, edp_replicate, ep, etp

aliases                size     stride   group of rank 0
  dp                      2          4   0 4
  batch                   2          4   0 4
  fsdp                    2          4   0 4
  loss                    2          4   0 4
  dp_cp                   2          4   0 4
  tp_cp                   4          1   0 1 2 3
  tp_dp                   8          1   0 1 2 3 4 5 6 7
  model                   8              0 1 2 3 8 9 10 11
  efsdp                   8          1   0 1 2 3 4 5 6 7
  edp                     8          1   0 1 2 3 4 5 6 7
  embedding               2          8   0 8
  of size 1: cp, replicas, expert_replicas, ep_etp

communicators          size     groups   serve
  0                       2          8   pp: activations between stages
  1                       2          8   fsdp: shards of weights and gradients; loss: loss and token counts
  2                       4          4   tp: activations of tensor-parallel regions
  3 splits of the world make all 20 groups

nodes of 8 ranks (p pp, s dp_shard, t tp); a frame is a tp group
          ┌──────────┬──────────┬──────────┬──────────┐ ┌──────────┬──────────┬──────────┬──────────┐
  node 0  │ 0        │ 1        │ 2        │ 3        │ │ 4        │ 5        │ 6        │ 7        │
          │ p0 s0 t0 │ p0 s0 t1 │ p0 s0 t2 │ p0 s0 t3 │ │ p0 s1 t0 │ p0 s1 t1 │ p0 s1 t2 │ p0 s1 t3 │
          └──────────┴──────────┴──────────┴──────────┘ └──────────┴──────────┴──────────┴──────────┘
          ┌──────────┬──────────┬──────────┬──────────┐ ┌──────────┬──────────┬──────────┬──────────┐
  node 1  │ 8        │ 9        │ 10       │ 11       │ │ 12       │ 13       │ 14       │ 15       │
          │ p1 s0 t0 │ p1 s0 t1 │ p1 s0 t2 │ p1 s0 t3 │ │ p1 s1 t0 │ p1 s1 t1 │ p1 s1 t2 │ p1 s1 t3 │
          └──────────┴──────────┴──────────┴──────────┘ └──────────┴──────────┴──────────┴──────────┘
)");
  CHECK(page(R"({"world": 8, "tp": 3})") == R"(error[RC101]: tp(3) is not world=8: take tp=8, or world=3
)");
}

TEST_CASE("a frame is open where its group goes on in another row") {
  CHECK(drawing(R"({"world": 6, "tp": 3, "dp_shard": 2})", 2) ==
        R"(nodes of 2 ranks (s dp_shard, t tp); a frame is a tp group
          ┌───────┬────────
  node 0  │ 0     │ 1
          │ s0 t0 │ s0 t1
          └───────┴────────
          ────────┐ ┌────────
  node 1    2     │ │ 3
            s0 t2 │ │ s1 t0
          ────────┘ └────────
          ────────┬───────┐
  node 2    4     │ 5     │
            s1 t1 │ s1 t2 │
          ────────┴───────┘
)");
}

TEST_CASE("a large world is drawn in part") {
  CHECK(drawing(R"({"world": 1024, "dp_shard": 1024})", 8).ends_with("  ... 120 more nodes alike\n"));
  CHECK(drawing(R"({"world": 1023, "dp_shard": 1023})", 72).ends_with("  ... 959 more ranks alike\n"));
  CHECK(drawing(R"({"world": 65, "dp_shard": 65})", 8).ends_with("  ... 1 more node alike\n"));
}

}  // namespace rankc::tool
