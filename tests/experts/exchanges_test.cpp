// SPDX-License-Identifier: Apache-2.0
// The communication of expert-parallel ranks: the formulas, the report of describe, and the fabric's counts
// agree.
// Source: rows 37 and 38 of the table of collectives, two all-to-alls of slots each way in a layer, and the
// offsets.
#include <doctest/doctest.h>

#include <rankc/runtime/host/transfers.hpp>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "run.hpp"

namespace exchanges_test {

namespace {

constexpr int layers = 4, hidden = 12;
int experts_of(const std::string& family) { return family == "overflow" ? 8 : 4; }
int picks_of(const std::string& family) { return family == "overflow" ? 1 : 2; }

/// The most picks that an expert takes from a group of tokens, for families with a capacity: 1 of 2 tokens;
/// or 1.1, 0.5 and 6 even shares of a sequence.
struct group {
  int tokens, most;
};
const std::map<std::string, group> limits{
    {"capacity", {2, 1}}, {"capacity_losses", {8, 5}}, {"capacity_own", {8, 2}}, {"overflow", {8, 6}}};

/// The rows of all slabs of a rank: for each peer, the most picks that its tokens may have at the peer's
/// experts.
std::int64_t rows_of_slabs(const std::string& family, const rankc::runtime::description& about) {
  const int experts = experts_of(family), picks = picks_of(family);
  const bool shares_tokens = about.tp > 1;  // tp shards the tokens, by sequence parallelism
  const int tokens = about.rows * about.seq / about.cp / (shares_tokens ? about.tp : 1),
            most = std::min(picks, experts / about.ep);
  const auto limit = limits.find(family);
  const int taken = limit == limits.end()
                        ? tokens * most
                        : tokens / limit->second.tokens * experts / about.ep * limit->second.most;
  return std::int64_t{about.ep} * ((std::min(tokens * most, taken) + picks - 1) / picks) * picks;
}

}  // namespace

TEST_CASE("ranks of ep send what the formulas, the program's table and the fabric say") {
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.about->ep == 1) continue;
    CAPTURE(program.layout);
    run r(program);
    r.load();
    std::vector<rankc::host::transfer> did;
    counted_step(*r.engine, {r.lr, 0, 0, 0.9, 0.95, 1e-8, 1}, did);
    const auto ranks = nlohmann::json::parse(r.about.json).at("pipeline_ranks");
    std::map<std::string, std::int64_t> times;  // calls of each exchange, on all pipeline ranks
    std::vector<std::int64_t> bytes;            // bytes sent and kept, by pipeline rank
    for (const auto& of : ranks) {
      bytes.push_back(0);
      for (const auto& row : of.at("collectives")) {
        if (row.at("axis") != "ep") continue;
        const std::string kind = row.at("kind"), phase = row.at("phase");
        const bool of_offsets = kind == "share_offsets";
        const auto count = row.at("count").get<std::int64_t>(),
                   elements = row.at("elements").get<std::int64_t>(), size = std::int64_t{of_offsets ? 4 : 8};
        CHECK(row.at("ranks") == r.about.ep);
        CHECK(row.at("dtype") == (of_offsets ? "i32" : "f64"));
        CHECK(elements == count * (of_offsets ? 2 * experts_of(program.job)
                                              : rows_of_slabs(program.job, r.about) * hidden));
        CHECK(row.at("sent_bytes").get<double>() ==
              static_cast<double>((r.about.ep - 1) * elements * size) / r.about.ep);
        times[kind + " " + phase] += count;
        bytes.back() += elements * size;
      }
    }
    const std::int64_t each = std::int64_t{layers} * r.about.microbatches;
    const std::int64_t again = program.layout == "ep2_repeated" ? each : 0;
    CHECK(times["share_offsets forward"] == each);
    CHECK(times["to_experts forward"] == each);
    CHECK(times["from_experts forward"] == each);
    CHECK(times["to_experts backward"] == each + again);
    CHECK(times["from_experts backward"] == each + again);
    for (int rank = 0; rank < r.about.world(); ++rank) {
      const rankc::runtime::rank_row& row = r.about.ranks[static_cast<std::size_t>(rank)];
      std::int64_t carried = 0;
      for (const rankc::host::transfer& t : did)
        for (const rankc::runtime::lane_communicator& k : row.links)
          if (t.rank == rank && t.communicator == k.communicator && k.over == rankc::runtime::over::ep) {
            CHECK(std::string(t.kind) == "all_to_all");
            carried += static_cast<std::int64_t>(t.count * t.element_bytes) * r.about.ep;
          }
      CHECK(carried == bytes[static_cast<std::size_t>(row.pp)]);
    }
    ++programs;
  }
  CHECK(programs == expected_of(programs, 36));
}

}  // namespace exchanges_test
