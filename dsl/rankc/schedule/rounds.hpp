// SPDX-License-Identifier: Apache-2.0
// The order in which interleaved schedules take the microbatches: in rounds, each through all stages of a
// rank.
#pragma once

namespace rankc {

/// A step's microbatches in rounds of pp or some more (all in one round if there are fewer). Rounds are equal
/// where their count divides the microbatches, as the published schedules ask for; else the first ones have
/// one more.
struct rounds {
  int microbatches, count;
  constexpr rounds(int microbatches, int pp)
      : microbatches(microbatches), count(microbatches > pp ? microbatches / pp : 1) {}
  constexpr int size(int round) const { return microbatches / count + (round < microbatches % count); }
};

/// Walks over the microbatches and the stages of a rank: a round's microbatches on one stage, then on the
/// next one.
struct round_walk {
  rounds in;
  int stages_per_rank;
  int nth_stage = 0, microbatch = 0;
  int round = 0, first = 0, end = in.size(0);  // the microbatches of the round
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
