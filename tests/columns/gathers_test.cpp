// SPDX-License-Identifier: Apache-2.0
// The communication of ranks that shard the columns of experts: the formulas, the report of describe, and the
// fabric's counts agree.
// Source: rows 41 and 42 of the table of collectives. Forward: an all-gather and a reduce-scatter of the
// slots that a rank receives. Backward: the same. And the offsets.
#include <doctest/doctest.h>

#include <rankc/runtime/host/transfers.hpp>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "run.hpp"

namespace gathers_test {

namespace {

/// The sizes of a family. `most_of_two`: how many picks an expert takes from two tokens; 0: all.
struct sizes {
  int layers, hidden, experts, picks, most_of_two;
};
const std::map<std::string, sizes> families{{"mixtral", {4, 16, 4, 2, 0}},
                                            {"capacity", {4, 12, 4, 2, 1}},
                                            {"shared", {4, 12, 4, 3, 0}},
                                            {"primes", {2, 14, 10, 3, 0}},
                                            {"across", {4, 24, 6, 2, 0}}};

/// The rows that a rank receives from its ep peers. Each peer sends at most the picks of a rank's experts,
/// padded to whole tokens.
std::int64_t received_rows(const sizes& s, const rankc::runtime::description& about) {
  const int tokens = about.rows * about.seq / about.cp / about.tp, of_rank = s.experts / about.ep;
  const int all = tokens * std::min(s.picks, of_rank),
            taken = s.most_of_two ? tokens / 2 * of_rank * s.most_of_two : all;
  return std::int64_t{about.ep} * ((std::min(all, taken) + s.picks - 1) / s.picks) * s.picks;
}

}  // namespace

TEST_CASE("ranks of etp gather what the formulas, the program's table and the fabric say") {
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.about->etp == 1) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program);
    r.load();
    std::vector<rankc::host::transfer> did;
    counted_step(*r.engine, {r.lr, 0, 0, 0.9, 0.95, 1e-8, 1}, did);
    const sizes& of = families.at(program.job);
    const auto ranks = nlohmann::json::parse(r.about.json).at("pipeline_ranks");
    std::map<std::string, std::int64_t> times;  // calls of each kind, on all pipeline ranks
    // Bytes of each kind, by pipeline rank.
    std::vector<std::map<std::string, std::int64_t>> told(ranks.size());
    for (std::size_t p = 0; p < ranks.size(); ++p)
      for (const auto& row : ranks[p].at("collectives")) {
        if (row.at("axis") != "etp") continue;
        const std::string kind = row.at("kind"), phase = row.at("phase");
        const bool of_offsets = kind == "gather_offsets";
        const auto count = row.at("count").get<std::int64_t>(),
                   elements = row.at("elements").get<std::int64_t>(), size = std::int64_t{of_offsets ? 4 : 8};
        CHECK(row.at("ranks") == r.about.etp);
        CHECK(row.at("dtype") == (of_offsets ? "i32" : "f64"));
        const std::int64_t of_each = of_offsets ? 2 * of.experts : received_rows(of, r.about) * of.hidden;
        CHECK(elements == count * r.about.etp * of_each);
        CHECK(row.at("sent_bytes").get<double>() ==
              static_cast<double>(count * (r.about.etp - 1) * of_each * size));
        times[kind + " " + phase] += count;
        told[p][kind == "scatter_slots" ? "reduce_scatter" : "all_gather"] += count * of_each * size;
      }
    const std::int64_t each = std::int64_t{of.layers} * r.about.microbatches,
                       again = program.layout == "repeated" ? each : 0;
    CHECK(times["gather_offsets forward"] == each);
    CHECK(times["gather_slots forward"] == each);
    CHECK(times["scatter_slots forward"] == each);
    CHECK(times["gather_slots backward"] == each + again);
    CHECK(times["scatter_slots backward"] == each + again);
    for (int rank = 0; rank < r.about.world(); ++rank) {
      const rankc::runtime::rank_row& row = r.about.ranks[static_cast<std::size_t>(rank)];
      std::map<std::string, std::int64_t> carried;
      for (const rankc::host::transfer& t : did)
        for (const rankc::runtime::lane_communicator& k : row.links)
          if (t.rank == rank && t.communicator == k.communicator && k.over == rankc::runtime::over::etp)
            carried[std::string(t.kind)] += static_cast<std::int64_t>(t.count * t.element_bytes);
      CHECK(carried == told[static_cast<std::size_t>(row.pp)]);
    }
    ++programs;
  }
  CHECK(programs == expected_of(programs, 25));
}

}  // namespace gathers_test
