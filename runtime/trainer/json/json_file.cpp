// SPDX-License-Identifier: Apache-2.0
#include "json_file.hpp"

#include <rankc/trainer/model_files.hpp>

#include <fmt/format.h>
#include <functional>
#include <set>
#include <type_traits>

namespace rankc::runtime {
namespace {

constexpr int deepest = 32;

/// Checks each event of the parser.
template <class Json>
class json_guard {
 public:
  json_guard(const std::string& name, int exit_code, const json_limits& limits)
      : name_(name), exit_code_(exit_code), limits_(limits) {}

  bool operator()(int depth, typename Json::parse_event_t event, Json& value) {
    using when = typename Json::parse_event_t;
    const bool is_object = event == when::object_start;
    if (is_object) keys_.emplace_back();
    if (event == when::object_end) keys_.pop_back();
    if (event == when::key) add_key(value.template get_ref<const std::string&>());
    if (is_object || event == when::array_start) check_depth(depth);
    if (event != when::key && event != when::object_end && event != when::array_end) count();
    return true;
  }

 private:
  void check_depth(int depth) const {
    if (depth >= deepest)
      throw failure(exit_code_, "RC6592: {} nests JSON more than {} levels deep", name_, deepest);
  }

  void count() {
    if (++values_ > limits_.values)
      throw failure(exit_code_,
                    "RC6593: {} has more than {} values; a file of this kind has at most that many", name_,
                    limits_.values);
  }

  void add_key(const std::string& key) {
    if (!keys_.back().insert(key).second)
      throw failure(exit_code_, "RC6594: {} gives the key \"{}\" twice in one object", name_, key);
    if (std::is_same_v<Json, nlohmann::ordered_json> && keys_.back().size() > limits_.ordered_keys)
      throw failure(exit_code_, "RC6595: {} has an object of more than {} keys", name_, limits_.ordered_keys);
  }

  const std::string& name_;
  int exit_code_;
  json_limits limits_;
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> keys_;  // one set for each open object
};

/// The position of a parser's error, without the parser's message.
std::string reason_of(const nlohmann::json::exception& error) {
  const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  if (syntax != nullptr) return fmt::format("byte {} is unexpected", syntax->byte);
  return "a number is out of range";
}

}  // namespace

template <class Json>
Json parse_json(std::string_view text, const std::string& name, int exit_code, const json_limits& limits) {
  json_guard<Json> guard(name, exit_code, limits);
  try {
    return Json::parse(text, typename Json::parser_callback_t(std::ref(guard)));
  } catch (const nlohmann::json::exception& error) {
    throw failure(exit_code, "RC6596: {} is not valid JSON: {}", name, reason_of(error));
  }
}

template <class Json>
Json read_json(const std::filesystem::path& file, int exit_code, const json_limits& limits) {
  return parse_json<Json>(contents_of_file(file, exit_code, limits.bytes), file.string(), exit_code, limits);
}

template nlohmann::json parse_json(std::string_view, const std::string&, int, const json_limits&);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&, int, const json_limits&);
template nlohmann::json read_json(const std::filesystem::path&, int, const json_limits&);
template nlohmann::ordered_json read_json(const std::filesystem::path&, int, const json_limits&);

}  // namespace rankc::runtime
