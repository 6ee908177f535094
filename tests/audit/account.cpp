// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <stdexcept>

namespace audit {

namespace {

/// A JSON number as a fraction with the denominator `ranks`.
fraction as_fraction(double value, int ranks) {
  const double over = std::round(value * ranks);
  if (over / ranks != value)
    throw std::runtime_error(fmt::format("{} is no fraction of {} ranks", value, ranks));
  return {static_cast<std::int64_t>(over), ranks};
}

std::string axis_of(rankc::runtime::over o) {
  using rankc::runtime::over;
  switch (o) {
    case over::tp:
      return "tp";
    case over::dp:
      return "dp_replicate";
    case over::shard:
      return "dp_shard";
    case over::cp:
      return "cp";
    case over::ulysses:
      return "ulysses";
    case over::ep:
      return "ep";
    case over::etp:
      return "etp";
    case over::efsdp:
      return "efsdp";
    case over::tied:
      return "tied";
    default:
      return "pp";
  }
}

/// The phase, from the call's site ("F0: stage 0 -> 1") or from the action that made the call ("3B1").
std::string phase_of(std::string_view site, std::string_view action) {
  if (site.starts_with("F") && site.find(": stage ") != site.npos) return "forward";
  if (site.starts_with("B") && site.find(": stage ") != site.npos) return "backward";
  if (site.starts_with("gradients of ")) return "backward";
  const std::size_t kind = action.find_first_not_of("0123456789");
  const std::string_view word = kind == action.npos ? "" : action.substr(kind);
  if (word.starts_with("F") || word == "UNSHARD") return "forward";
  return word == "STEP" ? "step" : "backward";
}

}  // namespace

account described(const std::string& json, int pp) {
  account all;
  const auto j = nlohmann::json::parse(json);
  for (const auto& row : j.at("pipeline_ranks").at(static_cast<std::size_t>(pp)).at("collectives")) {
    const auto [at, is_new] =
        all.try_emplace({row.at("phase"), row.at("kind"), row.at("axis"), row.at("dtype")},
                        entry{row.at("count"), row.at("tensors"), row.at("elements"),
                              as_fraction(row.at("sent_bytes"), row.at("ranks"))});
    if (!is_new) throw std::runtime_error("two rows are of " + at->first.kind + " over " + at->first.axis);
  }
  return all;
}

account carried(const rankc::runtime::description& about, int rank,
                std::span<const rankc::host::transfer> of) {
  account all;
  for (const rankc::host::transfer& t : of) {
    if (t.rank != rank) continue;
    const auto communicator = static_cast<std::size_t>(t.communicator);
    std::string axis;
    for (const rankc::runtime::lane_communicator& k : about.ranks[static_cast<std::size_t>(rank)].links)
      if (k.communicator == t.communicator) axis = axis_of(k.over);
    const std::string kind = t.kind;
    const bool is_message = kind == "send" || kind == "receive", is_sum = kind == "all_reduce",
               is_shift = kind.starts_with("shift"),
               is_index = about.type == rankc::runtime::dtype::f64 && t.element_bytes == 4;
    const auto ranks = static_cast<std::int64_t>(about.communicators[communicator].ranks.size());
    const auto bytes = static_cast<std::int64_t>(t.count * t.element_bytes),
               each = static_cast<std::int64_t>(size_of(about.type));
    const char* const real = about.type == rankc::runtime::dtype::f64 ? "f64" : "f32";
    entry& e =
        all[{phase_of(t.site, t.action), t.how == rankc::runtime::reduction::max ? kind + "_max" : kind, axis,
             is_index ? "i32" : real}];
    ++e.count;
    ++e.tensors;
    e.elements += bytes / (is_index ? 4 : each) * (is_message || is_sum || is_shift ? 1 : ranks);
    if (is_message) e.sent = e.sent + (kind == "send" ? bytes : 0);
    else if (is_shift) e.sent = e.sent + bytes;
    else
      e.sent = e.sent + (is_sum ? fraction(2 * (ranks - 1) * bytes, ranks) : fraction((ranks - 1) * bytes));
  }
  return as_carried(all);
}

account as_carried(const account& of) {
  account all;
  for (const auto& [what, e] : of) {
    key here = what;
    if (what.kind == "all_gather" && (what.axis == "dp_shard" || what.axis == "efsdp"))
      here.phase = "forward";
    if (what.axis == "ep" && what.kind != "all_reduce") here.kind = "all_to_all";
    if (what.axis == "etp")
      here.kind =
          what.kind == "scatter_slots" || what.kind == "reduce_scatter" ? "reduce_scatter" : "all_gather";
    entry& to = all[here];
    to.count += e.tensors;
    to.tensors += e.tensors;
    to.elements += e.elements;
    to.sent = to.sent + e.sent;
  }
  return all;
}

std::string difference(const account& a, const account& b) {
  const auto text = [](const account& in, const key& k) {
    const auto at = in.find(k);
    if (at == in.end()) return std::string("none");
    const entry& e = at->second;
    return fmt::format("{} of {} tensors, {} elements, {}/{} bytes sent", e.count, e.tensors, e.elements,
                       e.sent.over, e.sent.under);
  };
  for (const account* of : {&a, &b})
    for (const auto& [k, e] : *of)
      if (!a.count(k) || !b.count(k) || !(a.at(k) == b.at(k)))
        return fmt::format("{} {} over {} of {}: {}; and {}", k.phase, k.kind, k.axis, k.type, text(a, k),
                           text(b, k));
  return "";
}

}  // namespace audit
