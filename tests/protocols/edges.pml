// SPDX-License-Identifier: Apache-2.0
// Models runtime/core/cuda/communication/peer_edges.cpp and progress/marks.cpp: a pipeline of RANKS ranks, an
// edge in each direction between neighbours, MESSAGES microbatches per step, STEPS steps, one buffer per
// edge. The last rank runs a backward after each forward; the others run all forwards first. A rank has a
// compute lane and a lane for each end of an edge. Lanes mark the begin and the end of each message, and the
// host reads the marks at any time. With DIES the last rank stops anywhere, and the host releases all lanes.

#ifndef RANKS
#define RANKS 2
#endif
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef STEPS
#define STEPS 2
#endif
#define EDGES (2 * (RANKS - 1))
#define WORDS (2 * EDGES)
#define forward(r) (2 * (r))  // from r to r + 1
#define backward(r) (2 * (r) + 1)
#define sender(e) ((e) / 2 + (e) % 2)
#define receiver(e) ((e) / 2 + 1 - (e) % 2)
#define is_free(e) (2 * (e))
#define is_there(e) (2 * (e) + 1)
#define owner(w) ((w) % 2 == 0 -> sender((w) / 2) : receiver((w) / 2))
#define flux 255
#define mortal(r) ((r) == RANKS - 1)
#define let_go stop

bit stop, dead;

#include "words.pml"

byte sent_from[EDGES];  // the sender's buffer: the number of the message
byte place[EDGES];      // the receiver's buffer, as its rank sees it
// Events, each recorded once per message.
byte made[EDGES], sent[EDGES], received[EDGES], used[EDGES];
byte told[EDGES];  // messages that have arrived
// 2 n - 1: message n has begun; 2 n: it has ended.
byte mark_of_send[EDGES], mark_of_receive[EDGES];

// Wait for an event. A dead rank ends.
#define hold(r, event)              \
  (event) || (dead && mortal(r));   \
  if                                \
  :: dead && mortal(r) -> goto over \
  :: else                           \
  fi

inline may_die(r) {
#ifdef DIES
  if
  :: mortal(r) -> dead = 1; goto over
  :: true
  fi
#else
  skip
#endif
}

proctype send_lane(byte e) {
  byte n, w_;
  for (n : 1 .. STEPS * MESSAGES) {
    hold(sender(e), made[e] >= n);
    mark_of_send[e] = 2 * n - 1;
#ifndef NO_FREE
    take(is_free(e));
#endif
#ifdef THERE_BEFORE_COPY
    d_step {
      settle(sender(e));
      write_one(is_there(e));
      told[e]++
    }
#endif
    d_step {
      place[e] = flux;
      assert(stop || sent_from[e] == n)
    }
#ifndef THERE_BEFORE_COPY
    d_step {
#ifndef NO_BARRIER
      place[e] = sent_from[e];
      settle(sender(e));
#endif
      write_one(is_there(e));
      told[e]++
    }
#else
    place[e] = sent_from[e];
#endif
    mark_of_send[e] = 2 * n;
    sent[e] = n
  }
over:
  skip
}

proctype receive_lane(byte e) {
  byte n, w_;
  for (n : 1 .. STEPS * MESSAGES) {
#ifndef OVERWRITTEN_EARLY
    hold(receiver(e), used[e] >= n - 1);
#endif
    may_die(receiver(e));
    mark_of_receive[e] = 2 * n - 1;
    d_step {
      settle(receiver(e));
      write_one(is_free(e))
    }
#ifdef MARKED_EARLY
    mark_of_receive[e] = 2 * n;
#endif
    take(is_there(e));
    mark_of_receive[e] = 2 * n;
    received[e] = n
  }
over:
  skip
}

inline use(r, e, n) {
  hold(r, received[e] >= n);
  d_step {
    assert(stop || place[e] == n);
    used[e] = n
  }
}
inline make(r, e, n) {
#ifndef REUSED_EARLY
  hold(r, sent[e] >= n - 1);
#endif
  d_step {
    sent_from[e] = n;
    made[e] = n
  }
}

proctype compute(byte r) {
  byte action, n, m, done_forward, done_backward;
  for (action : 0 .. 2 * STEPS * MESSAGES - 1) {
    m = action % (2 * MESSAGES);
    if
    :: (mortal(r) && m % 2 == 0) || (!mortal(r) && m < MESSAGES) ->
      done_forward++;
      if
      :: r > 0 -> use(r, forward(r - 1), done_forward)
      :: else
      fi;
      if
      :: !mortal(r) -> make(r, forward(r), done_forward)
      :: else
      fi
    :: else ->
      done_backward++;
      if
      :: !mortal(r) -> use(r, backward(r), done_backward)
      :: else
      fi;
      if
      :: r > 0 -> make(r, backward(r - 1), done_backward)
      :: else
      fi
    fi
  }
over:
  skip
}

// The marks are correct at any time.
proctype look() {
  byte e;
end:
  d_step {
    for (e : 0 .. EDGES - 1) {
      assert(stop || mark_of_send[e] / 2 <= told[e]);
      assert(stop || mark_of_receive[e] / 2 <= told[e]);
      assert((mark_of_send[e] + 1) / 2 >= sent[e] && (mark_of_receive[e] + 1) / 2 >= received[e])
    }
  }
}

#ifdef DIES
// stream_words::let_go for two ranks: sets every word to 1, repeatedly.
#define taken(w) (word[w] == 0 || in_flight[w])
proctype host() {
  byte w;
end:
  dead;
  stop = 1;
end_of_words:
  do
  :: taken(0) || taken(1) || taken(2) || taken(3) ->
    d_step {
      for (w : 0 .. WORDS - 1) {
        in_flight[w] = 0;
        word[w] = 1
      }
    }
#ifdef LET_GO_ONCE
    break
#endif
  od
}
#endif

init {
  byte i;
  atomic {
    for (i : 0 .. EDGES - 1) {
      run send_lane(i);
      run receive_lane(i)
    }
    for (i : 0 .. RANKS - 1) { run compute(i) }
    run look();
#ifdef DIES
    run host()
#endif
  }
}
