// SPDX-License-Identifier: Apache-2.0
// rankc gives the verdict and the groups of HyperParallel, torchtitan, d9d and Megatron for every recorded
// configuration, except for the classes of exceptions in the two tables.
#include <rankc/mesh/communicators.hpp>

#include "exceptions.hpp"
#include "legal_dims.hpp"

namespace rankc::test {

namespace {

bool accepted_here(const oracle& o) {
  const auto d = in_rankc(o);
  return d && accepted(*d);
}

int lowest(const oracle& o, std::initializer_list<const char*> names) {
  int n = o.in(*names.begin());
  for (const char* name : names) n = std::min(n, o.in(name));
  return n;
}

bool silently_broken(const oracle& o) { return o.record.contains("silently_broken"); }

const std::vector<exception> verdict_exceptions{
    {"C8: any single degree is inferable, not dp_shard alone",
     [](const oracle& o) {
       return (o.rule == "HP-1" || o.rule == "TT-1") && inferred(*in_rankc(o)) == 1 && filled(*in_rankc(o));
     },
     false, true, 13},
    {"C4: etp is any divisor, not 1 or tp alone",
     [](const oracle& o) { return (o.rule == "HP-5" || o.rule == "TTe-5") && filled(*in_rankc(o)); }, false,
     true, 4},
    {"HP-6: pipeline parallelism was not implemented", [](const oracle& o) { return o.rule == "HP-6"; },
     false, true, 10},
    {"defect 3 of HyperParallel: a ulysses degree is accepted where cp = 1 or it is negative",
     [](const oracle& o) {
       return o.system == "hyperparallel" && o.accepted() &&
              (o.in("ulysses_degree") < 1 || (o.in("cp") == 1 && o.in("ulysses_degree") > 1));
     },
     true, false, 11},
    {"defect 3 of HyperParallel: etp is ignored where ep = 1",
     [](const oracle& o) {
       return o.system == "hyperparallel" && o.accepted() && o.in("ep") == 1 &&
              o.in("cp") * o.in("tp") % o.in("etp") != 0;
     },
     true, false, 6},
    {"C16: HyperParallel's newest makes a degree below 1 a 1",
     [](const oracle& o) {
       return o.system == "hyperparallel_newest" && o.accepted() && lowest(o, {"tp", "cp", "pp", "ep"}) < 1;
     },
     true, false, 4},
    {"C6: weights are sharded over all of a cp group or none, not over a part of it",
     [](const oracle& o) {
       return o.system == "hyperparallel_newest" && o.accepted() && o.in("dp_shard") > 1 &&
              o.in("dp_shard") % o.in("cp") != 0;
     },
     true, false, 6},
    {"HPN-1, HPN-8: edp_shard is no degree of rankc, experts are sharded over all of edp",
     [](const oracle& o) {
       return (o.rule == "HPN-1" || o.rule == "HPN-8") && in_rankc(o) && inferred(*in_rankc(o)) == 1 &&
              filled(*in_rankc(o));
     },
     false, true, 3},
    {"D9-2, C16: d9d accepts a degree below 1; -1 is `infer` here",
     [](const oracle& o) {
       return o.system == "d9d" && o.accepted() && inferred(*in_rankc(o)) == 1 && filled(*in_rankc(o));
     },
     true, true, 2},
    {"D9-2, C16: d9d accepts a degree below 1",
     [](const oracle& o) {
       return o.system == "d9d" && o.accepted() &&
              lowest(o, {"pp", "dpr", "dps", "cps", "cpr", "tp", "ep"}) < 1;
     },
     true, false, 10},
    {"D9-3, C14: d9d accepts a mesh smaller than the world",
     [](const oracle& o) {
       const int mesh = o.in("pp") * o.in("dpr") * o.in("dps") * o.in("cps") * o.in("cpr") * o.in("tp");
       return o.system == "d9d" && o.accepted() && mesh < o.in("world_size");
     },
     true, false, 4},
    {"C6: the ranks of a cp group share the weights or each hold them, not a part of them each",
     [](const oracle& o) { return o.system == "d9d" && o.accepted() && o.in("cps") > 1 && o.in("cpr") > 1; },
     true, false, 75},
    {"MG-4, C5: pp is outermost, whatever order is asked for",
     [](const oracle& o) { return o.rule == "MG-4"; }, false, true, 15},
    {"MG-8, C15: the ring is what ulysses leaves of cp, so that their product cannot be wrong",
     [](const oracle& o) { return o.rule == "MG-8"; }, false, true, 1},
};

/// A class of accepted configurations in which some groups differ.
struct group_exception {
  std::string reason;
  bool (*applies)(const oracle&);
  int count;
};

const group_exception group_exceptions[]{
    {"C5: pp is outermost, Megatron puts dp there if told so",
     [](const oracle& o) {
       const bool dp = o.in("world_size") > o.in("tp") * o.in("cp") * o.in("pp");
       return o.record["in"].value("order", "") == "tp-cp-ep-pp-dp" && dp && o.in("pp") > 1;
     },
     4},
    {"D9-4: d9d's expert mesh forgets tp; it leaves ranks out, and has groups where its size is not 0 or 1",
     [](const oracle& o) {
       if (!silently_broken(o)) return false;
       const std::vector<int> shape = o.record["expert_shape"];
       return shape[0] * shape[1] * shape[2] > 1;
     },
     77},
};

partition join_of(const layout& l, const std::vector<axis>& aliases) {
  partition out = of_shape({}, l.ranks());
  for (axis a : aliases) out = join(out, of_shape(l.groups(a), l.ranks()));
  return out;
}

long long product_of(const layout& l, const std::vector<axis>& aliases) {
  long long n = 1;
  for (axis a : aliases) n *= l.groups(a).size();
  return n;
}

const std::vector<oracle> oracles = read_oracles();

}  // namespace

TEST_CASE("every configuration gets the verdict of its system") {
  CHECK(oracles.size() == 2549);
  CHECK(check_verdicts(
            oracles, verdict_exceptions, [](const oracle& o) { return o.accepted(); }, accepted_here) ==
        2385);
}

TEST_CASE("every configuration that both accept has the groups of its system") {
  std::map<const group_exception*, int> seen;
  std::map<const same_groups*, int> compared;
  for (const oracle& o : oracles) {
    if (!o.accepted() || !accepted_here(o)) continue;
    const layout l(resolve(*in_rankc(o)));
    std::string different;
    for (const same_groups& c : correspondences) {
      if (o.system.substr(0, o.system.find(' ')) != c.system) continue;
      const auto size = size_of(o, c.theirs);
      const auto groups = groups_of(o, c.theirs);
      compared[&c] += size || groups;
      if ((size && *size != product_of(l, c.ours)) || (groups && *groups != join_of(l, c.ours)))
        different += c.theirs[0] + " ";
    }
    CAPTURE(o.system);
    CAPTURE(o.record.dump());
    CAPTURE(different);
    const auto* e = std::find_if(std::begin(group_exceptions), std::end(group_exceptions),
                                 [&](const group_exception& x) { return x.applies(o); });
    CHECK(different.empty() == (e == std::end(group_exceptions)));
    if (e != std::end(group_exceptions)) ++seen[e];
  }
  for (const group_exception& e : group_exceptions) {
    CAPTURE(e.reason);
    CHECK(seen[&e] == e.count);
  }
  for (const same_groups& c : correspondences) {
    CAPTURE(c.system);
    CAPTURE(c.theirs[0]);
    CHECK(compared[&c] > 0);
  }
}

TEST_CASE("what d9d silently breaks is refused, or has an expert view of all ranks instead") {
  int smaller = 0, without_words = 0, whole = 0;
  for (const oracle& o : oracles) {
    if (!silently_broken(o)) continue;
    CAPTURE(o.record.dump());
    // By d9d's definition it is not a view of the ranks.
    const std::vector<int> shape = o.record["expert_shape"];
    const auto ranks_of_view = [&] {
      return view{{mesh_axis::pp, shape[0]}, {mesh_axis::edp_shard, shape[1]}, {mesh_axis::ep, shape[2]}}
          .span();
    };
    if (shape[1] == 0) CHECK_THROWS_AS(ranks_of_view(), std::invalid_argument);
    else CHECK(ranks_of_view() != o.in("world_size"));

    const auto d = in_rankc(o);
    if (!d) {
      ++without_words;
    } else if (!accepted(*d)) {
      ++smaller;
    } else {
      // rankc spreads experts over tp's ranks, too, as d9d's own check of ep does.
      ++whole;
      CHECK(o.in("tp") > 1);
      CHECK(layout(*d).expert().span() == o.in("world_size"));
    }
  }
  CHECK(smaller == 4);
  CHECK(without_words == 29);
  CHECK(whole == 115);
}

TEST_CASE("rankc needs fewer groups of ranks than Megatron makes") {
  int compared = 0;
  for (const oracle& o : oracles) {
    if (o.system != "megatron" || !o.accepted() || !accepted_here(o)) continue;
    CAPTURE(o.record.dump());
    const layout l(resolve(*in_rankc(o)));
    CHECK(count_groups(l, plan_communicators(l, true, true)) < o.record["n_groups"].get<int>());
    ++compared;
  }
  CHECK(compared == 252);
}

}  // namespace rankc::test
