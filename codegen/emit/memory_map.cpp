// SPDX-License-Identifier: Apache-2.0
#include "memory_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include <rankc/codegen/text_template.hpp>

#include "../passes/input_text.hpp"
#include "separators.hpp"

namespace rankc::codegen {

namespace {

struct mapped {
  std::size_t where, bytes;
  std::string name;
  std::string_view live;
};

constexpr std::string_view always = "always", in_step = "in a step", in_layer = "in a layer",
                           in_backward = "from layer to layer of a backward",
                           to_backward = "from a forward to its backward";

std::string_view life_of(kept what) {
  switch (what) {
    case kept::saved:
    case kept::output:
      return to_backward;
    case kept::output_gradient:
      return in_backward;
    case kept::halfway:
      return "between the halves of a backward";
    case kept::activation:
    case kept::gradient:
      break;
  }
  return "from its action or arrival to its last reader";
}

class map_of_rank {
 public:
  map_of_rank(const lowered& l, const pipeline_rank& r) : l_(l), r_(r), a_(r.arena) {}

  std::vector<mapped> run() {
    add_parameters();
    add_sharded();
    add_of_step();
    for (const pool& p : a_.pools)
      add(p.where, p.unit * static_cast<std::size_t>(p.count),
          fmt::format("{} x {}", p.count, kept_names[static_cast<int>(p.what)]), life_of(p.what));
    add(a_.chain[0], a_.chain_bytes * static_cast<std::size_t>(a_.chains), "chain", in_backward);
    add(a_.work, a_.work_bytes, "work", in_layer);
    if (r_.overlaps) add(a_.work_beside, a_.work_beside_bytes, "work_beside", in_layer);
    std::ranges::stable_sort(all_, {}, &mapped::where);
    return std::move(all_);
  }

 private:
  void add(std::size_t where, std::size_t bytes, std::string name, std::string_view live) {
    if (bytes > 0) all_.push_back({where, bytes, std::move(name), live});
  }
  void add_parameters() {
    const optimizer_state kept = l_.state();
    add(a_.weights, l_.weight_elements(r_) * kept.weight, "weights", always);
    if (l_.trains())
      add(a_.gradients, r_.trained_elements * l_.wide_bytes(), "gradients",
          "from the first backward to the update");
    for (int i = 0; i < kept.moments; ++i)
      add(i == 0 ? a_.first_moment : a_.second_moment, r_.trained_elements * kept.moment,
          std::string(l_.optimizer().moments[i].name), always);
    if (l_.has_working_copy())
      add(a_.working_copy, r_.parameter_elements * l_.real_bytes(), "working_copy", always);
  }
  void add_sharded() {
    if (!l_.is_sharded()) return;
    const std::string_view live = l_.reshards() ? "from a layer's gather to its end" : in_step;
    add(a_.gathered, r_.gathered_elements * l_.real_bytes(), "gathered", live);
    if (l_.trains()) add(a_.full_gradients, r_.summed_elements * l_.wide_bytes(), "full_gradients", live);
    add(a_.arriving, r_.arriving_elements * l_.wide_bytes(), "arriving", "from a reduce-scatter to its sum");
  }
  void add_of_step() {
    for (std::size_t t = 0; t < a_.ropes.size(); ++t)
      add(a_.ropes[t].where, a_.ropes[t].bytes, "rotary angles", always);
    for (const placed_input& i : r_.inputs)
      if (i.read)
        add(i.where, bytes_in_step(*l_.plan, i.is, l_.real_bytes(), l_.wide_bytes()), std::string(i.is.name),
            in_step);
    add(a_.routers, a_.routers_bytes * static_cast<std::size_t>(l_.plan->actions.microbatches), "routers",
        in_step);
    add(a_.loss, l_.wide_bytes(), "loss", in_step);
    if (l_.trains()) add(a_.norm, l_.wide_bytes(), "norm", "from the first sum of squares to the update");
  }

  const lowered& l_;
  const pipeline_rank& r_;
  const arena_plan& a_;
  std::vector<mapped> all_;
};

}  // namespace

std::string memory_map(const lowered& l, const pipeline_rank& r) {
  std::string out = "// By address:";
  for (const mapped& m : map_of_rank(l, r).run())
    out += fmt::format("\n//   {:>15}  {:>10}  {:<28}  {}", with_separators(std::to_string(m.where)),
                       readable_bytes(m.bytes), m.name, m.live);
  return out;
}

}  // namespace rankc::codegen
