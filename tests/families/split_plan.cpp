// SPDX-License-Identifier: Apache-2.0
#include "split_plan.hpp"

#include <stdexcept>
#include <utility>

rankc::plan_data find_plan(std::vector<split_plan> among, const std::string& job, const std::string& layout) {
  for (split_plan& p : among)
    if (p.job == job && p.layout == layout) return std::move(p.plan);
  throw std::logic_error("no plan is " + job + " " + layout);
}
