// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/score.hpp>

#include "json/json_file.hpp"
#include <rankc/trainer/mapped_file.hpp>

#include <fmt/format.h>
#include <string_view>

namespace rankc::runtime {
namespace {

constexpr json_limits line_limits{std::size_t{1} << 24, std::size_t{1} << 20, 100};

std::vector<std::int32_t> ids_of(const nlohmann::json& line, const char* key, const std::string& where,
                                 int vocab) {
  const auto ids = required<std::vector<std::uint64_t>>(line, key, "", where, 1);
  if (ids.empty()) throw failure(1, "RC6200: {}: {} has no tokens; give at least one", where, key);
  std::vector<std::int32_t> tokens;
  for (const std::uint64_t id : ids) {
    if (id >= static_cast<std::uint64_t>(vocab))
      throw failure(1, "RC6201: {}: {} has token {}; the vocabulary of this plan has 0 to {}", where, key, id,
                    vocab - 1);
    tokens.push_back(static_cast<std::int32_t>(id));
  }
  return tokens;
}

score_request request_of(std::string_view text, const std::string& where, int vocab, int seq) {
  const auto line = parse_json<nlohmann::json>(text, where, 1, line_limits);
  score_request request{ids_of(line, "context", where, vocab), ids_of(line, "continuation", where, vocab)};
  if (request.continuation.size() > static_cast<std::size_t>(seq))
    throw failure(1, "RC6202: {}: continuation has {} tokens; a sequence of this plan has {}", where,
                  request.continuation.size(), seq);
  return request;
}

}  // namespace

std::vector<score_request> read_score_requests(const std::string& file, int vocab, int seq) {
  const mapped_file mapped(file);
  std::vector<score_request> requests;
  std::string_view rest = mapped.bytes();
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    requests.push_back(request_of(line, fmt::format("{}, line {}", file, number), vocab, seq));
  }
  if (requests.empty())
    throw failure(1,
                  "RC6203: {} has no requests; give one line {\"context\": [ids], \"continuation\": [ids]} "
                  "for each",
                  file);
  return requests;
}

}  // namespace rankc::runtime
