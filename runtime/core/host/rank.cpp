// SPDX-License-Identifier: Apache-2.0
// The communication calls of generated code. They turn a lane and arena offsets into an entry of the fabric.
#include "fabric.hpp"
#include "names.hpp"
#include "tracer.hpp"

#include <rankc/runtime/call_recorder.hpp>

#include <algorithm>
#include <type_traits>

namespace rankc::runtime::host {

namespace {

const lane_row& row_of(const lane& on) { return on.of->where->lanes[static_cast<std::size_t>(on.index)]; }

// Only the thread of lane 0 orders lanes. Another thread uses only its own lane, for collectives.
void refuse_in_action(const lane& on, const char* what) {
  if (on.of->computes_on != 0)
    throw failure(70,
                  "RC5057: \"{}\" is called by an action on lane {}; an action may compute, and call "
                  "collectives of its own lane only",
                  what, (*on.of)[on.of->computes_on].name());
}

// The part of a communication that depends on the caller: communicator and place in it.
op begin_op(const lane& on, op_kind kind, over what_over, message what) {
  const rank& r = on;
  const auto links = r.row->links;
  const auto found = std::find_if(links.begin(), links.end(), [&](const lane_communicator& k) {
    return k.lane == on.index && k.over == what_over;
  });
  if (found == links.end())
    throw failure(70,
                  "RC5058: \"{}\" communicates over {} on lane {}, where this rank has no communicator; it "
                  "can use only those that the plan gives the lane",
                  what.name, name(what_over), on.name());
  const std::span<const int> ranks =
      r.about->communicators[static_cast<std::size_t>(found->communicator)].ranks;
  op o;
  o.kind = kind;
  o.on = on.index;
  o.communicator = found->communicator;
  o.member = static_cast<int>(std::find(ranks.begin(), ranks.end(), r.index) - ranks.begin());
  o.what = what;
  if (r.trace != nullptr && !row_of(on).computes) o.times = r.trace->place(on.index, what.name);
  return o;
}

// In a pair, the first rank sends and the second receives.
op message_op(const lane& on, op_kind kind, message what) {
  refuse_in_action(on, what.name);
  op o = begin_op(on, kind, over::peer, what);
  if (o.member != (kind == op_kind::send ? 0 : 1))
    throw failure(70, "RC5059: \"{}\" has the wrong direction for lane {}", what.name, on.name());
  return o;
}

template <class T>
op collective(const lane& on, op_kind kind, over what_over, message what, at to, at from, std::size_t count) {
  if (row_of(on).computes ? on.index != on.of->computes_on : on.of->computes_on != 0)
    throw failure(70, "RC5060: \"{}\" was put on lane {} by the thread of lane {}", what.name, on.name(),
                  (*on.of)[on.of->computes_on].name());
  op o = begin_op(on, kind, what_over, what);
  o.to = on.at<std::byte>(to);
  o.from = on.at<std::byte>(from);
  o.count = count;
  o.element = sizeof(T);
  o.type = std::is_same_v<T, double> ? dtype::f64 : dtype::f32;
  return o;
}

void post(const lane& on, const op& o) { on.of->wires->post(*on.of, o); }

}  // namespace

const char* lane::name() const { return row_of(*this).name; }

/// Only calls on the thread's own lane are timed. A communication on another lane is not complete when its
/// call returns.
void time_call(const lane& on, const void* call, const char* type,
               void (*enqueue)(const lane&, const void*)) {
  const double began = now();
  enqueue(on, call);
  const rank& r = on;
  if (on.index == r.computes_on) r.calls->push_back({r.index, on.index, type, began, now()});
}

void begin(const lane& on, const char* action) {
  rank& r = on;
  if (r.recorder != nullptr) return r.recorder->begin(action);
  r.action = action;
  r.words->name(action);
  if (r.trace != nullptr) r.trace->begin(action);
}

void act(const lane& on, const char* action, const std::function<void(const lane&)>& work) {
  if (call_recorder* const to = recorder_of(on)) return to->act(on, action, work);
  refuse_in_action(on, action);
  if (on.index == 0 || !row_of(on).computes)
    throw failure(
        70, "RC5061: {} cannot run on lane {}; an action runs on a lane that computes, but not on lane 0",
        action, on.name());
  rank& r = on;
  op o;
  o.kind = op_kind::work;
  o.on = on.index;
  o.work = work;
  o.action = action;
  if (r.trace != nullptr) o.times = r.trace->place(on.index, action);
  r.wires->post_action(r, o);
}

void record(const lane& on, event e) {
  if (call_recorder* const to = recorder_of(on)) return to->record(on.index, e);
  refuse_in_action(on, "record");
  on.of->wires->record(*on.of, on.index, e);
}

void wait(const lane& on, event e) {
  if (call_recorder* const to = recorder_of(on)) return to->wait(on.index, e);
  refuse_in_action(on, "wait");
  rank& r = on;
  if (r.trace != nullptr && on.index == 0) r.trace->wait([&] { r.wires->wait(r, 0, e); });
  else r.wires->wait(r, on.index, e);
}

void follow(const lane& next, const lane& before) {
  if (next.index == before.index) return;
  if (call_recorder* const to = recorder_of(next)) return to->follow(next.index, before.index);
  refuse_in_action(next, "follow");
  rank& r = next;
  const auto hold = [&] { r.wires->follow(r, next.index, before.index); };
  if (r.trace != nullptr && next.index == 0) r.trace->wait(hold);
  else hold();
}

void send(const lane& on, message what, at data, std::size_t bytes) {
  op o = message_op(on, op_kind::send, what);
  o.from = on.at<std::byte>(data);
  o.count = bytes;
  post(on, o);
}

void receive(const lane& on, message what, at data, std::size_t bytes) {
  op o = message_op(on, op_kind::receive, what);
  o.to = on.at<std::byte>(data);
  o.count = bytes;
  post(on, o);
}

template <class T>
void all_reduce(const lane& on, over what_over, message what, at data, std::size_t count, reduction how) {
  op o = collective<T>(on, op_kind::all_reduce, what_over, what, data, data, count);
  o.reduce = how;
  post(on, o);
}

template <class T>
void all_gather(const lane& on, over what_over, message what, at to, at from, std::size_t count) {
  post(on, collective<T>(on, op_kind::all_gather, what_over, what, to, from, count));
}

template <class T>
void reduce_scatter(const lane& on, over what_over, message what, at to, at from, std::size_t count) {
  post(on, collective<T>(on, op_kind::reduce_scatter, what_over, what, to, from, count));
}

/// Fails on a lane that does not compute. The data is packed or unpacked on the lane before or after the
/// exchange.
static void check_computes(const lane& on, const message& what) {
  if (!row_of(on).computes)
    throw failure(70, "RC5062: \"{}\" was put on lane {}, which does not compute", what.name, on.name());
}

template <class T>
void all_to_all(const lane& on, over what_over, message what, at to, at scratch, at from,
                const runtime::head_exchange& by) {
  const std::size_t width = static_cast<std::size_t>(by.width),
                    block = static_cast<std::size_t>(by.block()) * width;
  const op o = collective<T>(on, op_kind::all_to_all, what_over, what, scratch, to, block);
  check_computes(on, what);
  const T *given = on.at<T>(from), *there = on.at<T>(scratch);
  T* const made = on.at<T>(to);
  for (int i = 0; i < by.count(); ++i)
    std::copy_n(given + static_cast<std::size_t>(by.sent(i)) * width, width,
                made + static_cast<std::size_t>(i) * width);
  post(on, o);
  for (int i = 0; i < by.count(); ++i)
    std::copy_n(there + static_cast<std::size_t>(i) * width, width,
                made + static_cast<std::size_t>(by.arrived(i)) * width);
}

template <class T>
void shift(const lane& on, over what_over, message what, at to, at second_to, at from, at second_from,
           std::size_t count, std::size_t second_count, ring_way way) {
  op o = collective<T>(on, way == ring_way::next ? op_kind::shift : op_kind::shift_back, what_over, what, to,
                       from, count + second_count);
  o.second_count = second_count;
  o.second_to = on.at<std::byte>(second_to);
  o.second_from = on.at<std::byte>(second_from);
  post(on, o);
}

namespace {

/// Sends each member its block of `from`.
template <class T>
void exchange_blocks(const lane& on, over what_over, message what, at to, at from, std::size_t block) {
  const op o = collective<T>(on, op_kind::all_to_all, what_over, what, to, from, block);
  check_computes(on, what);
  post(on, o);
}

}  // namespace

template <class T>
void to_experts(const lane& on, over what_over, message what, at received, at scratch, at slots, at offsets,
                const runtime::slot_exchange& by) {
  const auto width = static_cast<std::size_t>(by.width), block = static_cast<std::size_t>(by.slab) * width;
  const std::int32_t* where = on.at<std::int32_t>(offsets);
  for (int rank = 0; rank < by.ranks; ++rank) {
    const auto first = static_cast<std::size_t>(by.first(where, rank)) * width,
               end = static_cast<std::size_t>(by.end(where, rank)) * width;
    T* const slab = on.at<T>(scratch) + static_cast<std::size_t>(rank) * block;
    std::fill(std::copy(on.at<T>(slots) + first, on.at<T>(slots) + end, slab), slab + block, T(0));
  }
  exchange_blocks<T>(on, what_over, what, received, scratch, block);
}

template <class T>
void from_experts(const lane& on, over what_over, message what, at slots, at scratch, at received, at offsets,
                  const runtime::slot_exchange& by) {
  const auto width = static_cast<std::size_t>(by.width), block = static_cast<std::size_t>(by.slab) * width;
  exchange_blocks<T>(on, what_over, what, scratch, received, block);
  const std::int32_t* where = on.at<std::int32_t>(offsets);
  std::fill_n(on.at<T>(slots), static_cast<std::size_t>(by.slots) * width, T(0));
  for (int rank = 0; rank < by.ranks; ++rank) {
    const auto first = static_cast<std::size_t>(by.first(where, rank)) * width,
               end = static_cast<std::size_t>(by.end(where, rank)) * width;
    std::copy_n(on.at<T>(scratch) + static_cast<std::size_t>(rank) * block, end - first,
                on.at<T>(slots) + first);
  }
}

namespace {

/// Turns the offsets that each member has sent into offsets in the contiguous slabs.
void take_offsets(std::int32_t* segments, const std::int32_t* blocks, const runtime::slot_exchange& by) {
  const int each = by.experts_of_rank();
  for (int expert = 0; expert < by.experts; ++expert)
    for (int which = 0; which < 2; ++which)
      segments[which * by.experts + expert] =
          blocks[(expert / each * 2 + which) * each + expert % each] + expert / each * by.slab;
}

}  // namespace

// Sends each member the offsets of its experts, relative to the start of its slab.
void share_offsets(const lane& on, over what_over, message what, at segments, at scratch, at offsets,
                   const runtime::slot_exchange& by) {
  const int each = by.experts_of_rank();
  std::int32_t *const made = on.at<std::int32_t>(segments), *const blocks = on.at<std::int32_t>(scratch);
  for (int expert = 0; expert < by.experts; ++expert)
    for (int which = 0; which < 2; ++which)
      made[(expert / each * 2 + which) * each + expert % each] =
          by.in_slab(on.at<std::int32_t>(offsets), which, expert);
  exchange_blocks<std::int32_t>(on, what_over, what, scratch, segments, static_cast<std::size_t>(2 * each));
  take_offsets(made, blocks, by);
}

void gather_offsets(const lane& on, over what_over, message what, at all, at scratch, at segments,
                    const runtime::slot_exchange& by) {
  const op o = collective<std::int32_t>(on, op_kind::all_gather, what_over, what, scratch, segments,
                                        static_cast<std::size_t>(2 * by.experts_of_rank()));
  check_computes(on, what);
  post(on, o);
  take_offsets(on.at<std::int32_t>(all), on.at<std::int32_t>(scratch), by);
}

template decltype(all_reduce<float>) all_reduce<float>;
template decltype(all_reduce<double>) all_reduce<double>;
template decltype(all_gather<float>) all_gather<float>;
template decltype(all_gather<double>) all_gather<double>;
template decltype(reduce_scatter<float>) reduce_scatter<float>;
template decltype(reduce_scatter<double>) reduce_scatter<double>;
template decltype(all_to_all<float>) all_to_all<float>;
template decltype(all_to_all<double>) all_to_all<double>;
template decltype(shift<float>) shift<float>;
template decltype(shift<double>) shift<double>;
template decltype(to_experts<float>) to_experts<float>;
template decltype(to_experts<double>) to_experts<double>;
template decltype(from_experts<float>) from_experts<float>;
template decltype(from_experts<double>) from_experts<double>;

}  // namespace rankc::runtime::host
