// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule: which action every rank takes, in which order. A schedule type emits the actions of a rank;
// this file defines actions, collects them and proves that they can run to the end, each once and in data order.
#pragma once
#include <rankc/diagnostic.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace rankc {

/// F forward, B whole backward, I gradient of inputs, W gradient of weights.
enum class action_kind : unsigned char { F, B, I, W };
inline constexpr char action_letters[] = "FBIW";

/// One action: `2F0` is the forward of microbatch 0 on stage 2.
struct action {
  action_kind kind;
  int stage, microbatch;
  constexpr bool operator==(const action&) const = default;
};

constexpr sentence& operator<<(sentence& s, const action& a) {
  return s << a.stage << std::string_view(&action_letters[static_cast<int>(a.kind)], 1) << a.microbatch;
}

/// The actions of all pipeline ranks, flat.
struct action_table {
  std::vector<action> actions;
  std::vector<int> begin;           // of each rank, and the end
  std::vector<int> rank_of_stage;   // placement of the stages
  int microbatches = 0;
  bool inference = false;           // forwards only
  constexpr int ranks() const { return static_cast<int>(begin.size()) - 1; }
  constexpr int stages() const { return static_cast<int>(rank_of_stage.size()); }
};

/// Collect what a schedule emits for `pp` ranks.
template <class Schedule>
constexpr action_table collect(const Schedule& schedule, int pp) {
  action_table t;
  t.microbatches = schedule.microbatches;
  const int stages = pp * schedule.stages_per_rank();
  for (int s = 0; s < stages; ++s) t.rank_of_stage.push_back(schedule.rank_of_stage(s, pp));
  for (int r = 0; r < pp; ++r) {
    t.begin.push_back(static_cast<int>(t.actions.size()));
    schedule.actions(pp, r, [&](action a) { t.actions.push_back(a); });
  }
  t.begin.push_back(static_cast<int>(t.actions.size()));
  return t;
}

namespace detail {
/// One bit per (stage, microbatch). (64-bit words: what a compiler evaluates fastest.)
class done_bits {
 public:
  constexpr done_bits(int stages, int microbatches)
      : words_((microbatches + 63) / 64), bits_(static_cast<std::size_t>(stages * words_), 0) {}
  constexpr bool get(int stage, int m) const { return bits_[at(stage, m)] >> (m & 63) & 1; }
  constexpr void set(int stage, int m) { bits_[at(stage, m)] |= std::uint64_t{1} << (m & 63); }

 private:
  constexpr std::size_t at(int stage, int m) const { return static_cast<std::size_t>(stage * words_ + (m >> 6)); }
  int words_;
  std::vector<std::uint64_t> bits_;
};
}  // namespace detail

/// Append what keeps the table from running: an action out of place or twice (RC302), one missing (RC303), a wait
/// that never ends (RC304).
constexpr void check_actions(report& out, const action_table& t) {
  const int stages = t.stages(), m = t.microbatches;
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
      const action a = t.actions[i];
      if (a.stage < 0 || a.stage >= stages || a.microbatch < 0 || a.microbatch >= m) {
        refuse(out, 302) << "rank " << r << " has " << a << ", but there are " << stages << " stages and " << m << " microbatches";
        return;
      }
      if (t.rank_of_stage[a.stage] != r) {
        refuse(out, 302) << "rank " << r << " has " << a << ", but stage " << a.stage << " is on rank " << t.rank_of_stage[a.stage];
        return;
      }
    }
  detail::done_bits f(stages, m), i(stages, m), w(stages, m);
  std::vector<int> at = t.begin;
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < t.ranks(); ++r)
      for (; at[r] < t.begin[r + 1]; ++at[r], moved = true) {
        const action a = t.actions[at[r]];
        const int s = a.stage, mb = a.microbatch;
        const bool forward = a.kind == action_kind::F, weights = a.kind == action_kind::W;
        detail::done_bits& done = forward ? f : weights ? w : i;
        if (done.get(s, mb) || (a.kind == action_kind::B && w.get(s, mb))) {
          refuse(out, 302) << "rank " << r << " runs " << a << " twice";
          return;
        }
        if (forward ? s > 0 && !f.get(s - 1, mb)
                    : weights ? !i.get(s, mb) : !f.get(s, mb) || (s + 1 < stages && !i.get(s + 1, mb)))
          break;
        done.set(s, mb);
        if (a.kind == action_kind::B) w.set(s, mb);
      }
  }
  for (int r = 0; r < t.ranks(); ++r)
    if (at[r] != t.begin[r + 1]) {
      refuse(out, 304) << "rank " << r << " waits for ever before " << t.actions[at[r]]
                       << ": what it needs is never done; order each rank's actions by their data";
      return;
    }
  for (int s = 0; s < stages; ++s)
    for (int mb = 0; mb < m; ++mb)
      if (!f.get(s, mb) || (!t.inference && !w.get(s, mb))) {
        refuse(out, 303) << "stage " << s << " never runs its " << (f.get(s, mb) ? "backward" : "forward") << " of microbatch " << mb;
        return;
      }
}

}  // namespace rankc
