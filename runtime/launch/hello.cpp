// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/hello.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/fnv1a.hpp>
#include <rankc/launch/frame.hpp>

#include "../core/host_name.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

namespace rankc::runtime {
namespace {

constexpr int did_not_meet = 75, do_not_agree = 2;  // exit codes
constexpr std::size_t most_named = 8;               // ranges of ranks in one sentence

/// The hash of this program's file, over words of eight bytes.
std::uint64_t hash_of_binary() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::vector<char> block(std::size_t{1} << 20);
  std::uint64_t h = fnv1a64("");
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    const auto read = static_cast<std::size_t>(in.gcount());
    std::fill(block.begin() + static_cast<std::ptrdiff_t>(read), block.end(), '\0');
    for (std::size_t i = 0; i < read; i += sizeof h) {
      std::uint64_t word;
      std::memcpy(&word, block.data() + i, sizeof word);
      h = (h ^ word) * 0x9E3779B97F4A7C15u;
      h ^= h >> 32;
    }
  }
  return h;
}

void list_twice_claimed(std::vector<std::string>& faults, const std::vector<hello>& joined) {
  for (std::size_t i = 0; i < joined.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (joined[i].rank == joined[j].rank)
        faults.push_back(say("RC5316: {} and {} are the same rank; start each rank once", joined[j].who(),
                             joined[i].who()));
}

void list_missing(std::vector<std::string>& faults, const std::vector<hello>& joined, int world) {
  const std::vector<int> missing = missing_ranks(joined, world);
  std::map<std::string, int> arrived;
  for (const hello& h : joined) ++arrived[h.host];
  if (missing.empty()) return;
  std::string hosts;
  for (const auto& [host, count] : arrived)
    hosts += fmt::format("{}{} of {}", hosts.empty() ? "" : ", ", count, host);
  if (missing.size() == 1)
    faults.push_back(say("RC5317: rank {} has not connected; connected: {}", missing.front(), hosts));
  else
    faults.push_back(say("RC5318: ranks {} have not connected; connected: {}", ranks_text(missing), hosts));
}

/// The first pair of lines that differ; empty if the listings are equal.
std::optional<std::pair<std::string, std::string>> first_difference(const std::string& ours,
                                                                    const std::string& theirs) {
  std::istringstream a(ours), b(theirs);
  std::string line_a, line_b;
  for (;;) {
    const bool more_a = static_cast<bool>(std::getline(a, line_a)),
               more_b = static_cast<bool>(std::getline(b, line_b));
    if (!more_a && !more_b) return std::nullopt;
    if (!more_a) line_a = "nothing more";
    if (!more_b) line_b = "nothing more";
    if (line_a != line_b) return std::pair(line_a, line_b);
  }
}

/// Call `say` once for each value that differs from rank 0's, with the ranks that have it.
template <class Value, class Say>
void list_others(const std::vector<hello>& joined, const Value& value, const Say& say) {
  const auto zero = std::find_if(joined.begin(), joined.end(), [](const hello& h) { return h.rank == 0; });
  const hello& first = zero != joined.end() ? *zero : joined.front();
  std::map<std::string, std::vector<const hello*>> others;
  for (const hello& h : joined)
    if (value(h) != value(first)) others[value(h)].push_back(&h);
  for (const auto& [theirs, who] : others) say(first, theirs, who);
}

std::string names_of(const std::vector<const hello*>& who) {
  if (who.size() == 1) return who[0]->who();
  std::vector<int> ranks;
  for (const hello* h : who) ranks.push_back(h->rank);
  std::sort(ranks.begin(), ranks.end());
  return "ranks " + ranks_text(ranks);
}

std::string plans_differ(const hello& first, const std::string& theirs, const std::vector<const hello*>& who,
                         const std::map<int, std::string>& listings) {
  const auto a = listings.find(first.rank), b = listings.find(who[0]->rank);
  if (a == listings.end() || b == listings.end())
    return say("RC5321: the plan of {} is {}, that of {} is {}", names_of(who), theirs, first.who(),
               first.plan);
  const auto lines = first_difference(a->second, b->second);
  if (!lines)
    return say(
        "RC5322: the plan of {} is {}, that of {} is {}; their descriptions are the same, only their ops "
        "differ",
        names_of(who), theirs, first.who(), first.plan);
  return say(
      "RC5323: the plan of {} is {}, that of {} is {}; the first difference: rank {} has \"{}\", rank {} "
      "has \"{}\"",
      names_of(who), theirs, first.who(), first.plan, who[0]->rank, lines->second, first.rank, lines->first);
}

}  // namespace

std::string hello::who() const { return fmt::format("rank {} ({}, process {})", rank, host, pid); }

std::vector<int> missing_ranks(const std::vector<hello>& joined, int world) {
  std::vector<int> missing;
  for (int r = 0; r < world; ++r)
    if (std::none_of(joined.begin(), joined.end(), [&](const hello& h) { return h.rank == r; }))
      missing.push_back(r);
  return missing;
}

hello hello_of(const description& about, int rank, int world) {
  static const std::uint64_t binary = hash_of_binary();
  hello h{.rank = rank,
          .world = world,
          .host = host_name(),
          .pid = getpid(),
          .plan = fmt::format("{} {:016x}", about.name, about.plan_hash),
          .build = fmt::format("{:016x}", binary),
          .facts = {{"rankc's version", RANKC_VERSION},
                    {"the runtime's interface", std::to_string(interface_version)}}};
  if (about.proven.empty()) h.facts.emplace_back("the program's file (hash)", h.build);
  else h.facts.emplace_back("the proven program", fmt::format("{:016x}", fingerprint_of(about.proven)));
  return h;
}

