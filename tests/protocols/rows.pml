// SPDX-License-Identifier: Apache-2.0
// Models runtime/core/cuda/communication/by_rows.cpp as `run_by_rows` (runtime/calls.hpp) calls it: two
// row-wise all-gathers, two row-wise reduce-scatters (deals), and so on, among RANKS ranks, in the same
// buffers. Each rank has a compute lane and a copy lane. With COARSE a GEMM reads all parts after the last
// one has arrived. Data that a rank has written but not yet signalled is in flux for others: reading it is a
// fault.

#ifndef RANKS
#define RANKS 3
#endif
#ifndef ROUNDS
#define ROUNDS 5
#endif
#ifdef ONLY_DEALS
#define gathers(round) false
#else
#define gathers(round) ((round) % 4 < 2)
#endif
#define WORDS (2 * RANKS * RANKS)
#define there(at, by) (2 * ((at) * RANKS + (by)))  // is_there, which `at` takes and `by` writes
#define taken(at, by) (there(at, by) + 1)
#define owner(w) ((w) / 2 / RANKS)
#define after(r, d) (((r) + (d)) % RANKS)
#define cell(r, part) ((r) * RANKS + (part))
#define flux 255

#include "words.pml"

// The number that stands for data: the part that a rank computes in a round; in a deal, for another rank.
#define share(round, r) (1 + (round) * RANKS + (r))
#define part_of(round, r, to) (1 + ((round) * RANKS + (r)) * RANKS + (to))

byte source[RANKS];            // `from` of a gather
byte source_seen[RANKS];       // the same, as others see it
byte gathered[RANKS * RANKS];  // `to` of a gather, by rank and part
byte dealt[RANKS * RANKS];     // `from` of a deal, by rank and part
byte dealt_seen[RANKS * RANKS];
byte arrived[RANKS];                  // `to` of a deal, where the first arrival lies
byte computed[RANKS], copied[RANKS];  // events that the lanes have recorded

// Signal another rank, after a barrier. The rank has computed the source and `made` dealt parts before.
inline tell(w, r, made) {
#ifndef NO_BARRIER
  source_seen[r] = source[r];
  for (w_ : 1 .. RANKS) {
    if
    :: w_ <= made -> dealt_seen[cell(r, after(r, w_))] = dealt[cell(r, after(r, w_))]
    :: else
    fi
  }
#endif
  settle(r);
  write_one(w)
}

inline record(events, count) {
  count++;
  events = count
}
inline hold(events, count) {
  count++;
  events >= count
}

proctype compute(byte r) {
  byte round, s, records, waits;
  for (round : 0 .. ROUNDS - 1) {
    if
    :: gathers(round) ->
      d_step {
        source[r] = share(round, r);
        source_seen[r] = flux;
        record(computed[r], records)
      }
      assert(source[r] == share(round, r));
#ifdef COARSE
      waits = waits + RANKS - 1;
#else
      for (s : 1 .. RANKS - 1) {
#ifdef NO_HOLD
        waits++;
#else
        hold(copied[r], waits);
#endif
        assert(gathered[cell(r, after(r, s))] == share(round, after(r, s)))
      }
#endif
      hold(copied[r], waits);
      d_step {
        for (s : 0 .. RANKS - 1) { assert(gathered[cell(r, after(r, s))] == share(round, after(r, s))) }
      }
    :: else ->
      for (s : 1 .. RANKS) {
        d_step {
          dealt[cell(r, after(r, s))] = part_of(round, r, after(r, s));
          dealt_seen[cell(r, after(r, s))] = flux;
          if
          :: s < RANKS -> record(computed[r], records)
          :: else
          fi
        }
      }
      hold(copied[r], waits);
      d_step {
        assert(dealt[cell(r, r)] == part_of(round, r, r));
        assert(arrived[r] == part_of(round, after(r, RANKS - 1), r));
        for (s : 1 .. RANKS - 1) {
          if
          :: s == RANKS - 1
          :: else -> assert(dealt[cell(r, after(r, s))] == part_of(round, after(r, RANKS - s - 1), r))
          fi
        }
      }
    fi
  }
}

// One step signals all ranks: each has its own word.
inline tell_of_source(r) {
  d_step {
    for (s : 1 .. RANKS - 1) {
#ifdef ONE_TELL_LESS
      if
      :: r == 0 && s == RANKS - 1
      :: else -> tell(there(after(r, s), r), r, 0)
      fi
#else
      tell(there(after(r, s), r), r, 0)
#endif
    }
  }
}

inline gather(r) {
  hold(computed[r], waits);
  tell_of_source(r);
  for (s : 1 .. RANKS - 1) {
#ifndef NO_AWAIT
    take(there(r, after(r, s)));
#endif
#ifdef TAKEN_BEFORE_COPY
    d_step { tell(taken(after(r, s), r), r, 0) }
#endif
    d_step {
      gathered[cell(r, after(r, s))] = source_seen[after(r, s)];
#ifndef TAKEN_BEFORE_COPY
      tell(taken(after(r, s), r), r, 0);
#endif
      record(copied[r], records)
    }
  }
  gathered[cell(r, r)] = source[r];
#ifndef REUSED_EARLY
  for (s : 1 .. RANKS - 1) { take(taken(r, after(r, s))) }
#endif
  record(copied[r], records)
}

inline deal(r) {
  for (s : 0 .. RANKS - 2) {
#ifdef NO_HOLD_BACK
    waits++;
#else
    hold(computed[r], waits);
#endif
    d_step { tell(there(after(r, s + 1), r), r, s + 1) }
    giver = after(r, RANKS - s - 1);
    take(there(r, giver));
#ifndef OVERWRITTEN_EARLY
    if
    :: s > 0 -> take(taken(r, after(r, s)))
    :: else
    fi;
#endif
    d_step {
      if
      :: s == 0 -> arrived[r] = dealt_seen[cell(giver, r)]
      :: else ->
        dealt[cell(r, after(r, s))] = dealt_seen[cell(giver, r)];
        dealt_seen[cell(r, after(r, s))] = flux
      fi;
      tell(taken(giver, r), r, 0)
    }
  }
#ifdef OVERWRITTEN_EARLY
  for (s : 1 .. RANKS - 2) { take(taken(r, after(r, s))) }
#endif
  take(taken(r, after(r, RANKS - 1)));
  record(copied[r], records)
}

proctype copies(byte r) {
  byte round, s, records, waits, giver, w_;
  for (round : 0 .. ROUNDS - 1) {
    if
    :: gathers(round) -> gather(r)
    :: else -> deal(r)
    fi
  }
}

init {
  byte r;
  atomic {
    for (r : 0 .. RANKS - 1) {
      run compute(r);
      run copies(r)
    }
  }
}
