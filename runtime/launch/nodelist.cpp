// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/nodelist.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>

#include <fmt/format.h>

#include <optional>

namespace rankc::runtime {
namespace {

constexpr std::size_t most = 100'000;  // hosts in a list
constexpr std::size_t longest = 255;   // characters in a host's name

/// The parts between commas outside brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

/// Append the numbers of a range such as `01-03`, or one number such as `07`, as written.
/// Returns: false if it is not a range, or too long.
bool append_numbers(std::vector<std::string>& all, std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash),
                         high = dash == range.npos ? low : range.substr(dash + 1);
  const auto first = parse_number<unsigned long>(low), last = parse_number<unsigned long>(high);
  if (!first || !last || *last < *first || *last - *first >= most - all.size() || low.size() > longest)
    return false;
  for (unsigned long i = 0; i <= *last - *first; ++i)
    all.push_back(fmt::format("{:0{}}", *first + i, low.size()));
  return true;
}

/// The names of `rack[1-2]node[01-03]x`: all combinations of brackets; the first bracket varies slowest.
std::optional<std::vector<std::string>> names_of(std::string_view part) {
  std::vector<std::string> names{""};
  while (!part.empty()) {
    const std::size_t open = part.find('['), close = part.find(']', open);
    if (open == part.npos && part.find(']') != part.npos) return std::nullopt;
    if (open != part.npos && close == part.npos) return std::nullopt;
    for (std::string& name : names) name += part.substr(0, open);
    if (names.front().size() > longest) return std::nullopt;
    if (open == part.npos) break;
    std::vector<std::string> numbers, longer;
    for (const std::string_view range : parts_of(part.substr(open + 1, close - open - 1)))
      if (!append_numbers(numbers, range)) return std::nullopt;
    if (names.size() * numbers.size() > most) return std::nullopt;
    for (const std::string& name : names)
      for (const std::string& number : numbers) longer.push_back(name + number);
    names = std::move(longer);
    part.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view part : parts_of(list)) {
    const auto names = names_of(part);
    if (part.empty() || !names || hosts.size() + names->size() > most)
      throw failure(2,
                    "RC5332: '{}' is not a list of at most {} nodes as Slurm writes it, such as "
                    "node[01-03,07],b2",
                    list, most);
    hosts.insert(hosts.end(), names->begin(), names->end());
  }
  return hosts;
}

std::vector<int> expand_counts(std::string_view list) {
  std::vector<int> counts;
  for (const std::string_view part : parts_of(list)) {
    const std::size_t open = part.find("(x");
    const int count = parse_number<int>(part.substr(0, open)).value_or(-1);
    std::size_t times = open == part.npos ? 1 : 0;
    if (times == 0 && part.ends_with(')'))
      times = parse_number<std::size_t>(part.substr(open + 2, part.size() - open - 3)).value_or(0);
    if (count < 0 || times == 0 || times > most || counts.size() + times > most)
      throw failure(2, "RC5333: '{}' is not a list of at most {} counts as Slurm writes it, such as 8(x2),4",
                    list, most);
    counts.insert(counts.end(), times, count);
  }
  return counts;
}

}  // namespace rankc::runtime
