// SPDX-License-Identifier: Apache-2.0
// Messages and collectives of generated text: structs of named operands, whose types contain all sizes. All
// targets use the same structs. The type of the lane selects the target's functions. Both sides of a transfer
// have the same site. An error for a mismatch names the site.
#pragma once
#include <rankc/runtime/call_names.hpp>
#include <rankc/runtime/call_recorder.hpp>
#include <rankc/runtime/head_exchange.hpp>
#include <rankc/runtime/numbered.hpp>
#include <rankc/runtime/operands.hpp>
#include <rankc/runtime/slot_exchange.hpp>
#include <rankc/runtime/tensor.hpp>

#include <span>
#include <type_traits>

namespace rankc::runtime::detail {

inline constexpr auto send_on = [](const auto& on, auto... with) { send(on, with...); };
inline constexpr auto receive_on = [](const auto& on, auto... with) { receive(on, with...); };
template <class T>
inline constexpr auto all_reduce_on = [](const auto& on, auto... with) { all_reduce<T>(on, with...); };
template <class T>
inline constexpr auto all_gather_on = [](const auto& on, auto... with) { all_gather<T>(on, with...); };
template <class T>
inline constexpr auto add_on = [](const auto& on, auto... with) { add<T>(on, with...); };
template <class T>
inline constexpr auto gather_shards_on = [](const auto& on, auto... with) { gather_shards<T>(on, with...); };
template <class T>
inline constexpr auto scatter_sums_on = [](const auto& on, auto... with) { scatter_sums<T>(on, with...); };
inline constexpr auto all_reduce_in_bf16_on = [](const auto& on, auto... with) {
  all_reduce_in_bf16(on, with...);
};
inline constexpr auto scatter_sums_in_bf16_on = [](const auto& on, auto... with) {
  scatter_sums_in_bf16(on, with...);
};
template <class T>
inline constexpr auto reduce_scatter_on =
    [](const auto& on, auto... with) { reduce_scatter<T>(on, with...); };
template <class T>
inline constexpr auto all_to_all_on = [](const auto& on, auto... with) { all_to_all<T>(on, with...); };
template <class T>
inline constexpr auto shift_on = [](const auto& on, auto... with) { shift<T>(on, with...); };
template <class T>
inline constexpr auto to_experts_on = [](const auto& on, auto... with) { to_experts<T>(on, with...); };
template <class T>
inline constexpr auto from_experts_on = [](const auto& on, auto... with) { from_experts<T>(on, with...); };
inline constexpr auto share_offsets_on = [](const auto& on, auto... with) { share_offsets(on, with...); };
inline constexpr auto gather_offsets_on = [](const auto& on, auto... with) { gather_offsets(on, with...); };

#ifdef RANKC_INJECT
/// Converts to every tensor type.
struct any_tensor {
  template <class T>
    requires requires(T t) {
      typename T::element;
      t.where;
    }
  operator T() const;
};
/// A call whose first operand is a tensor, which is its result.
template <class Call>
concept has_result = std::is_standard_layout_v<Call> && requires { Call{any_tensor{}}; };
#endif

template <class Lane, class Call>
void enqueue(const Lane& on, const void* what) {
  const Call& call = *static_cast<const Call*>(what);
  call(on);
#ifdef RANKC_INJECT
  if constexpr (has_result<Call> && requires { spoil(on, at{}); }) spoil(on, *static_cast<const at*>(what));
#endif
}

}  // namespace rankc::runtime::detail

