// SPDX-License-Identifier: Apache-2.0
// The table of ops: every row is complete, and every fusion combines the properties of its ops.
#include <rankc/ops.hpp>
#include <rankc/ops/fused.hpp>

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

namespace ops_test {

using namespace rankc;

namespace {

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

/// The ports on one side of a fusion, by the names that the fusion gives them.
std::map<std::string, port> named_ports(const fusion::side& s) {
  std::vector<port> ports;
  for (const port& p : s.kind->used_ports())
    if (p.as != use::scratch) ports.push_back(p);
  const std::vector<std::string> names = words(s.operands);
  CAPTURE(std::string(s.kind->name));
  REQUIRE(names.size() == ports.size());
  std::map<std::string, port> out;
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(out.emplace(names[i], ports[i]).second);
  return out;
}

void check(const fusion& f) {
  CAPTURE(std::string(f.into.kind->name));
  const auto first = named_ports(f.first), second = named_ports(f.second), into = named_ports(f.into);
  CHECK((!f.into.kind->on_host().name.empty() || !f.into.kind->on_cuda().name.empty()));
  bool linked = false;
  for (const auto& [name, p] : second) linked |= first.count(name) == 1;
  CHECK(linked);
  for (const auto& [name, p] : into) {
    CAPTURE(name);
    const auto a = first.find(name), b = second.find(name);
    REQUIRE((a != first.end() || b != second.end()));
    const port& source = a != first.end() ? a->second : b->second;
    CHECK(p.holds == source.holds);
    CHECK(p.shape.ndim == source.shape.ndim);
    const bool written =
        (a != first.end() && a->second.is_written()) || (b != second.end() && b->second.is_written());
    CHECK(p.is_written() == written);  // a value that one op writes and the other reads is a result of both
    CHECK((p.as == use::sum) == (source.as == use::sum));
    CHECK((p.as == use::parameter) == (source.as == use::parameter));
  }
  // A value that is not a port of the fused op is produced by one op and consumed by the other.
  for (const auto* side : {&first, &second})
    for (const auto& [name, p] : *side) {
      if (into.count(name)) continue;
      CAPTURE(name);
      REQUIRE(first.count(name) == 1);
      REQUIRE(second.count(name) == 1);
      CHECK(std::set{first.at(name).as, second.at(name).as} == std::set{use::out, use::in});
    }
}

}  // namespace

TEST_CASE("every row of the table is whole, and of a name of its own") {
  std::set<std::string_view> names;
  int rows = 0;
  for (const op_row* row : ops::all) {
    CAPTURE(std::string(row->name));
    complaint c{row->name, {}, {}};
    check_row(c, *row, true);
    CHECK(std::string(c.text.view()) == "");
    CHECK(names.insert(row->name).second);
    ++rows;
  }
  CHECK(rows == 132);
}

TEST_CASE("a fusion has the operands of its two ops, less what only they had") {
  int fusions = 0;
  ops::each_fusion([&](const fusion& f) {
    check(f);
    ++fusions;
  });
  CHECK(fusions == 27);
}

TEST_CASE("a shape is read as it is written") {
  constexpr port_shape s = "tokens@first heads*dim : stride";
  REQUIRE(s.ndim == 2);
  CHECK((s.dim[0].count == "tokens" && s.dim[0].first == "first" && s.dim[0].unit.empty()));
  CHECK((s.dim[1].count == "heads" && s.dim[1].unit == "dim" && s.dim[1].number == 0));
  CHECK(s.stride == "stride");
  CHECK(port_shape("tokens 12").dim[1].number == 12);
  CHECK(port_shape("").ndim == 0);
}

TEST_CASE("operations are counted by the sizes of the symbols") {
  op_sizes s(ops::linear);
  for (const auto& [port, rows, cols] : {std::tuple{0, 8, 6}, std::tuple{1, 8, 4}, std::tuple{2, 6, 4}}) {
    s.bind(port, 0, rows, 1);
    s.bind(port, 1, cols, 1);
  }
  CHECK(s("tokens") == 8);
  CHECK(s("in") == 4);
  CHECK(s("out") == 6);
  CHECK(ops::linear.flops(s) == 2 * 8 * 4 * 6);
  CHECK_THROWS_AS(s("width"), no_such_name);
}

}  // namespace ops_test
