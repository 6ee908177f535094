// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/injection.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>

#include <optional>
#include <sstream>

namespace rankc::runtime {
namespace {

constexpr const char* names[]{"kill",  "stop", "exit", "abort",   "throw",
                              "delay", "flip", "drop", "corrupt", "nan"};
constexpr const char* form =
    "rank=R,op=N|after|save[,step=S],kill|stop|exit[=CODE]|abort|throw|delay=SECONDS|drop|corrupt|nan|flip";

[[noreturn]] void refuse(const std::string& text, const std::string& part) {
  throw failure(2, "RC6075: --inject {} has the unknown or malformed part '{}'; the form is {}", text, part,
                form);
}

template <class T>
T number(const std::string& text, const std::string& part, const std::string& value, T least, T most) {
  const auto n = parse_number<T>(value);
  if (!n || !(*n >= least && *n <= most)) refuse(text, part);
  return *n;
}

std::optional<injection::fault> fault_of(const std::string& name) {
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<injection::fault>(i);
  return std::nullopt;
}

/// The moment that `op=` names; a number is the number of a call.
injection::moment moment_of(const std::string& value) {
  if (value == "after") return injection::moment::after_step;
  return value == "save" ? injection::moment::save : injection::moment::call;
}

}  // namespace

injection parse_injection(const std::string& text, int world) {
#ifndef RANKC_INJECT
  throw failure(
      2, "RC6076: --inject {} needs a program that is built for it; build this one with -DRANKC_INJECT=ON",
      text);
#endif
  constexpr std::int64_t any = INT64_MAX;
  injection in;
  bool has_rank = false, has_op = false, has_fault = false;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals),
                      value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (name == "rank") {
      in.rank = static_cast<int>(number<std::int64_t>(text, part, value, 0, world - 1));
      has_rank = true;
    } else if (name == "step") {
      in.step = number<std::int64_t>(text, part, value, 1, any);
    } else if (name == "op") {
      in.when = moment_of(value);
      if (in.when == injection::moment::call)
        in.op = static_cast<std::uint64_t>(number<std::int64_t>(text, part, value, 1, any));
      has_op = true;
    } else if (const auto fault = fault_of(name)) {
      in.what = *fault;
      has_fault = true;
      if (*fault == injection::fault::exit && !value.empty())
        in.code = static_cast<int>(number<std::int64_t>(text, part, value, 0, 255));
      else if (*fault == injection::fault::delay)
        in.seconds = number<double>(text, part,
                                    value.ends_with('s') ? value.substr(0, value.size() - 1) : value, 0, 1e6);
      else if (equals != std::string::npos && *fault != injection::fault::exit) refuse(text, part);
    } else {
      refuse(text, part);
    }
  }
  if (!has_rank || !has_op || !has_fault)
    throw failure(2, "RC6077: --inject {} needs a rank, an op and a fault; the form is {}", text, form);
  if (in.when != injection::moment::call && in.what >= injection::fault::drop)
    throw failure(2, "RC6078: --inject {} asks for drop, corrupt or nan, which happen at a call; give op=N",
                  text);
  if (in.when != injection::moment::after_step && in.what == injection::fault::flip)
    throw failure(
        2, "RC6079: --inject {} asks for flip, which changes a weight when a step has ended; give op=after",
        text);
  return in;
}

}  // namespace rankc::runtime
