// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/mesh/axes_check.hpp>
#include <rankc/mesh/communicators.hpp>
#include <rankc/plan/plan.hpp>

#include <algorithm>
#include <string>

namespace table_test {

using namespace rankc;

namespace {

constexpr bool are(const auto& list, std::initializer_list<std::string_view> names) {
  return std::equal(std::begin(list), std::end(list), names.begin(), names.end(),
                    [](const auto& x, std::string_view n) {
                      if constexpr (requires { x.over; }) return name(x.over) == n;
                      else if constexpr (requires { x.name; })
                        return x.name == n && row(x.along).degree == x.degree;
                      else return name(x) == n;
                    });
}
static_assert(are(axes, {"dp_replicate", "dp_shard", "cp", "ep", "tp", "etp"}));
static_assert(index(axis::dp_replicate) == 0 && index(axis::etp) == n_axes - 1 && index(axis::pp) == n_axes);
static_assert(are(listed_axes, {"pp", "dp_replicate", "dp_shard", "cp", "ring", "ulysses", "tp",
                                "edp_replicate", "edp_shard", "ep", "edp_inner", "etp"}));
static_assert(are(joined_axes, {"cp", "dp", "batch", "fsdp", "replicas", "loss", "dp_cp", "tp_cp", "tp_dp",
                                "model", "efsdp", "expert_replicas", "edp", "ep_etp", "embedding"}));
static_assert(are(all_degrees, {"pp", "dp_replicate", "dp_shard", "cp", "tp", "ep", "etp", "ulysses"}));
static_assert(are(written_degrees, {"dp_replicate", "dp_shard", "cp", "tp", "ep", "etp", "pp", "ulysses"}));
static_assert(are(communicator_purposes, {"pp", "replicas", "fsdp", "loss", "ring", "ulysses", "tp",
                                          "expert_replicas", "efsdp", "ep", "etp"}));
static_assert(parts_of(axis::loss) ==
              (axis_set(axis::dp_replicate) | axis::dp_shard | axis::ring | axis::ulysses));

/// The message of check_axes about a changed table.
template <class Change>
constexpr std::string said_of(Change change) {
  std::vector<axis_row> rows(std::begin(axis_rows), std::end(axis_rows));
  change(rows);
  const sentence s = check_axes(rows, detail::declared_degrees);
  return std::string(s.view());
}
axis_row& of(std::vector<axis_row>& rows, axis a) { return rows[static_cast<std::size_t>(a)]; }

}  // namespace

TEST_CASE("a fault of the table is a sentence that names the axis") {
  using rows = std::vector<axis_row>;
  CHECK(said_of([](rows&) {}).empty());
  CHECK(said_of([](rows& r) { r.erase(r.begin() + 2); }) ==
        "axis 'cp' stands in row 2, which is that of another; rows are in the order of the enum, one each");
  CHECK(said_of([](rows& r) { of(r, axis::ep).name = ""; }) == "axis '' has no name");
  CHECK(said_of([](rows& r) { of(r, axis::ep).name = "tp"; }) == "axis 'tp' has the name of another");
  CHECK(said_of([](rows& r) { of(r, axis::etp).degree = &parallel_dims::tp; }) ==
        "axis 'etp' has the degree of 'tp'");
  CHECK(said_of([](rows& r) { of(r, axis::etp).letter = 't'; }) == "axis 'etp' has the letter of 'tp'");
  CHECK(said_of([](rows& r) { of(r, axis::cp).dense = seen::always; }) ==
        "axis 'cp' joins others and is in a view; it is one or the other");
  CHECK(said_of([](rows& r) { of(r, axis::tp).dense = seen::never; }) ==
        "axis 'tp' is in no view and joins nothing");
  CHECK(said_of([](rows& r) { of(r, axis::etp).dense = seen::always; }) ==
        "axis 'etp' is lowered and shards the features of dense layers, as 'tp' does; "
        "tensor-parallel regions span one axis");
  CHECK(said_of([](rows& r) { of(r, axis::ring).size = nullptr; }) ==
        "axis 'ring' is in a view without a size or a degree");
  CHECK(said_of([](rows& r) { of(r, axis::ep).help = ""; }) ==
        "axis 'ep' is declared by users without a text that helps them");
  CHECK(said_of([](rows& r) { of(r, axis::ring).places = true; }) ==
        "axis 'ring' has values placed on it without a degree");
  CHECK(said_of([](rows& r) { of(r, axis::loss).lowered = lowered_values::all; }) ==
        "axis 'loss' is lowered without a degree");
  CHECK(said_of([](rows& r) { of(r, axis::edp).stays_in_node = true; }) ==
        "axis 'edp' stays in a node without a degree");
  CHECK(said_of([](rows& r) {
          of(r, axis::ep).lowered = lowered_values::tokens;
          of(r, axis::ep).places = false;
        }) == "axis 'ep' is lowered for tokens, which are not placed on it");
  CHECK(said_of([](rows& r) { of(r, axis::pp).expert = seen::never; }) ==
        "axis 'pp' is outside of dp_replicate and in the dense view alone; experts have its ranks too");
  CHECK(said_of([](rows& r) { of(r, axis::edp).joins = {axis::loss}; }) ==
        "axis 'edp' joins 'loss', which joins others: name those");
  CHECK(said_of([](rows& r) {
          of(r, axis::ulysses).degree = nullptr;
          of(r, axis::ulysses).size = [](const parallel_dims&) { return 1; };
          of(r, axis::ulysses).stays_in_node = false;
          of(r, axis::ulysses).lowered = lowered_values::nothing;
        }) == "parallel_dims has 8 degrees, and 7 have a row");
}

}  // namespace table_test
