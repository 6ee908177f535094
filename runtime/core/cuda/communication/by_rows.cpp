// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/call_recorder.hpp>
#include <rankc/runtime/cuda/by_rows.hpp>

#include "nccl_calls.hpp"
#include "peer_sums.hpp"
#include "../device/stream_words.hpp"

namespace rankc::runtime::cuda {
namespace {

/// The words through which two members synchronize. is_there: the writer's part may be copied. is_taken: the
/// writer has copied the reader's part.
enum word_of : std::size_t { is_there, is_taken };

/// A word in the memory of member `at`, which member `by` writes.
volatile std::uint32_t* word(const moving_rows& r, std::size_t at, std::size_t by, word_of which) {
  return r.group->parts + (at * static_cast<std::size_t>(r.group->ranks) + by) * 2 + which;
}
std::size_t members(const moving_rows& r) { return static_cast<std::size_t>(r.group->ranks); }
std::size_t place(const moving_rows& r) { return static_cast<std::size_t>(r.group->place); }
std::size_t after(const moving_rows& r, std::size_t steps) { return (place(r) + steps) % members(r); }

void tell(const moving_rows& r, std::size_t member, word_of what) {
  write_word(*r.on->copies, word(r, member, place(r), what), 1);
}
void await(const moving_rows& r, std::size_t member, word_of what) {
  take_word(*r.on->copies, word(r, place(r), member, what));
}

void copy(const moving_rows& r, std::byte* to, const std::byte* from) {
  check(*r.on, cudaMemcpyAsync(to, from, r.bytes, cudaMemcpyDeviceToDevice, r.on->copies->stream),
        "rows of another rank: cudaMemcpyAsync");
}
void hold(const lane& next, const lane& before) {
  check(next, cudaEventRecord(before.reached, before.stream), "cudaEventRecord");
  check(next, cudaStreamWaitEvent(next.stream, before.reached, 0), "cudaStreamWaitEvent");
}

moving_rows rows_of(const lane& on, over what, message m, std::byte* to, std::byte* from, std::size_t bytes) {
  if (call_recorder* const to_recorder = recorder_of(on)) {
    to_recorder->move_by_rows();
    return {};
  }
  const lane_link& k = link_of(on, what, m);
  if (!reads_peers(on, k) || on.copies == nullptr || is_timed(on)) return {};
  return {&on, k.mapped, to, from, bytes};
}

}  // namespace

std::size_t gathered_rows::arrive(std::size_t step) const {
  const std::size_t part = after(*this, step);
  if (on->of->alone) return part;
  if (step == 0) {
    hold(*on->copies, *on);
    for (std::size_t d = 1; d < members(*this); ++d) tell(*this, after(*this, d), is_there);
    return part;
  }
  await(*this, part, is_there);
  copy(*this, to + part * bytes, group->arenas[part] + group->offset_of(from));
  tell(*this, part, is_taken);
  hold(*on, *on->copies);
  return part;
}

void gathered_rows::end() const {
  if (on->of->alone) return;
  copy(*this, to + place(*this) * bytes, from);
  for (std::size_t d = 1; d < members(*this); ++d) await(*this, after(*this, d), is_taken);
  hold(*on, *on->copies);
}

template <class T>
std::size_t dealt_rows<T>::next(std::size_t step) const {
  return after(*this, step + 1);
}

/// The first part arrives at the place of the sum. Later parts arrive at the places of parts that other
/// members have taken.
template <class T>
std::byte* dealt_rows<T>::arrival(std::size_t step) const {
  return step == 0 ? to : from + after(*this, step) * bytes;
}

template <class T>
void dealt_rows<T>::leave(std::size_t step) const {
  if (on->of->alone || step + 1 == members(*this)) return;
  hold(*on->copies, *on);
  tell(*this, next(step), is_there);
  const std::size_t giver = after(*this, members(*this) - step - 1);
  await(*this, giver, is_there);
  if (step > 0) await(*this, next(step - 1), is_taken);
  copy(*this, arrival(step), group->arenas[giver] + group->offset_of(from) + place(*this) * bytes);
  tell(*this, giver, is_taken);
}

template <class T>
void dealt_rows<T>::end() const {
  if (!on->of->alone) {
    await(*this, next(members(*this) - 2), is_taken);
    hold(*on, *on->copies);
  }
  sum_terms<T> all{.count = group->ranks};
  all.of[place(*this)] = reinterpret_cast<const T*>(from + place(*this) * bytes);
  for (std::size_t step = 0; step + 1 < members(*this); ++step)
    all.of[after(*this, members(*this) - step - 1)] = reinterpret_cast<const T*>(arrival(step));
  sum_up(*on, reinterpret_cast<T*>(to), all, bytes / sizeof(T));
}

template <class T>
gathered_rows gather_by_rows(const lane& on, over what, message m, at to, at from, std::size_t count) {
  return gathered_rows(rows_of(on, what, m, on.at<std::byte>(to), on.at<std::byte>(from), count * sizeof(T)));
}

template <class T>
dealt_rows<T> deal_by_rows(const lane& on, over what, message m, at to, at from, std::size_t count) {
  return dealt_rows<T>(rows_of(on, what, m, on.at<std::byte>(to), on.at<std::byte>(from), count * sizeof(T)));
}

template class dealt_rows<float>;
template class dealt_rows<bf16>;
template gathered_rows gather_by_rows<float>(const lane&, over, message, at, at, std::size_t);
template gathered_rows gather_by_rows<bf16>(const lane&, over, message, at, at, std::size_t);
template dealt_rows<float> deal_by_rows<float>(const lane&, over, message, at, at, std::size_t);
template dealt_rows<bf16> deal_by_rows<bf16>(const lane&, over, message, at, at, std::size_t);

}  // namespace rankc::runtime::cuda
