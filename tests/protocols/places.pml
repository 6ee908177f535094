// SPDX-License-Identifier: Apache-2.0
// Models runtime/core/cuda/attention/hopper_block.cuh with hopper_queries_gradient.cuh, hopper_forward.cuh
// (FORWARD) or hopper_keys_gradient.cuh (KEYS). A block processes ITEMS items; an item has a tile for each of
// two warpgroups, which are one warp each here. One warp fills the buffers of items (places), and stages with
// the tiles that an item is multiplied with. For the gradient of queries, a warp for each group writes the
// statistics of an item. One group needs one tile less and skips its stage: the last one of an item, the
// first one (FORWARD), or the first one of each of two heads, while it still reads a stage of the previous
// head (KEYS). With masks (KEYS and MASKED) either group skips stages of each head, reads no stage of the
// previous head meanwhile, and keeps its item to the end. Places in a ring are identified by the number of
// their fill.

#ifndef STAGES
#define STAGES 2
#endif
#ifndef ITEMS
#define ITEMS 3
#endif
#define GROUPS 2
#ifndef PLACES
#define PLACES 2
#endif
#ifdef MASKED
#define passes(n, g) ((g) == 1 && (n) % 3 != 0 || (g) == 0 && (n) % 3 == 0)
#else
#define passes(n, g) ((g) == 1 && (n) % 3 == 1)
#endif
#ifdef KEYS
#define met(x) 6                   // number of tiles for an item
#define before(x) (((x) - 1) * 6)  // number of stage fills before an item
#define of_item(n) (((n) - 1) / 6 + 1)
#else
#define met(x) ((x) == 1 -> 2 : 3)
#define before(x) ((x) == 1 -> 0 : ((x) - 1) * 3 - 1)
#define of_item(n) ((n) < 3 -> 1 : ((n) - 3) / 3 + 2)
#endif
#define FILLS (before(ITEMS + 1))
#define flux 255

#define BARRIERS (2 * (STAGES + PLACES))
#ifdef ONE_STAGE_LESS
#define IN_USE (STAGES - 1)
#else
#define IN_USE STAGES
#endif
#define stage(n) (((n) - 1) % IN_USE)
#define place(x) (((x) - 1) % PLACES)
#define full(n) (2 * stage(n))
#define empty(n) (full(n) + 1)
#define item_full(x) (2 * (STAGES + place(x)))
#define item_empty(x) (item_full(x) + 1)
#define parity(n) (((n) - 1) / IN_USE % 2)
#define item_parity(x) (((x) - 1) / PLACES % 2)
#if defined(FORWARD) || defined(KEYS)
#define fillers 1
#else
#define HAS_STATISTICS
#ifdef TOO_FEW_FILLERS
#define fillers 2
#else
#define fillers (1 + GROUPS)
#endif
#endif
#include "barriers.pml"

byte held[STAGES], on_its_way[STAGES];
byte item[PLACES], item_on_its_way[PLACES];
byte statistics[PLACES * GROUPS];

proctype fill() {
  byte n = 1, x = 1;
  do
  :: n > FILLS -> break
  :: n <= FILLS && of_item(n) == x && has_ended(item_empty(x), 1 - item_parity(x)) ->
    d_step {
      arrive_expecting(item_full(x), fillers, 1);
      assert(item_on_its_way[place(x)] == 0);
      item[place(x)] = flux;
      item_on_its_way[place(x)] = x;
      x++
    }
  :: n <= FILLS && of_item(n) < x && has_ended(empty(n), 1 - parity(n)) ->
    d_step {
      arrive_expecting(full(n), 1, 1);
      assert(on_its_way[stage(n)] == 0);
      held[stage(n)] = flux;
      on_its_way[stage(n)] = n;
      n++
    }
  od
}

proctype engine(byte s) {
end:
  do
  :: on_its_way[s] != 0 ->
    d_step {
      held[s] = on_its_way[s];
      on_its_way[s] = 0;
      land(2 * s, 1)
    }
  od
}
proctype engine_of_items(byte p) {
end:
  do
  :: item_on_its_way[p] != 0 ->
    d_step {
      item[p] = item_on_its_way[p];
      item_on_its_way[p] = 0;
      land(2 * (STAGES + p), fillers)
    }
  od
}

