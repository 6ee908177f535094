// SPDX-License-Identifier: Apache-2.0
// A handwritten program for tests of fabric and engine: any pp x dp x tp with a ring of pipeline edges, whose
// step is a function that the test sets.
#pragma once
#include "../../../said.hpp"

#include <doctest/doctest.h>

#include <rankc/runtime/host/rank.hpp>

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace rankc::test {

using namespace runtime;
using namespace host;

/// The lanes of every rank; the last one only if the plan overlaps.
enum : int { compute, reduce, to_next, from_prev, to_prev, from_next, overlap };
inline constexpr lane_row all_lanes[]{{"compute", true},    {"reduce", false},  {"to_next", false},
                                      {"from_prev", false}, {"to_prev", false}, {"from_next", false},
                                      {"overlap", true}};

/// The body of every rank, in training and in evaluation.
inline std::function<void(rank&)> train_body, evaluate_body;

class plan {
 public:
  plan(int pp, int dp, int tp, dtype type = dtype::f64) {
    about_ = {.interface_version = interface_version,
              .name = "test",
              .plan_hash = 0,  // not made by a generator
              .type = type,
              .pp = pp,
              .dp = dp,
              .tp = tp,
              .microbatches = 2,
              .rows = 1,
              .seq = 4,
              .vocab = 8,
              .vocab_used = 8,
              .flops_per_token = 0,
              .peak_flops = 0,
              .train = {},
              .layouts = {},
              .ranks = {},
              .communicators = {},
              .text = "",
              .json = ""};
    layouts.assign(static_cast<std::size_t>(pp), {.arena_bytes = 1 << 20,
                                                  .weights = {0},
                                                  .gradients = {800},
                                                  .first_moment = {1600},
                                                  .second_moment = {2400},
                                                  .parameter_count = 100,
                                                  .parameters = {},
                                                  .ropes = {},
                                                  .tokens = {3200},
                                                  .targets = {3264},
                                                  .reads_tokens = false,
                                                  .reads_targets = false,
                                                  .loss = {3328},
                                                  .norm = {3336},
                                                  .events = 16,
                                                  .lanes = std::span(all_lanes).first(overlap)});
    for (int p = 0; p < pp; ++p)
      for (int d = 0; d < dp; ++d)
        for (int t = 0; t < tp; ++t) ranks.push_back({p, d, t, {}});
    links.resize(ranks.size());
    const auto at = [=](int p, int d, int t) { return (p * dp + d) * tp + t; };
    connect_tp("tp", compute);
    for (int p = 0; p < pp; ++p)
      for (int t = 0; t < tp; ++t) {
        std::vector<int> group;
        for (int d = 0; d < dp; ++d) group.push_back(at(p, d, t));
        connect("dp", group, reduce, over::dp);
        connect("dp on compute", group, compute, over::dp);
      }
    for (int p = 0; p < pp && pp > 1; ++p)
      for (int d = 0; d < dp; ++d)
        for (int t = 0; t < tp; ++t) {
          const int here = at(p, d, t), next = at((p + 1) % pp, d, t);
          edge(here, next, to_next, from_prev);
          edge(next, here, to_prev, from_next);
        }
  }

  std::vector<layout> layouts;
  std::vector<rank_row> ranks;
  std::vector<std::vector<lane_communicator>> links;  // by rank

  description& about() { return about_; }

  /// Give every rank a second computing lane.
  void add_overlap() {
    for (layout& l : layouts) l.lanes = all_lanes;
    connect_tp("tp of what overlaps", overlap);
  }

  /// Add a communicator of some ranks, on the same lane of each.
  void connect(const std::string& name, const std::vector<int>& group, int lane, over what) {
    const int c = add(name + " of rank " + std::to_string(group[0]), group);
    for (const int r : group) links[static_cast<std::size_t>(r)].push_back({lane, what, c});
  }

  program built() {
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].links = links[r];
    about_.layouts = layouts;
    about_.ranks = ranks;
    about_.communicators = communicators_;
    train_.assign(layouts.size(), [](rank& r) { train_body(r); });
    evaluate_.assign(layouts.size(), [](rank& r) { evaluate_body(r); });
    return {about_, about_.trains ? train_.data() : nullptr, evaluate_.data()};
  }
  std::unique_ptr<engine> install() { return host::install(built()); }

 private:
  int add(const std::string& name, std::vector<int> members) {
    names_.push_back(name);
    members_.push_back(std::move(members));
    communicators_.push_back({names_.back().c_str(), members_.back()});
    return static_cast<int>(communicators_.size()) - 1;
  }
  void connect_tp(const std::string& name, int lane) {
    for (std::size_t first = 0; first < ranks.size(); first += static_cast<std::size_t>(about_.tp)) {
      std::vector<int> group;
      for (int t = 0; t < about_.tp; ++t) group.push_back(static_cast<int>(first) + t);
      connect(name, group, lane, over::tp);
    }
  }
  void edge(int from, int to, int out, int in) {
    const int c = add(std::to_string(from) + " to " + std::to_string(to), {from, to});
    links[static_cast<std::size_t>(from)].push_back({out, over::peer, c});
    links[static_cast<std::size_t>(to)].push_back({in, over::peer, c});
  }

  description about_{};
  std::deque<std::string> names_;
  std::deque<std::vector<int>> members_;
  std::vector<communicator> communicators_;
  std::vector<void (*)(rank&)> train_, evaluate_;
};

inline constexpr step_input input(std::int64_t step) { return {0.1, 0, 0, 0.9, 0.95, 1e-8, step}; }

/// Run one step of `body`, which must fail. Returns: the failure.
inline failure failing_step(plan& p, std::function<void(rank&)> body) {
  train_body = std::move(body);
  const std::unique_ptr<engine> e = p.install();
  try {
    e->step(input(1));
  } catch (const failure& f) {
    return f;
  }
  FAIL("the step did not fail");
  return failure::reported(0, "");
}

/// Check a rank's sentence and the place before it, such as "rank 1, step 1, 1F0".
inline void check_says(const failure& f, const std::string& place, const said& wanted) {
  const std::string text = f.what();
  CAPTURE(text);
  CHECK(text.starts_with(place + ": RC"));
  CHECK(said_in(text) == wanted);
}

/// The free bytes of a test's arena, in elements.
template <class T>
at data(int element) {
  return {4096 + static_cast<std::size_t>(element) * sizeof(T)};
}

}  // namespace rankc::test
