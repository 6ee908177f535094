// SPDX-License-Identifier: Apache-2.0
// The order of microbatches in interleaved schedules: in rounds, each of which passes through all stages of a
// rank.
#pragma once

namespace rankc {

/// The microbatches of a step in rounds of at least pp, or in one round if there are fewer. The rounds are
/// equal if their count divides the microbatches, as the published schedules require. Otherwise the first
/// rounds have one more.
struct rounds {
  int microbatches, count;
  constexpr rounds(int microbatches, int pp)
      : microbatches(microbatches), count(microbatches > pp ? microbatches / pp : 1) {}
  constexpr int size(int round) const { return microbatches / count + (round < microbatches % count); }
};

/// Walks over the microbatches and the stages of a rank: all microbatches of a round on one stage, then on
/// the next stage.
struct round_walk {
  rounds in;
  int stages_per_rank;
  int nth_stage = 0, microbatch = 0;
  int round = 0, first = 0, end = in.size(0);  // the round's microbatches are [first, end)
  constexpr void advance() {
    if (++microbatch < end) return;
    if (++nth_stage < stages_per_rank) {
      microbatch = first;
    } else {
      nth_stage = 0;
      first = end;
      end += in.size(++round);
    }
  }
};

}  // namespace rankc
