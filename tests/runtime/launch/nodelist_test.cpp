// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/nodelist.hpp>

#include "../../said.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>

namespace nodelist_test {

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_in;

namespace {

using names = std::vector<std::string>;
using counts = std::vector<int>;

}  // namespace

TEST_CASE("Slurm's list of hosts is written out, in its order and with leading zeros") {
  CHECK(expand_hosts("node1") == names{"node1"});
  CHECK(expand_hosts("node[01-03,07],gpu-a[1-2]") ==
        names{"node01", "node02", "node03", "node07", "gpu-a1", "gpu-a2"});
  CHECK(expand_hosts("a[01-03,07],b2") == names{"a01", "a02", "a03", "a07", "b2"});
  CHECK(expand_hosts("node[9-11]") == names{"node9", "node10", "node11"});
  CHECK(expand_hosts("n[099-101].site") == names{"n099.site", "n100.site", "n101.site"});
  CHECK(expand_hosts("r[1-2]n[1-2]") == names{"r1n1", "r1n2", "r2n1", "r2n2"});
  CHECK(expand_hosts("a[18446744073709551615]") == names{"a18446744073709551615"});
  CHECK(expand_hosts("a[1-1000]b[1-100]").size() == 100'000);
  for (const std::string list :
       {"a[1-1000]b[1-101]", "a[1-2][1-99999]", "a[1-99999,1-99999]", "a[1-99999],b,c"}) {
    CAPTURE(list);
    CHECK(said_in(refusal_of([&] { expand_hosts(list); })) == said{5332, {list, "100000"}});
  }
  for (const std::string& list : {std::string(256, 'a'), "a[" + std::string(300, '0') + "1-9]"})
    CHECK(said_in(refusal_of([&] { expand_hosts(list); })) == said{5332, {list, "100000"}});
  for (const char* list :
       {"", ",", "a,", "a[1-", "a1-2]", "a[]", "a[2-1]", "a[x]", "a[1-2-3]", "a[1-9999999999]", "a[-1]"}) {
    CAPTURE(list);
    const std::string text = refusal_of([&] { expand_hosts(list); });
    CHECK(text.starts_with("2: "));
    CHECK(said_in(text) == said{5332, {list, "100000"}});
  }
}

TEST_CASE("Slurm's number per node is written out") {
  CHECK(expand_counts("2") == counts{2});
  CHECK(expand_counts("2(x2)") == counts{2, 2});
  CHECK(expand_counts("8(x2),4") == counts{8, 8, 4});
  CHECK(expand_counts("4,2(x3)") == counts{4, 2, 2, 2});
  CHECK(expand_counts("1(x99999),2").size() == 100'000);
  for (const char* list : {"1(x99999),2,3", "1(x100001)", "", "x", "2(x)", "2(x2", "2(x0)", "-1", "2,",
                           "2(x-1)", "2(x99999999999)"}) {
    CAPTURE(list);
    const std::string text = refusal_of([&] { expand_counts(list); });
    CHECK(text.starts_with("2: "));
    CHECK(said_in(text) == said{5333, {list, "100000"}});
  }
}

}  // namespace nodelist_test
