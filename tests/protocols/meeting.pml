// SPDX-License-Identifier: Apache-2.0
// Models runtime/core/cuda/communication/peer_meeting.cu and peer_words.cuh, and peer_sums.cu, whose kernels
// read and write the arenas of all ranks between two meetings (barriers across ranks). Each rank has a lane
// with consecutive kernels, and the kernel of a meeting has a thread for each member. A rank's writes are in
// flux for others until it releases a word. With DIES the last rank stops anywhere, and the host sets `stop`.
// With LOCKSTEP a warp stores all its words at once and then waits for them in turn, instead of thread by
// thread.

#ifndef RANKS
#define RANKS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define cell(r, part) ((r) * RANKS + (part))
#define fresh(round) (1 + 2 * (round))
#define summed(round) (2 + 2 * (round))
#define nobody 255
#ifdef LOCKSTEP
#define THREADS 1
#else
#define THREADS RANKS
#endif
#define mortal(r) ((r) == RANKS - 1)

byte data[RANKS * RANKS];     // by arena: the part that each rank reduces
byte writer[RANKS * RANKS];   // the rank that has written the part and not yet released it
byte arrived[RANKS * RANKS];  // the words of each rank, by member
byte met[RANKS];
byte launched[RANKS];             // number of meeting kernels
byte begun[RANKS], ended[RANKS];  // number of their threads
bit failed[RANKS];
bit stop, dead;

inline release(r) {
  for (c : 0 .. RANKS * RANKS - 1) {
    if
    :: writer[c] == r -> writer[c] = nobody
    :: else
    fi
  }
  c = 0
}

inline write(r, c, value) {
  assert(stop || writer[c] == nobody || writer[c] == r);
  data[c] = value;
  writer[c] = r
}
#define check(r, c, value) assert(stop || (data[c] == (value) && (writer[c] == nobody || writer[c] == (r))))

#ifdef NO_STOP
#define gives_up false
#else
#define gives_up stop
#endif

inline await(r, member, meeting) {
#ifdef FLAG_WITHOUT_COUNT
  arrived[cell(r, member)] >= 1 || gives_up;
#else
  arrived[cell(r, member)] >= meeting || gives_up;
#endif
  failed[r] = failed[r] || (stop && arrived[cell(r, member)] < meeting)
}

#ifndef LOCKSTEP
proctype thread(byte r; byte member) {
  byte meeting, kernel, c;
  for (kernel : 1 .. 2 * ROUNDS) {
end:
    launched[r] >= kernel;
#ifdef DIES
    if
    :: mortal(r) -> dead = 1; goto over
    :: true
    fi;
#endif
    d_step {
      meeting = met[r] + 1;
      begun[r]++
    }
#ifndef NO_WARP_BARRIER
    begun[r] >= kernel * THREADS || (dead && mortal(r));
#endif
    if
    :: member == r -> met[r] = meeting
    :: else ->
      d_step {
#ifndef RELAXED_STORE
        release(r);
#endif
        arrived[cell(member, r)] = meeting
      }
      await(r, member, meeting)
    fi;
    ended[r]++
  }
over:
  skip
}
#else
proctype warp(byte r) {
  byte kernel, member, c;
  for (kernel : 1 .. 2 * ROUNDS) {
end:
    launched[r] >= kernel;
#ifdef DIES
    if
    :: mortal(r) -> dead = 1; goto over
    :: true
    fi;
#endif
    d_step {
      met[r]++;
      release(r);
      for (member : 0 .. RANKS - 1) { arrived[cell(member, r)] = met[r] }
    }
    for (member : 0 .. RANKS - 1) { await(r, member, met[r]) }
    ended[r]++
  }
over:
  skip
}
#endif

inline meet(r) {
  kernel++;
  launched[r] = kernel;
  ended[r] >= kernel * THREADS || (dead && mortal(r));
  if
  :: dead && mortal(r) -> goto over
  :: else
  fi
}

proctype lane(byte r) {
  byte round, c, kernel;
  for (round : 1 .. ROUNDS) {
    d_step {
      for (c : 0 .. RANKS - 1) { write(r, cell(r, c), fresh(round)) }
    }
#ifndef NO_FIRST_MEETING
    meet(r);
#endif
    if
    :: failed[r]
    :: else ->
      d_step {
        for (c : 0 .. RANKS - 1) { check(r, cell(c, r), fresh(round)) }
      }
      d_step {
        for (c : 0 .. RANKS - 1) { write(r, cell(c, r), summed(round)) }
      }
    fi;
#ifndef NO_SECOND_MEETING
    meet(r);
#endif
    if
    :: failed[r]
    :: else ->
      d_step {
        for (c : 0 .. RANKS - 1) { check(r, cell(r, c), summed(round)) }
      }
    fi
  }
over:
  skip
}

#ifdef DIES
proctype host() {
end:
  dead;
  stop = 1
}
#endif

init {
  byte r, member;
  atomic {
    for (r : 0 .. RANKS - 1) {
      for (member : 0 .. RANKS - 1) {
        writer[cell(r, member)] = nobody;
#ifndef LOCKSTEP
        run thread(r, member)
#endif
      }
#ifdef LOCKSTEP
      run warp(r);
#endif
      run lane(r)
    }
#ifdef DIES
    run host()
#endif
  }
}
