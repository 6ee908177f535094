// SPDX-License-Identifier: Apache-2.0
// A schedule that is written out in the plan.
#pragma once
#include <rankc/schedule/csv.hpp>

namespace rankc::schedules {

/// The schedule that a string literal lists, with one line for each rank. It passes the same checks as every
/// other schedule:
///   schedules::from_csv<"0F0, 0F1, 0B0, 0B1\n"
///                       "1F0, 1B0, 1F1, 1B1">{}
/// The text determines the placement of the stages and all counts.
/// Errors: RC313.
template <literal Text>
struct from_csv {
  static constexpr std::string_view name = "from_csv";
  static constexpr bool as_written = true;
  static constexpr std::string_view text{Text.text, sizeof Text.text - 1};
  static constexpr int microbatches = [] {
    report said;
    const int m = parse_csv(said, text).microbatches;
    return m ? m : 1;  // check() refuses a text that cannot be read, once
  }();
  /// The most stages on any rank, counted in both directions.
  static constexpr int stages_per_rank = [] {
    report said;
    const action_table t = parse_csv(said, text);
    int most = 1;
    for (int r = 0; r < t.ranks(); ++r) {
      int on_rank = 0;
      for (int s = 0; s < t.stages(); ++s)
        on_rank += (t.rank_of_stage[s] == r) + (t.bidirectional() && t.reversed_rank_of_stage[s] == r);
      most = most < on_rank ? on_rank : most;
    }
    return most;
  }();

  constexpr action_table table(int) const {
    report said;
    return parse_csv(said, text);
  }
  constexpr int stages(int pp) const { return table(pp).stages(); }
  constexpr int rank_of_stage(int stage, int pp) const { return table(pp).rank_of_stage[stage]; }

  constexpr void check(report& out, int pp) const {
    const std::size_t before = out.size();
    const int ranks = parse_csv(out, text).ranks();
    if (out.size() == before && ranks != pp)
      refuse(out, 313) << "pp=" << pp << ", but the text has " << ranks << (ranks == 1 ? " line" : " lines")
                       << "; there is a line for each rank: take pp=" << ranks;
  }
};

}  // namespace rankc::schedules
