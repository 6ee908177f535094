// SPDX-License-Identifier: Apache-2.0
// The communication calls of generated code: they turn a role and arena offsets into an entry of the fabric.
#include "fabric.hpp"
#include "names.hpp"
#include "tracer.hpp"

#include <algorithm>
#include <type_traits>

namespace rankc::host {

namespace {

// Streams are ordered by the rank's own thread. The second one has none but what it computes on.
void refuse_beside(const rank& r, const char* what) {
  if (r.computes_on == stream::beside)
    throw failure(70, std::string("\"") + what + "\" is called by an action on stream beside; what can be there is "
                      "computation, and collectives on its stream::compute");
}

// The part of a communication that depends on who calls: communicator and place in it.
op begin_op(const rank& r, op_kind kind, stream s, role to, message what) {
  if (s != stream::compute) refuse_beside(r, what.name);
  if (r.computes_on == stream::beside && to == role::tp) to = role::tp_beside;
  const int communicator = r.row->communicator[static_cast<std::size_t>(to)];
  if (communicator < 0)
    throw failure(
        70, std::string("\"") + what.name + "\" is for role " + name(to) +
                ", for which this rank has no communicator; only roles of its row in the plan can be used");
  const std::span<const int> ranks = r.about->communicators[static_cast<std::size_t>(communicator)].ranks;
  op o;
  o.kind = kind;
  o.on = s;
  o.communicator = communicator;
  o.member = static_cast<int>(std::find(ranks.begin(), ranks.end(), r.index) - ranks.begin());
  o.what = what;
  if (r.trace != nullptr && s != stream::compute) o.times = r.trace->place(s, what.name);
  return o;
}

role role_of(stream direction, message what, stream next, stream prev, role to_next, role to_prev) {
  if (direction == next) return to_next;
  if (direction == prev) return to_prev;
  throw failure(70, std::string("\"") + what.name + "\" is posted on stream " + name(direction) +
                        "; it can go on " + name(next) + " or " + name(prev));
}

template <class T>
op collective(const rank& r, op_kind kind, stream s, role to, message what, at to_data, at from,
              std::size_t count) {
  op o = begin_op(r, kind, s, to, what);
  o.to = r.at<std::byte>(to_data);
  o.from = r.at<std::byte>(from);
  o.count = count;
  o.element = sizeof(T);
  o.type = std::is_same_v<T, double> ? dtype::f64 : dtype::f32;
  return o;
}

}  // namespace

void begin(rank& r, const char* action) {
  r.action = action;
  if (r.trace != nullptr) r.trace->begin(action);
}

void beside(rank& r, const char* action, void (*work)(rank&)) {
  refuse_beside(r, action);
  op o;
  o.kind = op_kind::work;
  o.on = stream::beside;
  o.work = work;
  o.action = action;
  if (r.trace != nullptr) o.times = r.trace->place(stream::beside, action);
  r.wires->post_beside(r, o);
}

void record(rank& r, stream s, event e) {
  refuse_beside(r, "record");
  r.wires->record(r, s, e);
}

void wait(rank& r, stream s, event e) {
  refuse_beside(r, "wait");
  if (r.trace != nullptr && s == stream::compute) r.trace->wait([&] { r.wires->wait(r, s, e); });
  else r.wires->wait(r, s, e);
}

void send(rank& r, stream direction, message what, at data, std::size_t bytes) {
  const role to = role_of(direction, what, stream::to_next, stream::to_prev, role::to_next, role::to_prev);
  op o = begin_op(r, op_kind::send, direction, to, what);
  o.from = r.at<std::byte>(data);
  o.count = bytes;
  r.wires->post(r, o);
}

void receive(rank& r, stream direction, message what, at data, std::size_t bytes) {
  const role from =
      role_of(direction, what, stream::from_next, stream::from_prev, role::from_next, role::from_prev);
  op o = begin_op(r, op_kind::receive, direction, from, what);
  o.to = r.at<std::byte>(data);
  o.count = bytes;
  r.wires->post(r, o);
}

template <class T>
void all_reduce(rank& r, stream s, role to, message what, at data, std::size_t count, reduction how) {
  op o = collective<T>(r, op_kind::all_reduce, s, to, what, data, data, count);
  o.reduce = how;
  r.wires->post(r, o);
}

template <class T>
void all_gather(rank& r, stream s, role to, message what, at to_data, at from, std::size_t count) {
  r.wires->post(r, collective<T>(r, op_kind::all_gather, s, to, what, to_data, from, count));
}

template <class T>
void reduce_scatter(rank& r, stream s, role to, message what, at to_data, at from, std::size_t count) {
  r.wires->post(r, collective<T>(r, op_kind::reduce_scatter, s, to, what, to_data, from, count));
}

template decltype(all_reduce<float>) all_reduce<float>;
template decltype(all_reduce<double>) all_reduce<double>;
template decltype(all_gather<float>) all_gather<float>;
template decltype(all_gather<double>) all_gather<double>;
template decltype(reduce_scatter<float>) reduce_scatter<float>;
template decltype(reduce_scatter<double>) reduce_scatter<double>;

}  // namespace rankc::host