std::string pack(const hello& h) {
  body_writer w;
  w.add(static_cast<std::uint64_t>(h.rank)).add(static_cast<std::uint64_t>(h.world)).add(h.host);
  w.add(static_cast<std::uint64_t>(h.pid)).add(h.plan).add(h.build);
  w.add(static_cast<std::uint64_t>(h.facts.size()));
  for (const auto& [name, value] : h.facts) w.add(name).add(value);
  return w.take();
}

hello unpack_hello(const std::string& body) {
  body_reader r(body);
  hello h;
  h.rank = static_cast<int>(r.number());
  h.world = static_cast<int>(r.number());
  h.host = r.text();
  h.pid = static_cast<std::int64_t>(r.number());
  h.plan = r.text();
  h.build = r.text();
  for (std::uint64_t left = r.number(); left > 0; --left) {
    std::string name = r.text();
    h.facts.emplace_back(std::move(name), r.text());
  }
  return h;
}

std::string listing_of(const description& about) {
  std::string lines = fmt::format(
      "plan {}: pp {}, dp {}{}, tp {}, {} shards, {} microbatches of {} rows, seq {}, vocabulary {}, {} "
      "bytes an "
      "element\n",
      about.name, about.pp, about.dp, about.cp > 1 ? fmt::format(", cp {}", about.cp) : "", about.tp,
      about.shards, about.microbatches, about.rows, about.seq, about.vocab, size_of(about.type));
  for (std::size_t p = 0; p < about.layouts.size(); ++p) {
    const layout& l = about.layouts[p];
    lines += fmt::format("pipeline rank {}: {} bytes, {} parameters in {} elements, {} events, {} lanes\n", p,
                         l.arena_bytes, l.parameters.size(), l.parameter_count, l.events, l.lanes.size());
    for (const parameter& w : l.parameters)
      lines += fmt::format("pipeline rank {}: parameter {} ({}, {}) from element {}\n", p, w.name, w.rows,
                           w.cols, w.element);
  }
  for (const communicator& c : about.communicators)
    lines += fmt::format("communicator {}: ranks {}\n", c.name, fmt::join(c.ranks, " "));
  return lines + about.text;
}

std::string ranks_text(const std::vector<int>& sorted) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i;
    while (end + 1 < sorted.size() && sorted[end + 1] == sorted[end] + 1) ++end;
    if (end > i + 1) parts.push_back(fmt::format("{}..{}", sorted[i], sorted[end]));
    else
      for (std::size_t k = i; k <= end; ++k) parts.push_back(std::to_string(sorted[k]));
    i = end + 1;
  }
  if (parts.size() > most_named) {
    const std::size_t rest = parts.size() - most_named;
    parts.resize(most_named);
    return fmt::format("{} and {} more", fmt::join(parts, ", "), rest);
  }
  if (parts.size() < 2) return parts.empty() ? "" : parts[0];
  const std::string last = parts.back();
  parts.pop_back();
  return fmt::format("{} and {}", fmt::join(parts, ", "), last);
}

start_fault differences(const std::vector<hello>& joined, int world,
                        const std::map<int, std::string>& listings) {
  std::vector<std::string> faults;
  list_twice_claimed(faults, joined);
  list_missing(faults, joined, world);
  list_others(
      joined, [](const hello& h) { return std::to_string(h.world); },
      [&](const hello& first, const std::string& theirs, const auto& who) {
        faults.push_back(say("RC5319: the number of ranks of {} is {}, that of {} is {}", names_of(who),
                             theirs, first.who(), first.world));
      });
  list_others(
      joined, [](const hello& h) { return h.plan; },
      [&](const hello& first, const std::string& theirs, const auto& who) {
        faults.push_back(plans_differ(first, theirs, who, listings));
      });
  std::vector<std::string> names;
  for (const hello& h : joined)
    for (const auto& [name, value] : h.facts)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (const std::string& name : names) {
    const auto value_of = [&](const hello& h) {
      const auto found =
          std::find_if(h.facts.begin(), h.facts.end(), [&](const auto& f) { return f.first == name; });
      return found != h.facts.end() ? found->second : std::string("not there");
    };
    list_others(joined, value_of, [&](const hello& first, const std::string& theirs, const auto& who) {
      faults.push_back(say("RC5320: {} of {} is {}, that of {} is {}", name, names_of(who), theirs,
                           first.who(), value_of(first)));
    });
  }
  if (faults.empty()) return {};
  const bool only_misses = faults.size() == 1 && !missing_ranks(joined, world).empty();
  return {only_misses ? did_not_meet : do_not_agree, fmt::format("{}", fmt::join(faults, "; "))};
}

std::string builds_note(const std::vector<hello>& joined) {
  std::vector<std::string> others;
  list_others(
      joined, [](const hello& h) { return h.build; },
      [&](const hello&, const std::string&, const auto& who) { others.push_back(names_of(who)); });
  if (others.empty()) return "";
  return say(
      "RC5364: the program's file of {} is another build than rank 0's; plan, interface and proven program "
      "are the same, but the last bits of results may differ from those of a job with one build",
      fmt::format("{}", fmt::join(others, "; ")));
}

}  // namespace rankc::runtime
