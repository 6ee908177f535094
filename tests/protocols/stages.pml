// SPDX-License-Identifier: Apache-2.0
// Models runtime/core/cuda/device/hopper_stages.cuh and experts/grouped_hopper.cu: a cluster of two blocks
// processes tiles through a ring of STAGES stages. In each block, one warp fills stages, and multicasts half
// of one factor to both blocks; one warp clears the rows past the end within a stage; two warpgroups, one
// warp each here, multiply tiles in turns. Tiles 0 and 1 have two stages, the later ones have one; the last
// stages of both are cleared, and block 1 has no columns in tile 2. A stage is in flux while a copy to it is
// in progress. Places in the ring are identified by the number of their fill.

#ifndef STAGES
#define STAGES 2
#endif
#ifndef FILLS
#define FILLS 5
#endif
#define tile(n) ((n) < 5 -> ((n) - 1) / 2 : (n) - 3)
#define is_first(n) ((n) > 4 || (n) % 2 == 1)
#define is_last(n) ((n) > 4 || (n) % 2 == 0)
#define is_rest(n) ((n) == 2 || (n) == 4)
#define passes(b, n) ((b) == 1 && (n) == 5)
#define stage(n) (((n) - 1) % STAGES)
#define parity(n) (((n) - 1) / STAGES % 2)
#define flux 255

#define BARRIERS (2 * (3 * STAGES + 2))
#define of_block(b) ((b) * (3 * STAGES + 2))
#define full(b, n) (of_block(b) + 3 * stage(n))
#define empty(b, n) (full(b, n) + 1)
#define landed(b, n) (full(b, n) + 2)
#define turn(b, g) (of_block(b) + 3 * STAGES + (g))
#define readers 2  // readers of a stage: a warp of each block
#include "barriers.pml"

// Each block's copy to each stage of a block: half of a, and the block's own b.
#define BOXES (2 * STAGES * 2)
#define box(b, n, from) (((b) * STAGES + stage(n)) * 2 + (from))
#define holds(b, n) (held[box(b, n, 0)] == (n) && held[box(b, n, 1)] == (n))
byte held[BOXES];        // the fill that has landed
byte on_its_way[BOXES];  // the fill that is being copied; 0: none
byte cleared[2];         // the last cleared fill that the tensor cores see
bit made[2];
byte gone[2];            // warps that have ended

#ifdef NO_LAST_MEETING
#define is_alive(b) (gone[b] < 4)
#else
#define is_alive(b) (gone[0] + gone[1] < 8)
#endif
#ifdef NO_FIRST_MEETING
#define can_begin(b) (made[b])
#else
#define can_begin(b) (made[0] && made[1])
#endif

inline copy(to, from, n) {
  assert(on_its_way[box(to, n, from)] == 0);
  held[box(to, n, from)] = flux;
  on_its_way[box(to, n, from)] = n
}

proctype fill(bit b) {
  byte n = 1;
  can_begin(b);
  do
  :: n > FILLS -> break
#ifdef NO_EMPTY_WAIT
  :: n <= FILLS ->
#else
  :: n <= FILLS && has_ended(empty(b, n), 1 - parity(n)) ->
#endif
    d_step {
      if
      :: is_rest(n) -> arrive_expecting(landed(b, n), 1, 2)
      :: else -> arrive_expecting(full(b, n), 1, 2)
      fi;
      copy(b, b, n);
      copy(1 - b, b, n);
      n++
    }
  od;
  gone[b]++
}

// The copy engine lands boxes in any order. Each box has its own process.
proctype engine(byte i) {
  byte b, n;
end:
  do
  :: on_its_way[i] != 0 ->
    d_step {
      b = i / (2 * STAGES);
      n = on_its_way[i];
      assert(made[b] && is_alive(b));
      held[i] = n;
      on_its_way[i] = 0;
      if
      :: is_rest(n) -> land(landed(b, n), 1)
      :: else -> land(full(b, n), 1)
      fi;
      b = 0;
      n = 0
    }
  od
}

#ifdef LANDED_ONCE
#define landing(n) 0
#else
#define landing(n) ((n) / 2 - 1)  // with two stages, landings of the same stage
#endif
proctype clear(bit b) {
  byte n = 2;
  can_begin(b);
  do
  :: n > 4 -> break
#ifdef NO_LANDED_WAIT
  :: n <= 4 ->
#else
  :: n <= 4 && has_ended(landed(b, n), landing(n)) ->
#endif
    d_step {
      assert(holds(b, n));
#ifndef NO_PROXY_FENCE
      cleared[b] = n;
#endif
      arrive(full(b, n), 1);
      n = n + 2
    }
  od;
  gone[b]++
}

inline release(n) {
  assert(made[0] && made[1] && is_alive(0) && is_alive(1));
  arrive(empty(0, n), readers);
  arrive(empty(1, n), readers)
}
inline pass_turn() { arrive(turn(b, 1 - g), 1) }

#define after(n) ((n) == 2 -> 5 : ((n) >= 4 -> (n) + 2 : (n) + 1))  // the warpgroup's next fill
#ifdef NO_TURN
#define has_turn true
#else
#define has_turn (!is_first(n) || has_ended(turn(b, g), (1 - g + tile(n) / 2) % 2))
#endif

// A GEMM reads a stage until the next one is issued, and the last stage of a tile until the tile ends.
proctype multiply(bit b; bit g) {
  byte n, reads;
  n = 1 + 2 * g;
  can_begin(b);
  do
  :: n > FILLS && reads == 0 -> break
  :: reads != 0 && is_last(reads) ->
    d_step {
      assert(holds(b, reads));
#ifndef RELEASE_EARLY
      release(reads);
#endif
      reads = 0
    }
  :: n <= FILLS && !(reads != 0 && is_last(reads)) && has_turn && has_ended(full(b, n), parity(n)) ->
    d_step {
      assert(holds(b, n));
      assert(!is_rest(n) || cleared[b] == n);
      if
      :: is_last(n) -> pass_turn()
      :: else
      fi;
#ifdef RELEASE_EARLY
      release(n);
      reads = n;
#else
      if
      :: reads != 0 -> assert(holds(b, reads)); release(reads)
      :: else
      fi;
      if
      :: passes(b, n) -> release(n); reads = 0
      :: else -> reads = n
      fi;
#endif
      n = after(n)
    }
  od;
  gone[b]++
}

proctype make(bit b) {
  byte n;
  d_step {
    for (n : 1 .. STAGES) {
      make_barrier(full(b, n), 1);
      make_barrier(empty(b, n), readers);
      make_barrier(landed(b, n), 1)
    }
    make_barrier(turn(b, 0), 1);
    make_barrier(turn(b, 1), 1);
    made[b] = 1
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. BOXES - 1) { run engine(i) }
    for (i : 0 .. 1) {
      run make(i);
      run fill(i);
      run clear(i);
      run multiply(i, 0);
      run multiply(i, 1)
    }
  }
}