#ifdef HAS_STATISTICS
proctype write_statistics(byte g) {
  byte x;
  for (x : 1 .. ITEMS) {
#ifndef NO_EMPTY_WAIT
    has_ended(item_empty(x), 1 - item_parity(x));
#endif
    statistics[place(x) * GROUPS + g] = x;
    d_step { arrive(item_full(x), fillers) }
  }
}
#define has_item(x, g) (item[place(x)] == (x) && statistics[place(x) * GROUPS + (g)] == (x))
#else
#define has_item(x, g) (item[place(x)] == (x))
#endif

inline release(n) { arrive(empty(n), GROUPS) }

// A warp that does not need a stage releases it unread.
inline pass(n) {
#ifdef NO_PASS
  skip
#else
  atomic {
    has_ended(full(n), parity(n));
    d_step { release(n) }
  }
#endif
}

#ifdef KEYS
// Keys and values are loaded into registers, which frees their place. For heads of 128 (MASKED) they stay.
proctype multiply(byte g) {
  byte x, n, reads;
  for (x : 1 .. ITEMS) {
    has_ended(item_full(x), item_parity(x));
    d_step {
      assert(has_item(x, g));
#if !defined(MASKED) || defined(ITEM_RELEASED_EARLY)
      arrive(item_empty(x), GROUPS)
#endif
    }
    n = before(x) + 1;
    do
    :: n > before(x) + met(x) -> break
    :: n <= before(x) + met(x) && passes(n, g) ->
#if defined(MASKED) && !defined(HELD_PAST_HEAD)
      d_step {
        if
        :: reads != 0 -> assert(held[stage(reads)] == reads); release(reads); reads = 0
        :: else
        fi
      }
#endif
      pass(n);
      n++
    :: n <= before(x) + met(x) && !passes(n, g) && has_ended(full(n), parity(n)) ->
      d_step {
        assert(held[stage(n)] == n);
        if
        :: reads != 0 -> assert(held[stage(reads)] == reads); release(reads)
        :: else
        fi;
        reads = n;
        n++
      }
    od;
    atomic {
      if
      :: reads != 0 -> assert(held[stage(reads)] == reads); release(reads); reads = 0
      :: else
      fi
    }
#ifdef MASKED
    assert(has_item(x, g));
#ifndef ITEM_RELEASED_EARLY
    d_step { arrive(item_empty(x), GROUPS) }
#endif
#endif
  }
}
#else
proctype multiply(byte g) {
  byte x, n, reads;
  for (x : 1 .. ITEMS) {
    has_ended(item_full(x), item_parity(x));
    assert(has_item(x, g));
#ifdef ITEM_RELEASED_EARLY
    d_step { arrive(item_empty(x), GROUPS) }
#endif
#ifdef FORWARD
    if
    :: g == 0 -> pass(before(x) + 1)
    :: else
    fi;
    n = before(x) + 2 - g;
#else
    n = before(x) + 1;
#endif
    do
    :: n > before(x) + met(x) -> break
#ifndef FORWARD
    :: g == 0 && n == before(x) + met(x) -> break
    :: n <= before(x) + met(x) - 1 + g && has_ended(full(n), parity(n)) ->
#else
    :: n <= before(x) + met(x) && has_ended(full(n), parity(n)) ->
#endif
      d_step {
        assert(held[stage(n)] == n);
        if
        :: reads != 0 ->
          assert(held[stage(reads)] == reads);
#ifndef RELEASE_EARLY
          release(reads)
#endif
        :: else
        fi;
#ifdef RELEASE_EARLY
        release(n);
#endif
        reads = n;
        n++
      }
    od;
    atomic {
      assert(held[stage(reads)] == reads);
#ifndef RELEASE_EARLY
      release(reads);
#endif
      reads = 0
    }
#ifndef FORWARD
    if
    :: g == 0 -> pass(before(x) + met(x))
    :: else
    fi;
#endif
    assert(has_item(x, g));
#ifndef ITEM_RELEASED_EARLY
    d_step { arrive(item_empty(x), GROUPS) }
#endif
  }
}
#endif

init {
  byte i;
  atomic {
    for (i : 1 .. STAGES) {
      make_barrier(full(i), 1);
      make_barrier(empty(i), GROUPS);
      run engine(i - 1)
    }
    for (i : 1 .. PLACES) {
      make_barrier(item_full(i), fillers);
      make_barrier(item_empty(i), GROUPS);
      run engine_of_items(i - 1)
    }
    run fill();
    for (i : 0 .. GROUPS - 1) {
#ifdef HAS_STATISTICS
      run write_statistics(i);
#endif
      run multiply(i)
    }
  }
}
