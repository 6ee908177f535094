// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"
#include "write_programs.hpp"

#include <utility>
#include <vector>

int main(int argc, char** argv) {
  generate_request to(argc, argv);
  std::vector<split_plan> plans = weighted::plans();
  if (to.is_host() && !to.takes_sample)
    for (split_plan& p : weighted::more_layouts()) plans.push_back(std::move(p));
  to.takes_sample = false;  // the plans of the family are the sample
  return write_programs(to, std::move(plans));
}