namespace rankc::runtime::calls {

/// Enqueues a call on a lane. On some targets the lane also counts the call.
void run(const auto& on, const auto& call) {
  using call_type = std::remove_cvref_t<decltype(call)>;
  if constexpr (requires { on.of->recorder; })
    if (recorder_of(on) != nullptr) [[unlikely]]
      return recorder_of(on)->call(on.index, &call, describe<call_type>);
  constexpr auto enqueue = detail::enqueue<std::remove_cvref_t<decltype(on)>, call_type>;
  if constexpr (requires { count_call(on); }) count_call(on);
  if constexpr (requires { is_retraced(on); })
    if (is_retraced(on)) [[unlikely]]
      return retrace_call(on, &call, describe<call_type>, enqueue);
  if constexpr (requires { is_timed(on); })
    if (is_timed(on)) [[unlikely]]
      return time_call(on, &call, type_text<call_type>(), enqueue);
  enqueue(on, &call);
}

template <class Data>
struct send {
  Data data;
  message site;
  void operator()(const auto& on) const { detail::send_on(on, site, data.where, Data::bytes); }
};

template <class Data>
struct receive {
  Data data;
  message site;
  void operator()(const auto& on) const { detail::receive_on(on, site, data.where, Data::bytes); }
};

/// All-reduces in place.
template <class Data>
struct all_reduce {
  runtime::over over;
  Data data;
  message site;
  reduction how = reduction::sum;
  void operator()(const auto& on) const {
    detail::all_reduce_on<typename Data::element>(on, over, site, data.where, data.count, how);
  }
};

/// All-reduces f32 in place and sends bf16.
template <class Data>
struct all_reduce_in_bf16 {
  runtime::over over;
  Data data;
  message site;
  static_assert(std::is_same_v<typename Data::element, float>);
  void operator()(const auto& on) const {
    detail::all_reduce_in_bf16_on(on, over, site, data.where, data.count);
  }
};

template <class T, std::size_t Whole, std::size_t Part, std::size_t Columns>
struct all_gather {
  runtime::over over;
  matrix<T, Whole, Columns> to;
  matrix<T, Part, Columns> from;
  message site;
  static_assert(Whole > Part && Whole % Part == 0);
  void operator()(const auto& on) const {
    detail::all_gather_on<T>(on, over, site, to.where, from.where, from.count);
  }
};

/// All-gathers each tensor from the shards that the ranks keep.
template <class To, class From>
struct gather_shards {
  runtime::over over;
  To to;
  From from;
  std::span<const shard_range> of;
  message site;
  void operator()(const auto& on) const {
    detail::gather_shards_on<typename To::element>(on, over, site, to.where, from.where, of);
  }
};

/// Reduce-scatters each tensor: each rank receives its shard of the sum.
template <class To, class From>
struct scatter_sums {
  runtime::over over;
  To to;
  From from;
  std::span<const shard_range> of;
  message site;
  std::size_t shard_range::* at = &shard_range::kept;
  void operator()(const auto& on) const {
    detail::scatter_sums_on<typename To::element>(on, over, site, to.where, from.where, of, at);
  }
};

/// Reduce-scatters f32 and sends bf16.
template <class To, class From>
struct scatter_sums_in_bf16 {
  runtime::over over;
  To to;
  From from;
  std::span<const shard_range> of;
  message site;
  std::size_t shard_range::* at = &shard_range::kept;
  static_assert(std::is_same_v<typename To::element, float> && std::is_same_v<typename From::element, float>);
  void operator()(const auto& on) const {
    detail::scatter_sums_in_bf16_on(on, over, site, to.where, from.where, of, at);
  }
};

/// Adds the sums that have arrived to the shards that the rank keeps.
template <class To, class From>
struct add_sums {
  To to;
  From from;
  std::span<const shard_range> of;
  void operator()(const auto& on) const {
    for (const shard_range& s : of)
      detail::add_on<typename To::element>(on, to[s.kept], to[s.kept], from[s.arriving], s.count);
  }
};

template <class T, std::size_t Whole, std::size_t Part, std::size_t Columns>
struct reduce_scatter {
  runtime::over over;
  matrix<T, Part, Columns> to;
  matrix<T, Whole, Columns> from;
  message site;
  static_assert(Whole > Part && Whole % Part == 0);
  void operator()(const auto& on) const {
    detail::reduce_scatter_on<T>(on, over, site, to.where, from.where, to.count);
  }
};

/// Rows [index * n / N, (index + 1) * n / N) of a tensor with n rows. In an all-gather the rank's own part is
/// read from its source and not copied.
template <std::size_t N>
struct part_of_rows {
  std::size_t index;
  bool first = false;  // the first part to be computed
  at gathered{}, own{};
  bool is_own = false;
  template <class T, std::size_t Rows, std::size_t Columns, std::size_t Stride>
  matrix<T, Rows / N, Columns, Stride> operator()(matrix<T, Rows, Columns, Stride> m) const {
    static_assert(Rows % N == 0);
    if (is_own && m.where.byte == gathered.byte) return {own};
    return {m.where + index * (Rows / N) * Stride * sizeof(T)};
  }
  /// The first part writes or adds as the call says; later parts add to its sum.
  store operator()(store into) const { return first ? into : store::add; }
};
struct all_rows {
  template <class Operand>
  Operand operator()(Operand whole) const {
    return whole;
  }
};

/// Also records the GEMM of one part of the rows, so that the proof holds for the parts.
template <std::size_t N>
void record_part(const auto& on, const auto& product) {
  if (recorder_of(on) != nullptr) run(on, product(part_of_rows<N>{1}));
}

/// Overlaps an all-gather with the GEMM that reads its rows. `product(part)` is the GEMM of a part of the
/// rows. If the target supports it, `meanwhile` and the GEMMs of parts that have arrived run while later
/// parts arrive. `meanwhile` touches neither the rows nor the GEMM. Otherwise all-gather, `meanwhile` and
/// GEMM run one after the other.
template <class T, std::size_t Whole, std::size_t Part, std::size_t Columns>
void run_by_rows(const auto& on, const all_gather<T, Whole, Part, Columns>& rows, const auto& product,
                 const auto&... meanwhile) {
  if constexpr (requires {
                  gather_by_rows<T>(on, rows.over, rows.site, rows.to.where, rows.from.where,
                                    rows.from.count);
                }) {
    constexpr std::size_t parts = Whole / Part;
    if (auto moving =
            gather_by_rows<T>(on, rows.over, rows.site, rows.to.where, rows.from.where, rows.from.count);
        moving.any()) {
      for (std::size_t step = 0; step < parts; ++step) {
        const std::size_t index = moving.arrive(step);
        if (step == 0) (run(on, meanwhile), ...);
        run(on, product(part_of_rows<parts>{index, step == 0, rows.to.where, rows.from.where, step == 0}));
      }
      return moving.end();
    }
  }
  run(on, rows);
  (run(on, meanwhile), ...);
  run(on, product(all_rows{}));
  record_part<Whole / Part>(on, product);
}

/// Overlaps a reduce-scatter with the GEMM that produces its rows, in the same way.
template <class T, std::size_t Whole, std::size_t Part, std::size_t Columns>
void run_by_rows(const auto& on, const auto& product, const reduce_scatter<T, Whole, Part, Columns>& sum,
                 const auto&... meanwhile) {
  if constexpr (requires {
                  deal_by_rows<T>(on, sum.over, sum.site, sum.to.where, sum.from.where, sum.to.count);
                }) {
    constexpr std::size_t parts = Whole / Part;
    if (auto moving = deal_by_rows<T>(on, sum.over, sum.site, sum.to.where, sum.from.where, sum.to.count);
        moving.any()) {
      for (std::size_t step = 0; step < parts; ++step) {
        run(on, product(part_of_rows<parts>{moving.next(step), step == 0}));
        moving.leave(step);
      }
      (run(on, meanwhile), ...);
      return moving.end();
    }
  }
  run(on, product(all_rows{}));
  record_part<Whole / Part>(on, product);
  (run(on, meanwhile), ...);
  run(on, sum);
}

/// Sends two tensors to the next member of the ring and receives those of the previous member. shift_back
/// sends in the other direction.
template <class T, std::size_t Rows, std::size_t Columns, std::size_t SecondColumns>
struct shift {
  runtime::over over;
  matrix<T, Rows, Columns> to;
  matrix<T, Rows, SecondColumns> second_to;
  matrix<T, Rows, Columns> from;
  matrix<T, Rows, SecondColumns> second_from;
  message site;
  void operator()(const auto& on) const {
    detail::shift_on<T>(on, over, site, to.where, second_to.where, from.where, second_from.where, to.count,
                        second_to.count, ring_way::next);
  }
};
template <class T, std::size_t Rows, std::size_t Columns, std::size_t SecondColumns>
struct shift_back {
  runtime::over over;
  matrix<T, Rows, Columns> to;
  matrix<T, Rows, SecondColumns> second_to;
  matrix<T, Rows, Columns> from;
  matrix<T, Rows, SecondColumns> second_from;
  message site;
  void operator()(const auto& on) const {
    detail::shift_on<T>(on, over, site, to.where, second_to.where, from.where, second_from.where, to.count,
                        second_to.count, ring_way::back);
  }
};

/// Exchanges all heads of a rank's tokens for all tokens of its heads, or the reverse.
template <class T, std::size_t ToRows, std::size_t ToColumns, std::size_t FromRows, std::size_t FromColumns,
          std::size_t Seq>
struct all_to_all {
  runtime::over over;
  matrix<T, ToRows, ToColumns> to;
  workspace scratch;
  matrix<T, FromRows, FromColumns> from;
  size_constant<Seq> seq;
  message site;
  static constexpr bool to_heads = ToRows > FromRows;
  static constexpr std::size_t tokens = to_heads ? ToRows : FromRows, own = to_heads ? FromRows : ToRows,
                               width = to_heads ? ToColumns : FromColumns;
  static_assert(ToRows * ToColumns == FromRows * FromColumns && tokens > own && tokens % own == 0 &&
                tokens % Seq == 0);
  static constexpr head_exchange shape{static_cast<int>(tokens / Seq), static_cast<int>(Seq),
                                       static_cast<int>(tokens / own), static_cast<int>(width), to_heads};
  void operator()(const auto& on) const {
    detail::all_to_all_on<T>(on, over, site, to.where, scratch.where, from.where, shape);
  }
};

/// Sends the slots of a rank's tokens, which are sorted by expert, to the ranks that hold the experts. A rank
/// receives one slab from each rank. The segments of a slab tell which of its rows are filled.
template <class T, std::size_t Received, std::size_t Slots, std::size_t Columns, std::size_t Experts,
          std::size_t Ranks, std::size_t Slab>
struct to_experts {
  runtime::over over;
  matrix<T, Received, Columns> to;
  workspace scratch;
  matrix<T, Slots, Columns> from;
  matrix<std::int32_t, 2, Experts> offsets;
  size_constant<Ranks> ranks;
  size_constant<Slab> slab;
  message site;
  static_assert(Received == Ranks * Slab && Experts % Ranks == 0);
  static constexpr slot_exchange shape{static_cast<int>(Ranks), static_cast<int>(Slab),
                                       static_cast<int>(Experts), static_cast<int>(Slots),
                                       static_cast<int>(Columns)};
  void operator()(const auto& on) const {
    detail::to_experts_on<T>(on, over, site, to.where, scratch.where, from.where, offsets.where, shape);
  }
};

/// Sends the slots back to the ranks of their tokens. Slots that did not fit into a slab become zeros.
template <class T, std::size_t Slots, std::size_t Received, std::size_t Columns, std::size_t Experts,
          std::size_t Ranks, std::size_t Slab>
struct from_experts {
  runtime::over over;
  matrix<T, Slots, Columns> to;
  workspace scratch;
  matrix<T, Received, Columns> from;
  matrix<std::int32_t, 2, Experts> offsets;
  size_constant<Ranks> ranks;
  size_constant<Slab> slab;
  message site;
  static_assert(Received == Ranks * Slab && Experts % Ranks == 0);
  static constexpr slot_exchange shape{static_cast<int>(Ranks), static_cast<int>(Slab),
                                       static_cast<int>(Experts), static_cast<int>(Slots),
                                       static_cast<int>(Columns)};
  void operator()(const auto& on) const {
    detail::from_experts_on<T>(on, over, site, to.where, scratch.where, from.where, offsets.where, shape);
  }
};

/// Exchanges the segments of the slabs that a rank receives: for each slab, the slots of each of the rank's
/// experts.
template <std::size_t Experts, std::size_t Ranks, std::size_t Slab>
struct share_offsets {
  runtime::over over;
  matrix<std::int32_t, 2, Experts> to;
  workspace scratch;
  matrix<std::int32_t, 2, Experts> from;
  size_constant<Ranks> ranks;
  size_constant<Slab> slab;
  message site;
  static_assert(Experts % Ranks == 0);
  static constexpr slot_exchange shape{static_cast<int>(Ranks), static_cast<int>(Slab),
                                       static_cast<int>(Experts)};
  void operator()(const auto& on) const {
    detail::share_offsets_on(on, over, site, to.where, scratch.where, from.where, shape);
  }
};

/// Gathers the segments of the slabs that several ranks have received. The rows of one rank follow those of
/// the previous rank.
template <std::size_t All, std::size_t Segments, std::size_t Ranks, std::size_t Slab>
struct gather_offsets {
  runtime::over over;
  matrix<std::int32_t, 2, All> to;
  workspace scratch;
  matrix<std::int32_t, 2, Segments> from;
  size_constant<Ranks> ranks;
  size_constant<Slab> slab;
  message site;
  static_assert(All == Ranks * Segments);
  static constexpr slot_exchange shape{static_cast<int>(Ranks), static_cast<int>(Slab),
                                       static_cast<int>(All)};
  void operator()(const auto& on) const {
    detail::gather_offsets_on(on, over, site, to.where, scratch.where, from.where, shape);
  }
};

}  // namespace rankc::runtime::calls
