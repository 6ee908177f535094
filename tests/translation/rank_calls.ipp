// SPDX-License-Identifier: Apache-2.0
// What rank.hpp declares alike for both targets, recorded. Included inside each target's namespace.

void begin(rank&, const char*) {}

void beside(rank& r, const char*, void (*work)(rank&)) {
  recorder::active().enter_beside();
  work(r);
  recorder::active().leave_beside();
}

void record(rank&, stream s, event e) { recorder::active().mark(s, e); }
void wait(rank&, stream s, event e) { recorder::active().wait(s, e); }

/// The role of a direction: the same word.
static role role_of(stream direction) {
  switch (direction) {
    case stream::to_next:
      return role::to_next;
    case stream::from_prev:
      return role::from_prev;
    case stream::to_prev:
      return role::to_prev;
    case stream::from_next:
      return role::from_next;
    default:
      throw std::logic_error("a stream that has no direction");
  }
}

void send(rank&, stream direction, message m, at data, std::size_t bytes) {
  call& c = recorder::active().add("send", direction);
  c.communicates = {recorder::active().meet(role_of(direction), m, bytes)};
  c.operands = {data.byte};
  c.reads = {{data.byte, bytes}};
}
void receive(rank&, stream direction, message m, at data, std::size_t bytes) {
  call& c = recorder::active().add("receive", direction);
  c.communicates = {recorder::active().meet(role_of(direction), m, bytes)};
  c.operands = {data.byte};
  c.writes = {{data.byte, bytes}};
}

template <class T>
void all_reduce(rank&, stream s, role over, message m, at data, std::size_t count, reduction by) {
  call& c = recorder::active().add(by == reduction::max ? "all_reduce_max" : "all_reduce", s);
  c.communicates = {recorder::active().meet(over, m, count * sizeof(T))};
  c.operands = {data.byte};
  c.reads = c.writes = {{data.byte, count * sizeof(T)}};
  c.has_padding = true;  // a bucket is a range of the gradients
}
template <class T>
void all_gather(rank&, stream s, role over, message m, at to, at from, std::size_t count) {
  call& c = recorder::active().add("all_gather", s);
  c.communicates = {recorder::active().meet(over, m, count * sizeof(T))};
  c.operands = {to.byte, from.byte};
  c.reads = {{from.byte, count * sizeof(T)}};
  c.writes = {{to.byte, c.communicates[0].members.size() * count * sizeof(T)}};
}
template <class T>
void reduce_scatter(rank&, stream s, role over, message m, at to, at from, std::size_t count) {
  call& c = recorder::active().add("reduce_scatter", s);
  c.communicates = {recorder::active().meet(over, m, count * sizeof(T))};
  c.operands = {to.byte, from.byte};
  c.reads = {{from.byte, c.communicates[0].members.size() * count * sizeof(T)}};
  c.writes = {{to.byte, count * sizeof(T)}};
}
