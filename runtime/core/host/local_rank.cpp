// SPDX-License-Identifier: Apache-2.0
#include "local_rank.hpp"

#include <rankc/runtime/bf16.hpp>
#include <rankc/runtime/documents.hpp>
#include <rankc/runtime/named_inputs.hpp>

#include <algorithm>

namespace rankc::runtime::host {

std::size_t count_threads(const layout& where) {
  return static_cast<std::size_t>(
      std::ranges::count_if(where.lanes, [](const lane_row& lane) { return lane.computes; }));
}

local_rank::local_rank(const description& about, int index, fabric& wires, std::pmr::memory_resource* memory)
    : about_(about),
      arena_(layout_of(about, index).arena_bytes, memory),
      views_(count_threads(layout_of(about, index))) {
  const layout& where = layout_of(about, index);
  for (const rope_table& table : where.ropes)
    fill_rope(arena_.data(), table,
              about.chunks_of_table(table, about.ranks[static_cast<std::size_t>(index)]), about.type);
  std::size_t next = 0;
  for (int lane = 0; lane < static_cast<int>(where.lanes.size()); ++lane) {
    if (!where.lanes[static_cast<std::size_t>(lane)].computes) continue;
    rank& r = views_[next++];
    r.about = &about;
    r.row = &about.ranks[static_cast<std::size_t>(index)];
    r.where = &where;
    r.index = index;
    r.arena = arena_.data();
    r.wires = &wires;
    r.computes_on = lane;
    r.all_lanes.clear();
    for (int i = 0; i < static_cast<int>(where.lanes.size()); ++i) r.all_lanes.push_back({&r, i});
  }
}

void local_rank::set_batch(int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
  const rank& r = main();
  const chunks has = about_.chunks_of(*r.row);
  const std::size_t first =
      static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(about_.rows) * has.count();
  if (r.where->reads_tokens)
    copy_chunks(tokens, about_.rows, has, r.at<std::int32_t>(r.where->tokens) + first);
  if (r.where->reads_targets)
    copy_chunks(targets, about_.rows, has, r.at<std::int32_t>(r.where->targets) + first);
  if (r.where->reads_starts)
    find_starts(tokens, about_.rows, about_.seq, about_.end_of_document, starts_of(microbatch));
}

void local_rank::set_document_starts(int microbatch, const std::int32_t* starts) {
  if (main().where->reads_starts) std::copy_n(starts, about_.tokens_of_microbatch(), starts_of(microbatch));
}

std::int32_t* local_rank::starts_of(int microbatch) const {
  return main().at<std::int32_t>(main().where->starts) +
         static_cast<std::size_t>(microbatch) * about_.tokens_of_microbatch();
}

void local_rank::set_inputs(int microbatch, std::span<const named_array> given) {
  const rank& r = main();
  for (const input_row& input : r.where->inputs) {
    const std::size_t bytes = bytes_of_input(about_, *r.row, input);
    store_input(about_, *r.row, input, find_array(given, input.name)->values,
                r.arena + input.where.byte + static_cast<std::size_t>(microbatch) * bytes);
  }
}

std::byte* local_rank::element(region what, std::size_t first, std::size_t count) const {
  return main().arena + place_of(about_, main().index, what, first, count).byte;
}

void local_rank::read(region what, std::size_t first, std::size_t count, double* to) const {
  const std::byte* from = element(what, first, count);
  switch (type_of(about_, what)) {
    case dtype::f64:
      std::copy_n(reinterpret_cast<const double*>(from), count, to);
      break;
    case dtype::f32:
      std::copy_n(reinterpret_cast<const float*>(from), count, to);
      break;
    case dtype::bf16:
      std::transform(reinterpret_cast<const bf16_bits*>(from),
                     reinterpret_cast<const bf16_bits*>(from) + count, to, widened);
  }
}

void local_rank::write(region what, std::size_t first, std::size_t count, const double* from) {
  std::byte* to = element(what, first, count);
  const auto narrow = [](double x) { return static_cast<float>(x); };
  switch (type_of(about_, what)) {
    case dtype::f64:
      std::copy_n(from, count, reinterpret_cast<double*>(to));
      break;
    case dtype::f32:
      std::transform(from, from + count, reinterpret_cast<float*>(to), narrow);
      break;
    case dtype::bf16:
      std::transform(from, from + count, reinterpret_cast<bf16_bits*>(to),
                     [&](double x) { return rounded_to_nearest(narrow(x)); });
  }
}

void local_rank::logits(std::size_t token, double* to) const {
  const at from = place_of_logits(about_, main().index, token);
  const auto count = static_cast<std::size_t>(main().where->logits.columns);
  if (about_.type == dtype::f64) std::copy_n(main().at<double>(from), count, to);
  else std::copy_n(main().at<float>(from), count, to);
}

void local_rank::routers(int microbatch, double* to) const {
  const routers_place& kept = main().where->routers;
  const at from = place_of_routers(about_, main().index, microbatch);
  const auto count = static_cast<std::size_t>(kept.rows) * static_cast<std::size_t>(kept.experts);
  if (about_.type == dtype::f64) std::copy_n(main().at<double>(from), count, to);
  else std::copy_n(main().at<float>(from), count, to);
}

double local_rank::load(at where) const {
  return about_.type == dtype::f64 ? *main().at<double>(where)
                                   : static_cast<double>(*main().at<float>(where));
}

}  // namespace rankc::runtime::host
