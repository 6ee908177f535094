// SPDX-License-Identifier: Apache-2.0
// A hand-written program for tests of fabric and engine: any pp x dp x tp with a ring of pipeline edges,
// whose step is whatever function the test sets.
#pragma once
#include <doctest/doctest.h>

#include <rankc/runtime/host/rank.hpp>

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace rankc::test {

using namespace host;

/// What every rank runs, as training and as evaluation.
inline std::function<void(rank&)> train_body, evaluate_body;

class plan {
 public:
  plan(int pp, int dp, int tp, dtype type = dtype::f64) {
    about_ = {.interface_version = interface_version,
              .name = "test",
              .plan_hash = 42,
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
                                                  .events = 16});
    for (int p = 0; p < pp; ++p)
      for (int d = 0; d < dp; ++d)
        for (int t = 0; t < tp; ++t) ranks.push_back({p, d, t, {-1, -1, -1, -1, -1, -1, -1, -1, -1}});
    const auto at = [=](int p, int d, int t) { return (p * dp + d) * tp + t; };
    connect_tp("tp", role::tp);
    for (int p = 0; p < pp; ++p)
      for (int t = 0; t < tp; ++t) {
        std::vector<int> group;
        for (int d = 0; d < dp; ++d) group.push_back(at(p, d, t));
        connect("dp", group, role::dp);
      }
    for (int p = 0; p < pp && pp > 1; ++p)
      for (int d = 0; d < dp; ++d)
        for (int t = 0; t < tp; ++t) {
          const int here = at(p, d, t), next = at((p + 1) % pp, d, t);
          edge(here, next, role::to_next, role::from_prev);
          edge(next, here, role::to_prev, role::from_next);
        }
  }

  std::vector<layout> layouts;
  std::vector<rank_row> ranks;

  description& about() { return about_; }

  /// Give every rank a second stream of computation.
  void overlap() {
    for (layout& l : layouts) l.overlaps = true;
    connect_tp("tp beside", role::tp_beside);
  }

  std::unique_ptr<engine> install() {
    about_.layouts = layouts;
    about_.ranks = ranks;
    about_.communicators = communicators_;
    train_.assign(layouts.size(), [](rank& r) { train_body(r); });
    evaluate_.assign(layouts.size(), [](rank& r) { evaluate_body(r); });
    return host::install({about_, about_.trains ? train_.data() : nullptr, evaluate_.data()});
  }

 private:
  int add(const std::string& name, std::vector<int> members) {
    names_.push_back(name);
    members_.push_back(std::move(members));
    communicators_.push_back({names_.back().c_str(), members_.back()});
    return static_cast<int>(communicators_.size()) - 1;
  }
  void set(int rank, role what, int communicator) {
    ranks[static_cast<std::size_t>(rank)].communicator[static_cast<int>(what)] = communicator;
  }
  void connect_tp(const std::string& name, role what) {
    for (std::size_t first = 0; first < ranks.size(); first += static_cast<std::size_t>(about_.tp)) {
      std::vector<int> group;
      for (int t = 0; t < about_.tp; ++t) group.push_back(static_cast<int>(first) + t);
      connect(name, group, what);
    }
  }
  void connect(const std::string& name, const std::vector<int>& group, role what) {
    const int c = add(name + " of rank " + std::to_string(group[0]), group);
    for (const int r : group) set(r, what, c);
  }
  void edge(int from, int to, role out, role in) {
    const int c =
        add(std::to_string(from) + " to " + std::to_string(to), {std::min(from, to), std::max(from, to)});
    set(from, out, c);
    set(to, in, c);
  }

  description about_{};
  std::deque<std::string> names_;
  std::deque<std::vector<int>> members_;
  std::vector<communicator> communicators_;
  std::vector<void (*)(rank&)> train_, evaluate_;
};

inline constexpr step_input input(std::int64_t step) { return {0.1, 0, 0, 0.9, 0.95, 1e-8, step}; }

/// Run one step of `body` and return the failure it must end in.
inline failure failing_step(plan& p, std::function<void(rank&)> body) {
  train_body = std::move(body);
  const std::unique_ptr<engine> e = p.install();
  try {
    e->step(input(1));
  } catch (const failure& f) {
    return f;
  }
  FAIL("the step did not fail");
  return {0, ""};
}

inline void check_says(const failure& f, std::initializer_list<std::string> parts) {
  const std::string text = f.what();
  CAPTURE(text);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

/// The free bytes of a test's arena, in elements.
template <class T>
at data(int element) {
  return {4096 + static_cast<std::size_t>(element) * sizeof(T)};
}

}  // namespace rankc::test
