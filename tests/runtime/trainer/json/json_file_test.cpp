// SPDX-License-Identifier: Apache-2.0
// JSON from an untrusted source: size and depth are limited, duplicate keys are refused, and every wrong type
// or range gives a sentence.
#include <json/json_file.hpp>

#include "../../../exit_with.hpp"
#include "../scratch.hpp"

#include <doctest/doctest.h>

namespace json_file_test {

using namespace rankc::runtime;
using nlohmann::json, nlohmann::ordered_json;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

constexpr json_limits few{1000, 20, 3};

exit_with parsed(const std::string& text, const json_limits& limits = settings_limits) {
  const exit_with sorted = exit_of([&] { parse_json<json>(text, "a.json", 1, limits); });
  CHECK(exit_of([&] { parse_json<ordered_json>(text, "a.json", 1, limits); }) == sorted);
  return sorted;
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

template <class T>
exit_with read(const char* text) {
  return exit_of([&] { required<T>(json::parse(text), "k", "at.", "a.json", 65); });
}

exit_with refused(const char* found, const char* expected) {
  return {65, {6589, {"a.json", "at.k", found, expected}}};
}

}  // namespace

TEST_CASE("JSON that is cut, overflows or has more behind it is refused with the place") {
  CHECK(parsed(R"({"a": [1, "b", null, -2.5e3, true]})") == exit_with{});
  CHECK(parsed("{\"a\":") == exit_with{1, {6596, {"a.json", "byte 6 is unexpected"}}});
  CHECK(parsed("{} x") == exit_with{1, {6596, {"a.json", "byte 4 is unexpected"}}});
  CHECK(parsed("") == exit_with{1, {6596, {"a.json", "byte 1 is unexpected"}}});
  CHECK(parsed("[1e999]") == exit_with{1, {6596, {"a.json", "a number is out of range"}}});
  CHECK(parsed("[\"\xe9\"]").message.id == 6596);
}

TEST_CASE("nesting is limited for lists and objects, far below what a stack holds") {
  const exit_with deep{1, {6592, {"a.json", "32"}}};
  CHECK(parsed(repeated("[", 32) + repeated("]", 32)) == exit_with{});
  CHECK(parsed(repeated("[", 33) + repeated("]", 33)) == deep);
  CHECK(parsed(repeated("{\"a\":", 33) + "1" + repeated("}", 33)) == deep);
  CHECK(parsed(repeated("[", 1'000'000)) == deep);
}

TEST_CASE("the number of values is limited") {
  CHECK(parsed("[" + repeated("0,", 18) + "0]", few) == exit_with{});
  CHECK(parsed("[" + repeated("0,", 19) + "0]", few) == exit_with{1, {6593, {"a.json", "20"}}});
  CHECK(parsed("[" + repeated("[],", 19) + "0]", few).message.id == 6593);
}

TEST_CASE("a key that is given twice in one object is refused; in two objects it is not") {
  CHECK(parsed(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})") == exit_with{});
  CHECK(parsed(R"({"a": 1, "b": {"c": 2, "c": 2}})") == exit_with{1, {6594, {"a.json", "c"}}});
  CHECK(parsed(R"({"a": 1, "\u0061": 1})") == exit_with{1, {6594, {"a.json", "a"}}});
}

TEST_CASE("the keys of an ordered object are limited, and those of a sorted one are not") {
  const auto ordered = [](const char* text) {
    CHECK(exit_of([&] { parse_json<json>(text, "a.json", 1, few); }) == exit_with{});
    return exit_of([&] { parse_json<ordered_json>(text, "a.json", 1, few); });
  };
  CHECK(ordered(R"({"a": 0, "b": 0, "c": {"a": 0, "b": 0}})") == exit_with{});
  CHECK(ordered(R"({"a": 0, "b": 0, "c": 0, "d": 0})") == exit_with{1, {6595, {"a.json", "3"}}});
}

TEST_CASE("a file that is larger than its kind is not read") {
  const scratch files;
  const std::string file = files.write("a.json", "[" + std::string(2000, ' ') + "]");
  CHECK(exit_of([&] { read_json<json>(file, 65, few); }) == exit_with{65, {6586, {file, "2002", "1000"}}});
  CHECK(read_json<json>(file, 65, settings_limits) == json::array());
}

TEST_CASE("a value of another type, or out of range, is named with its key and the expected type") {
  CHECK(read<std::string>(R"({"k": "text"})") == exit_with{});
  CHECK(read<std::string>(R"({"k": 1})") == refused("1", "a text"));
  CHECK(read<std::string>("{}") == refused("null", "a text"));
  CHECK(read<std::string>("[1]") == refused("null", "a text"));
  CHECK(read<int>(R"({"k": -2147483648})") == exit_with{});
  CHECK(read<int>(R"({"k": 2147483648})") == refused("2147483648", "a whole number"));
  CHECK(read<int>(R"({"k": 2.5})") == refused("2.5", "a whole number"));
  CHECK(read<int>(R"({"k": "2"})") == refused("\"2\"", "a whole number"));
  CHECK(read<std::int64_t>(R"({"k": 18446744073709551615})") ==
        refused("18446744073709551615", "a whole number"));
  CHECK(read<std::uint64_t>(R"({"k": 18446744073709551615})") == exit_with{});
  CHECK(read<std::uint64_t>(R"({"k": -1})") == refused("-1", "a whole number that is not negative"));
  CHECK(read<double>(R"({"k": 2})") == exit_with{});
  CHECK(read<double>(R"({"k": true})") == refused("true", "a number"));
  using sizes = std::vector<std::size_t>;
  CHECK(read<sizes>(R"({"k": [1, 2]})") == exit_with{});
  CHECK(read<sizes>(R"({"k": [1, "2"]})") ==
        refused("[1,\"2\"]", "a list of whole numbers that are not negative"));
}

TEST_CASE("a value in a message is short and has no control characters") {
  CHECK(shown(json("\x1b]0;title\x07")) == "\"\\u001b]0;title\\u0007\"");
  CHECK(shown(json(std::string(500, 'x'))).size() == 80);
}

}  // namespace json_file_test
