// SPDX-License-Identifier: Apache-2.0
// Records the calls that rank.hpp declares in the same way for both targets. Included inside each target's
// namespace. A rank with a call_recorder notifies it, as the runtime does.

void begin(const lane& on, const char* action) {
  if (call_recorder* const to = recorder_of(on)) to->begin(action);
}

/// A recorded step is never timed.
void time_call(const lane&, const void*, const char*, void (*)(const lane&, const void*)) {
  throw std::logic_error("a recorded step is timed");
}

void act(const lane& on, const char* action, const std::function<void(const lane&)>& work) {
  if (call_recorder* const to = recorder_of(on)) return to->act(on, action, work);
  recorder::active().enter_action(on.index);
  work(on);
  recorder::active().leave_action();
}

void record(const lane& on, event e) {
  if (call_recorder* const to = recorder_of(on)) return to->record(on.index, e);
  recorder::active().mark(on.index, e);
}
void wait(const lane& on, event e) {
  if (call_recorder* const to = recorder_of(on)) return to->wait(on.index, e);
  recorder::active().wait(on.index, e);
}

void follow(const lane& next, const lane& before) {
  if (next.index == before.index) return;
  if (call_recorder* const to = recorder_of(next)) return to->follow(next.index, before.index);
  recorder::active().follow(next.index, before.index);
}

/// A message. The first rank of the pair sends it, and the second receives it.
static call& pass(const lane& on, const char* function, message m, at data, std::size_t bytes,
                  std::size_t place) {
  call& c = recorder::active().add(function, on.index);
  c.communicates = {recorder::active().meet(on.index, over::peer, m, bytes)};
  c.operands = {data.byte};
  const std::vector<int>& pair = c.communicates[0].members;
  if (pair.size() == 2 && pair[place] != on.of->index)
    recorder::active().misuse_in_call(std::string("\"") + m.name + "\" goes the other way");
  return c;
}
void send(const lane& on, message m, at data, std::size_t bytes) {
  pass(on, "send", m, data, bytes, 0).reads = {{data.byte, bytes}};
}
void receive(const lane& on, message m, at data, std::size_t bytes) {
  pass(on, "receive", m, data, bytes, 1).writes = {{data.byte, bytes}};
}

/// An all-reduce in place, usually of a range of the gradients.
static void sum(const lane& on, const char* function, over what, message m, at data, std::size_t bytes) {
  call& c = recorder::active().add(function, on.index);
  c.communicates = {recorder::active().meet(on.index, what, m, bytes)};
  c.operands = {data.byte};
  c.reads = c.writes = {{data.byte, bytes}};
  c.has_padding = true;
}
/// A reduce-scatter that gives each member `bytes`.
static void deal_out(const lane& on, const char* function, over what, message m, at to, at from,
                     std::size_t bytes) {
  call& c = recorder::active().add(function, on.index);
  c.communicates = {recorder::active().meet(on.index, what, m, bytes)};
  c.operands = {to.byte, from.byte};
  c.reads = {{from.byte, c.communicates[0].members.size() * bytes}};
  c.writes = {{to.byte, bytes}};
}
template <class T>
void all_reduce(const lane& on, over what, message m, at data, std::size_t count, reduction by) {
  sum(on, by == reduction::max ? "all_reduce_max" : "all_reduce", what, m, data, count * sizeof(T));
}
template <class T>
void all_gather(const lane& on, over what, message m, at to, at from, std::size_t count) {
  call& c = recorder::active().add("all_gather", on.index);
  c.communicates = {recorder::active().meet(on.index, what, m, count * sizeof(T))};
  c.operands = {to.byte, from.byte};
  c.reads = {{from.byte, count * sizeof(T)}};
  c.writes = {{to.byte, c.communicates[0].members.size() * count * sizeof(T)}};
}
template <class T>
void reduce_scatter(const lane& on, over what, message m, at to, at from, std::size_t count) {
  deal_out(on, "reduce_scatter", what, m, to, from, count * sizeof(T));
}

template <class T>
void all_to_all(const lane& on, over what, message m, at to, at scratch, at from,
                const runtime::head_exchange& by) {
  const std::size_t bytes =
      static_cast<std::size_t>(by.count()) * static_cast<std::size_t>(by.width) * sizeof(T);
  call& c = recorder::active().add("all_to_all", on.index);
  c.communicates = {recorder::active().meet(on.index, what, m, bytes)};
  c.operands = {to.byte, scratch.byte, from.byte};
  c.reads = {{from.byte, bytes}};
  c.writes = {{to.byte, bytes}, {scratch.byte, bytes}};
  if (c.communicates[0].members.size() != static_cast<std::size_t>(by.ranks))
    recorder::active().misuse_in_call("it is of other ranks");
}

