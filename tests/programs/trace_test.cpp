// SPDX-License-Identifier: Apache-2.0
// A timed step of host programs, whose ranks share a clock: a message is sent after its content is computed.
#include "calls.hpp"
#include "traces.hpp"

#include "../some_of.hpp"

using rankc::runtime::traced;

namespace {

/// The program of the job `gpt2_4`, or null if the registry is a sample without it.
const registered* find(const std::string& layout) {
  for (const registered& p : host_registry)
    if (p.job == "gpt2_4" && p.layout == layout && p.type == "f64") return &p;
  return nullptr;
}

/// Check that both sides of each pipeline message are traced, after the beginning of the action that produces
/// it.
void check_messages(const rankc::runtime::description& about, const std::vector<traced>& did) {
  std::map<std::string, std::size_t> ends;
  for (const traced& e : did) {
    const std::string name = e.name;
    if (e.lane == 0 || name.find(": stage ") == name.npos) continue;
    CAPTURE(name);
    ++ends[name];
    const std::string made = name[name.find("stage ") + 6] + name.substr(0, name.find(':'));
    const auto maker = std::find_if(did.begin(), did.end(), [&](const traced& d) {
      const auto &from = about.ranks[d.rank], &to = about.ranks[e.rank];
      return made == d.name && from.dp == to.dp && from.tp == to.tp;
    });
    REQUIRE(maker != did.end());
    CHECK(e.begin >= maker->begin);
  }
  CHECK(ends.size() == 2 * static_cast<std::size_t>((about.pp - 1) * about.microbatches));
  for (const auto& [name, count] : ends) CHECK(count == 2 * static_cast<std::size_t>(about.dp * about.tp));
}

}  // namespace

TEST_CASE("a timed step has every action of every rank in order, and changes no bit") {
  int programs = 0;
  for (const char* layout : {"one", "dp2", "pp2_1f1b", "pp4_gpipe", "all_1f1b"}) {
    CAPTURE(std::string(layout));
    const registered* const found = find(layout);
    if (!found) continue;
    const registered& program = *found;
    ++programs;
    run timed(program), plain(program);
    timed.step();
    plain.step();
    std::vector<traced> did;
    const auto out = traced_step(timed, did), same = plain.step();
    CHECK(out.loss == same.loss);
    CHECK(out.grad_norm == same.grad_norm);
    check_times(program, did);
    check_messages(timed.about, did);
    // The next step is not timed and has the same results.
    const std::size_t count = did.size();
    CHECK(timed.step().loss == plain.step().loss);
    CHECK(did.size() == count);
  }
  CHECK(programs == expected_of(programs, 5));
  CHECK(programs >= 4);
}

TEST_CASE("a step timed call by call makes the calls that the program lists, and changes no bit") {
  int programs = 0;
  std::size_t n = 0;
  for (const registered& program : host_registry) {
    if (!program.about->trains || (program.type == "f64" && program.job != "gpt2_8" &&
                                   program.job != "llama_8" && program.job != "tiny_gpt2"))
      continue;
    if (!rankc::test::takes(n++)) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run timed(program), plain(program);
    CHECK(step_by_calls(timed, false).loss == plain.step().loss);
    CHECK(timed.step().loss == plain.step().loss);
    ++programs;
  }
  CHECK(n > (host_has_every_program ? 80 : 20));
  MESSAGE(programs << " programs");
}
