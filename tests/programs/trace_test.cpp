// SPDX-License-Identifier: Apache-2.0
// A measured step of real programs: who did what, in the plan's order, and when.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "plans.hpp"
#include "run.hpp"

using rankc::runtime::stream;
using rankc::runtime::traced;

namespace {

const registered& find(const std::string& layout) {
  for (const registered& p : host_registry)
    if (p.job == "gpt2_8" && p.layout == layout && p.type == "f64") return p;
  throw std::logic_error("no such program");
}

std::vector<std::string> actions_of(const std::string& layout, int pp) {
  for (const auto& l : programs::layouts) {
    if (layout != l.name) continue;
    const rankc::action_table t = programs::make(programs::jobs[1], l).actions;
    std::vector<std::string> out;
    for (int i = t.begin[pp]; i < t.begin[pp + 1]; ++i) {
      rankc::sentence s;
      s << t.actions[i];
      out.emplace_back(s.view());
    }
    return out;
  }
  throw std::logic_error("no such layout");
}

}  // namespace

TEST_CASE("a traced step has every action of every rank in order, and nothing overlaps on a stream") {
  for (const char* layout : {"one", "dp2", "pp2_1f1b", "pp4_gpipe", "all_1f1b"}) {
    CAPTURE(std::string(layout));
    run r(find(layout)), plain(find(layout));
    r.step();
    plain.step();
    r.load();
    const auto& t = r.about.train;
    std::vector<traced> did;
    const rankc::runtime::step_input in{3e-4, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, 2};
    const auto out = r.engine->traced_step(in, did);
    const auto same = plain.step();
    CHECK(out.loss == same.loss);
    CHECK(out.grad_norm == same.grad_norm);
    std::map<std::string, std::vector<traced>> ends;  // of each message
    for (int rank = 0; rank < r.about.world(); ++rank) {
      CAPTURE(rank);
      std::vector<std::string> actions, others;
      std::vector<double> until(rankc::runtime::n_streams, 0.0);
      for (const traced& e : did) {
        if (e.rank != rank) continue;
        CAPTURE(std::string(e.name));
        double& before = until[static_cast<std::size_t>(e.on)];
        CHECK(e.begin >= before);
        CHECK(e.end >= e.begin);
        before = e.end;
        if (e.on != stream::compute) ends[e.name].push_back(e);
        else if (e.name[0] >= '0' && e.name[0] <= '9') actions.emplace_back(e.name);
        else others.emplace_back(e.name);
      }
      CHECK(actions == actions_of(layout, r.about.ranks[rank].pp));
      CHECK(std::count(others.begin(), others.end(), "optimizer") == 1);
    }
    for (const auto& [name, both] : ends) {
      CAPTURE(name);
      if (name.find(": stage ") == name.npos) continue;
      REQUIRE(both.size() == 2 * static_cast<std::size_t>(r.about.dp * r.about.tp));
      for (const traced& e : both) {  // what is received was computed before
        if (e.on != stream::from_prev && e.on != stream::from_next) continue;
        const std::string made = name[name.find("stage ") + 6] + name.substr(0, name.find(':'));
        const auto maker = std::find_if(did.begin(), did.end(), [&](const traced& d) {
          const auto &from = r.about.ranks[d.rank], &to = r.about.ranks[e.rank];
          return made == d.name && from.dp == to.dp && from.tp == to.tp;
        });
        REQUIRE(maker != did.end());
        CHECK(e.begin >= maker->begin);
      }
    }
    // The next step is not timed, and gives what it would.
    CHECK(r.engine->evaluate() == plain.engine->evaluate());
    const std::size_t count = did.size();
    r.engine->step({3e-4, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, 3});
    CHECK(did.size() == count);
  }
}
