// SPDX-License-Identifier: Apache-2.0
// Models runtime/core/cuda/device/stream_words.cpp: words in pinned memory that lanes write and wait for. A
// write follows a barrier: others see all earlier writes of the lane. The zero that take_word writes is in
// flight until the next barrier of the rank. Until then, no other rank may write that word.

bit word[WORDS];
bit in_flight[WORDS];  // whether a zero is in flight

// Land the rank's zeros. `owner(w)` is the rank that takes word w.
inline settle(rank) {
  for (w_ : 0 .. WORDS - 1) {
    if
    :: in_flight[w_] && owner(w_) == rank -> word[w_] = 0; in_flight[w_] = 0
    :: else
    fi
  }
  w_ = 0
}

#ifndef let_go
#define let_go false
#endif
inline write_one(w) {
  assert(let_go || !in_flight[w]);
  word[w] = 1
}

inline take(w) {
  atomic {
    word[w] == 1 && !in_flight[w];
#ifndef NO_ZERO
    in_flight[w] = 1
#endif
  }
}