template <class T>
void shift(const lane& on, over what, message m, at to, at second_to, at from, at second_from,
           std::size_t count, std::size_t second_count, ring_way way) {
  const std::size_t bytes = count * sizeof(T), second_bytes = second_count * sizeof(T);
  call& c = recorder::active().add(way == ring_way::next ? "shift" : "shift_back", on.index);
  c.communicates = {recorder::active().meet(on.index, what, m, bytes + second_bytes)};
  c.operands = {to.byte, second_to.byte, from.byte, second_from.byte};
  c.reads = {{from.byte, bytes}, {second_from.byte, second_bytes}};
  c.writes = {{to.byte, bytes}, {second_to.byte, second_bytes}};
}
/// An exchange of slots, or of their offsets: `blocks` bytes are sent to the members and received from them,
/// through scratch.
static call& exchange_slots(const lane& on, const char* function, over what, message m, std::size_t blocks,
                            const runtime::slot_exchange& by) {
  call& c = recorder::active().add(function, on.index);
  c.communicates = {recorder::active().meet(on.index, what, m, blocks)};
  if (c.communicates[0].members.size() != static_cast<std::size_t>(by.ranks))
    recorder::active().misuse_in_call("it is of other ranks");
  c.slab = by.slab;
  return c;
}
template <class T>
void to_experts(const lane& on, over what, message m, at received, at scratch, at slots, at offsets,
                const runtime::slot_exchange& by) {
  const std::size_t row = static_cast<std::size_t>(by.width) * sizeof(T),
                    bytes = product(by.ranks, by.slab) * row;
  call& c = exchange_slots(on, "to_experts", what, m, bytes, by);
  c.operands = {received.byte, scratch.byte, slots.byte, offsets.byte};
  c.reads = {{slots.byte, product(by.slots) * row},
             {offsets.byte, product(2, by.experts) * sizeof(std::int32_t)}};
  c.writes = {{received.byte, bytes}, {scratch.byte, bytes}};
}
template <class T>
void from_experts(const lane& on, over what, message m, at slots, at scratch, at received, at offsets,
                  const runtime::slot_exchange& by) {
  const std::size_t row = static_cast<std::size_t>(by.width) * sizeof(T),
                    bytes = product(by.ranks, by.slab) * row;
  call& c = exchange_slots(on, "from_experts", what, m, bytes, by);
  c.operands = {slots.byte, scratch.byte, received.byte, offsets.byte};
  c.reads = {{received.byte, bytes}, {offsets.byte, product(2, by.experts) * sizeof(std::int32_t)}};
  c.writes = {{slots.byte, product(by.slots) * row}, {scratch.byte, bytes}};
}
void share_offsets(const lane& on, over what, message m, at segments, at scratch, at offsets,
                   const runtime::slot_exchange& by) {
  const std::size_t bytes = product(2, by.experts) * sizeof(std::int32_t);
  call& c = exchange_slots(on, "share_offsets", what, m, bytes, by);
  c.operands = {segments.byte, scratch.byte, offsets.byte};
  c.reads = {{offsets.byte, bytes}};
  c.writes = {{segments.byte, bytes}, {scratch.byte, bytes}};
}
void gather_offsets(const lane& on, over what, message m, at all, at scratch, at segments,
                    const runtime::slot_exchange& by) {
  const std::size_t bytes = product(2, by.experts_of_rank()) * sizeof(std::int32_t),
                    of_all = bytes * static_cast<std::size_t>(by.ranks);
  call& c = exchange_slots(on, "gather_offsets", what, m, bytes, by);
  c.operands = {all.byte, scratch.byte, segments.byte};
  c.reads = {{segments.byte, bytes}};
  c.writes = {{all.byte, of_all}, {scratch.byte, of_all}};
}

/// Sums in bf16 touch the same bytes, on a lane that has memory for rounding.
static void check_rounds(const lane& on) {
  if (!recorder::active().where().lanes[static_cast<std::size_t>(on.index)].rounds)
    recorder::active().misuse_in_call("its lane has no memory to round in");
}
void all_reduce_in_bf16(const lane& on, over what, message m, at data, std::size_t count) {
  sum(on, "all_reduce_in_bf16", what, m, data, count * sizeof(float));
  check_rounds(on);
}
void scatter_sums_in_bf16(const lane& on, over what, message m, at to, at from,
                          std::span<const runtime::shard_range> of,
                          std::size_t runtime::shard_range::* kept) {
  for (const runtime::shard_range& s : of) {
    deal_out(on, "reduce_scatter_in_bf16", what, m, to + s.*kept * sizeof(float),
             from + s.gathered * sizeof(float), s.count * sizeof(float));
    check_rounds(on);
  }
}
