// SPDX-License-Identifier: Apache-2.0
#include "retrace.hpp"

#include <rankc/runtime/named_inputs.hpp>
#include <rankc/runtime/operands.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime::host {
namespace {

/// The numbers of an operand that were looked at.
struct numbers_seen {
  std::size_t all = 0, not_finite = 0;
  void add(const numbers_seen& more) {
    all += more.all;
    not_finite += more.not_finite;
  }
};

template <class T>
numbers_seen look_at(const lane& on, const operand& o) {
  const T* values = on.at<T>(o.where);
  numbers_seen seen{.all = o.rows * o.columns};
  for (std::size_t row = 0; row < o.rows; ++row)
    for (std::size_t i = 0; i < o.columns; ++i) seen.not_finite += !std::isfinite(values[row * o.stride + i]);
  return seen;
}

numbers_seen look_at(const lane& on, const operand& o) {
  return o.type == dtype::f64 ? look_at<double>(on, o) : look_at<float>(on, o);
}

/// Contiguous elements of a vector.
struct element_run {
  std::size_t first, count;
};

/// The runs of its vector `index` that a call reads and writes; null if these are whole vectors.
std::optional<std::vector<element_run>> runs_of(const operand_list& call, std::size_t index) {
  std::vector<element_run> runs;
  for (const call_member& m : call.all_members()) {
    if (m.of.kind == member_kind::ranges) {
      for (const range& r : m.as<std::span<const range>>()) runs.push_back({r.first, r.count});
      return runs;
    }
    if (m.of.kind == member_kind::shards && call.site == nullptr) {  // add_sums: the sums, and the addends
      for (const shard_range& s : m.as<std::span<const shard_range>>())
        runs.push_back({index == 0 ? s.kept : s.arriving, s.count});
      return runs;
    }
  }
  return std::nullopt;
}

/// Looks at the runs of an operand that the call reads or writes. A collective may move the other runs.
numbers_seen look_at(const lane& on, const operand_list& call, std::size_t index) {
  const operand& o = call.all()[index];
  const auto has = [&](const element_run& p) { return o.rows == 1 && p.first + p.count <= o.columns; };
  const std::optional<std::vector<element_run>> runs = runs_of(call, index);
  if (!runs || o.columns == 1 || !std::ranges::all_of(*runs, has)) return look_at(on, o);
  numbers_seen seen;
  for (const element_run& p : *runs)
    seen.add(look_at(on, {o.where + p.first * size_of(o.type), 1, p.count, p.count, o.type}));
  return seen;
}

/// A part of the arena. Units: bytes.
struct byte_range {
  std::size_t begin, end;
};

/// The batch of a rank, in the order of addresses. It is given, and the repeated step reads it again.
std::vector<byte_range> batch_of(const rank& r) {
  const description& about = *r.about;
  const layout& l = *r.where;
  const auto microbatches = static_cast<std::size_t>(about.microbatches);
  const std::size_t tokens = microbatches * static_cast<std::size_t>(about.rows) * sizeof(std::int32_t);
  std::vector<byte_range> all;
  const auto add = [&](bool is_read, at where, std::size_t bytes) {
    if (is_read) all.push_back({where.byte, where.byte + bytes});
  };
  add(l.reads_tokens, l.tokens, tokens * about.chunks_of(*r.row).count());
  add(l.reads_targets, l.targets, tokens * about.chunks_of(*r.row).count());
  add(l.reads_starts, l.starts, tokens * static_cast<std::size_t>(about.seq));
  for (const input_row& input : l.inputs)
    add(true, input.where, microbatches * bytes_of_input(about, *r.row, input));
  std::ranges::sort(all, {}, &byte_range::begin);
  return all;
}

template <class T>
void clear_not_finite(const rank& r) {
  const auto clear = [&](std::size_t begin, std::size_t end) {
    T* const values = reinterpret_cast<T*>(r.arena);
    std::replace_if(
        values + (begin + sizeof(T) - 1) / sizeof(T), values + end / sizeof(T),
        [](T x) { return !std::isfinite(x); }, T{0});
  };
  std::size_t from = 0;
  for (const byte_range& given : batch_of(r)) {
    clear(from, given.begin);
    from = given.end;
  }
  clear(from, r.where->arena_bytes);
}

/// The parameter whose weights or gradients contain an operand; null if there is none.
const char* parameter_of(const rank& r, const operand& o) {
  const layout& l = *r.where;
  for (const at start : {l.weights, l.gradients})
    for (const parameter& p : l.parameters) {
      const std::size_t first = start.byte + p.element * size_of(o.type);
      const std::size_t bytes =
          static_cast<std::size_t>(p.rows) * static_cast<std::size_t>(p.cols) * size_of(o.type);
      if (o.where.byte >= first && o.where.byte < first + bytes) return p.name;
    }
  return nullptr;
}

std::string text_of(const lane& on, const operand_list& call, const numbers_seen& bad) {
  const rank& r = on;
  std::string text = std::string(r.action) + (on.index == 0 ? "" : std::string(" on lane ") + on.name()) +
                     ", op " + std::to_string(r.words->calls.load(std::memory_order_relaxed)) + ", " +
                     word_of(call.type);
  const char* parameter = nullptr;
  for (const operand& o : call.all())
    if (parameter == nullptr) parameter = parameter_of(r, o);
  if (call.site != nullptr) text += std::string(" \"") + call.site + "\"";
  else if (parameter != nullptr) text += std::string(" of ") + parameter;
  return text + ": " + std::to_string(bad.not_finite) + " of " + std::to_string(bad.all) +
         " numbers are not finite";
}

/// A call on another lane is a communication, which is not complete when it returns.
bool is_looked_at(const lane& on) { return on.index == on.of->computes_on; }

}  // namespace

void retracer::before(const lane& on, const operand_list& call) {
  for (std::size_t i = 0; i < call.count && !is_over_; ++i) is_over_ = look_at(on, call, i).not_finite > 0;
}

void retracer::after(const lane& on, const operand_list& call) {
  const rank& r = on;
  for (std::size_t i = 0; i < call.count && !is_over_; ++i) {
    const numbers_seen seen = look_at(on, call, i);
    if (seen.not_finite == 0) continue;
    is_over_ = true;
    found_ = {r.index, r.words->calls.load(std::memory_order_relaxed), call.site != nullptr,
              text_of(on, call, seen)};
  }
}

retracing::retracing(std::span<local_rank> ranks) : ranks_(ranks) {
  for (local_rank& each : ranks_) {
    const rank& r = each.main();
    r.about->type == dtype::f64 ? clear_not_finite<double>(r) : clear_not_finite<float>(r);
    for (rank& view : each.views()) view.origin = &of_.emplace_back();
  }
}

retracing::~retracing() {
  for (local_rank& each : ranks_)
    for (rank& view : each.views()) view.origin = nullptr;
}

std::vector<origin> retracing::origins() const {
  std::vector<origin> all;
  for (const retracer& each : of_)
    if (each.found()) all.push_back(*each.found());
  return all;
}

void retrace_call(const lane& on, const void* call, void (*describe)(const void*, operand_list&),
                  void (*enqueue)(const lane&, const void*)) {
  retracer& by = *on.of->origin;
  if (!is_looked_at(on)) return enqueue(on, call);
  operand_list list;
  describe(call, list);
  by.before(on, list);
  enqueue(on, call);
  by.after(on, list);
}

}  // namespace rankc::runtime::host
